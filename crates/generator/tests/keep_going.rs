//! With `keep_going`, an error only prevents output that needs the broken part of the source.

use rbuilder_generator::{Generated, KindOutcome, Options, Severity, SourceSet, generate};

const MANIFEST: &str =
    "[package]\nname = \"cafe\"\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\nserde = \"1\"\n";

/// `derive` determines where the schema comes from.
fn kind(name: &str, version: &str, derive: &str, fields: &str) -> String {
    format!(
        "#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, {derive})]\n\
         #[kube(group = \"cafe.io\", version = \"{version}\", kind = \"{name}\")]\n\
         pub struct {name}Spec {{ {fields} }}\n"
    )
}

fn cup(fields: &str) -> String {
    kind("Cup", "v1", "JsonSchema", fields)
}

fn pot(fields: &str) -> String {
    kind("Pot", "v1", "JsonSchema", fields)
}

fn run(files: &[(&str, String)], keep_going: bool) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", MANIFEST);
    for (path, text) in files {
        sources.insert(*path, text.as_str());
    }
    let options = Options {
        keep_going,
        ..Options::default()
    };
    generate(&sources, &options)
}

/// `held_back` has the kinds without a manifest, and the error that prevents each.
fn check(what: &str, files: &[(&str, String)], written: &[&str], held_back: &[(&str, &str)]) {
    let made = run(files, true);
    let paths: Vec<&str> = made.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, written, "{what}: {:#?}", made.diagnostics);
    let found: Vec<(&str, &str)> = made
        .kinds
        .iter()
        .filter_map(|kind| match &kind.outcome {
            KindOutcome::HeldBack { errors } => {
                Some((kind.kind.as_str(), made.diagnostics[errors[0]].message.as_str()))
            }
            _ => None,
        })
        .collect();
    let is_same = found.len() == held_back.len()
        && found
            .iter()
            .zip(held_back)
            .all(|((kind, message), (wanted, part))| kind == wanted && message.contains(part));
    assert!(is_same, "{what}: expected {held_back:?}, found {found:?}");
    let has_errors = made.diagnostics.iter().any(|diagnostic| diagnostic.is_error());
    assert_eq!(run(files, false).files.is_empty(), has_errors, "{what}");
}

const CUP: &str = "crd/bases/cafe.io_cups.yaml";
const POT: &str = "crd/bases/cafe.io_pots.yaml";
const ROLE: &str = "rbac/role.yaml";

#[test]
fn error_affects_kinds_that_need_the_part() {
    let shared = "#[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)] pub struct Shared { part: Part }\n\
                  #[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)] pub struct Part { bad: (i32, i32) }\n";
    let rule = "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]\npub fn reconcile() {}\n";
    let with_rule = format!("{}{}{rule}", cup("size: i32,"), pot("bad: Unknown,"));
    let lib = |text: String| vec![("src/lib.rs", text)];
    check(
        "a field's type, and a role",
        &lib(with_rule),
        &[CUP, ROLE],
        &[("Pot", "cannot find type `Unknown`")],
    );
    check(
        "no error",
        &lib(format!("{}{}", cup(""), pot(""))),
        &[CUP, POT],
        &[],
    );
    check(
        "a type that two kinds share, where the second finds it made",
        &lib(format!("{}{}{shared}", cup("one: Shared,"), pot("one: Shared,"))),
        &[],
        &[("Cup", "tuple"), ("Pot", "tuple")],
    );
    let marked = "#[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)]\n\
                  pub struct Shared { #[schemars(range(min = 1, max = 0))] part: i32 }\n";
    check(
        "a marker of a type that two kinds share",
        &[
            (
                "src/lib.rs",
                format!(
                    "mod cup;\nmod pot;\nmod can;\n{marked}\n#[derive(Serialize, Deserialize, Clone, Debug, JsonSchema)]\npub struct Wrapper {{ of: Shared }}"
                ),
            ),
            ("src/cup.rs", cup("one: crate::Wrapper,")),
            ("src/pot.rs", pot("one: crate::Wrapper,")),
            ("src/can.rs", kind("Can", "v1", "JsonSchema", "size: i32,")),
        ],
        &["crd/bases/cafe.io_cans.yaml"],
        &[("Cup", "minimum"), ("Pot", "minimum")],
    );
    check(
        "a type with our derive that no kind needs",
        &lib(format!(
            "{}#[derive(CrdSchema)] struct Other {{ #[crd(nonsense)] a: i32 }}",
            cup("")
        )),
        &[CUP],
        &[],
    );
    check(
        "a marker that asks for a permission",
        &lib(format!(
            "{}#[rbac(verbs = \"get\")]\nfn reconcile() {{}}",
            cup("")
        )),
        &[CUP],
        &[],
    );
    check(
        "two kinds of one plural",
        &lib(format!(
            "{}{}{}",
            cup(""),
            pot(""),
            kind("Mug", "v1", "JsonSchema", "")
                .replace("kind = \"Mug\"", "kind = \"Mug\", plural = \"cups\"")
        )),
        &[POT],
        &[("Cup", "share the name"), ("Mug", "share the name")],
    );
}

#[test]
fn syntax_error_affects_kinds_it_may_contain() {
    let broken = "pub struct Shared { a: i32 }\nfn open( {\n";
    check(
        "a type behind a syntax error",
        &[
            (
                "src/lib.rs",
                format!("mod broken;\n{}{}", cup("of: crate::broken::Shared,"), pot("")),
            ),
            ("src/broken.rs", broken.into()),
        ],
        &[POT],
        &[("Cup", "syntax error")],
    );
    check(
        "a name that would otherwise be another's",
        &[
            (
                "src/lib.rs",
                format!(
                    "mod broken;\nuse broken::*;\n{}{}",
                    cup("name: String,"),
                    pot("on: bool,")
                ),
            ),
            (
                "src/broken.rs",
                "pub struct String { a: i32 }\nfn open( {\n".into(),
            ),
        ],
        &[POT],
        &[("Cup", "syntax error")],
    );
    check(
        "a version behind a syntax error",
        &[
            ("src/lib.rs", format!("mod v2;\n{}{}", cup(""), pot(""))),
            (
                "src/v2.rs",
                format!(
                    "use kube::CustomResource;\n{}\n fn open( {{",
                    kind("Cup", "v2", "JsonSchema", "")
                ),
            ),
        ],
        &[POT],
        &[("Cup", "syntax error")],
    );
    check(
        "an implementation behind a syntax error",
        &[
            (
                "src/lib.rs",
                format!(
                    "mod broken;\n{}{}#[derive(JsonSchema)]\npub struct Shared {{ a: i32 }}\n",
                    cup("of: Shared,"),
                    pot("")
                ),
            ),
            (
                "src/broken.rs",
                "impl Serialize for crate::Shared { fn serialize( }".into(),
            ),
        ],
        &[POT],
        &[("Cup", "syntax error")],
    );
}

#[test]
fn unreadable_version_affects_its_kind() {
    check(
        "a version in a macro",
        &[(
            "src/lib.rs",
            format!(
                "{}{}\nhidden! {{ {} }}",
                cup(""),
                pot(""),
                kind("Cup", "v2", "JsonSchema", "")
            ),
        )],
        &[POT],
        &[("Cup", "inside a macro")],
    );
    check(
        "a version of a macro that is called elsewhere",
        &[
            (
                "src/lib.rs",
                format!(
                    "mod more;\nmacro_rules! hidden {{ ($k:ident) => {{ #[derive(CustomResource)] struct A; }} }}\n{}{}",
                    cup(""),
                    pot("")
                ),
            ),
            ("src/more.rs", "hidden!(Cup);".into()),
        ],
        &[POT],
        &[("Cup", "inside a macro")],
    );
    check(
        "a version with a broken attribute",
        &[(
            "src/lib.rs",
            format!(
                "{}{}{}",
                cup(""),
                pot(""),
                kind("Cup", "v2", "JsonSchema", "")
                    .replace("group = \"cafe.io\", ", "")
                    .replace("CupSpec", "Cup2Spec")
            ),
        )],
        &[POT],
        &[("Cup", "`group`"), ("Cup2Spec", "`group`")],
    );
}

#[test]
fn package_error_affects_everything() {
    let lib = format!("mod gone;\n{}", cup(""));
    check(
        "a missing file",
        &[("src/lib.rs", lib)],
        &[],
        &[("Cup", "file not found")],
    );
}

/// Each error starts with its line.
fn errors(text: &str) -> Vec<String> {
    let made = run(&[("src/lib.rs", text.into())], false);
    let errors = made.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    errors
        .map(|error| {
            let line = text[..error.place.range.start].matches('\n').count() + 1;
            format!("{line}: {}", error.message)
        })
        .collect()
}

#[test]
fn macro_is_reported_once() {
    let types = "macro_rules! types { ($a:ident) => {\n\
                 #[derive(CustomResource, JsonSchema)]\n#[kube(group = \"cafe.io\", version = \"v1\", kind = \"A\")]\nstruct ASpec {}\n\
                 #[derive(CustomResource, JsonSchema)]\n#[kube(group = \"cafe.io\", version = \"v1\", kind = \"B\")]\nstruct BSpec {}\n} }\n";
    assert_eq!(
        errors(types),
        ["2: this kind is inside a macro, which rbuilder does not expand"]
    );
    let needed = format!(
        "types! {{ One, Two }}\n{}{}",
        cup("one: One, two: Two,"),
        pot("one: Vec<One>,")
    );
    assert_eq!(
        errors(&needed),
        ["1: this macro may define types that a kind needs; rbuilder does not expand macros"]
    );
    let spec = kind("Cup", "v1", "JsonSchema", "part: Part, next: v1beta1::Next,");
    let module = format!(
        "#[versions(v1beta1)]\nmod versioned {{\n{spec}{}\n}}\nuse versioned::*;\n{}",
        pot("part: Part,"),
        kind("Can", "v1", "JsonSchema", "of: v1beta1::Part,")
    );
    assert_eq!(
        errors(&module),
        ["1: this attribute macro may change the module; rbuilder does not run macros"]
    );
    // We can't see the derives of the kinds in this module.
    let stackable = "#[versioned(version(name = \"v1alpha1\"))]\nmod versioned {\n\
                     #[versioned(crd(group = \"cafe.io\", kind = \"Cup\"))]\n#[derive(JsonSchema)]\npub struct CupSpec { part: v1alpha1::Part }\n\
                     #[derive(JsonSchema)]\npub struct Part {}\n}\n";
    let message = "this macro generates kinds, which rbuilder does not read; it does not expand macros";
    assert_eq!(errors(stackable), [format!("1: {message}")]);
    let plain = "#[versioned(version(name = \"v1alpha1\"), k8s(group = \"cafe.io\"))]\n#[derive(JsonSchema)]\npub struct CupSpec { size: i32 }\n";
    assert_eq!(errors(plain), [format!("1: {message}")]);
    // Nothing needs this type, so there's no error.
    assert_eq!(
        errors(&format!(
            "#[rewrite]\n#[derive(JsonSchema)] pub struct Part {{ a: (u8, u8) }}\n{}",
            cup("a: i32,")
        )),
        Vec::<String>::new()
    );
    assert_eq!(
        errors(&format!(
            "#[rewrite]\n#[derive(JsonSchema)] pub struct Part {{ a: (u8, u8) }}\n{}",
            cup("a: Part,")
        )),
        ["1: this attribute macro may change the type; rbuilder does not run macros"]
    );
}

/// The kind is in a module that the library and the binary both include.
#[test]
fn unreadable_kind_of_two_targets_is_reported_once() {
    let unreadable = cup("a: i32,").replace("version = \"v1\"", "version = 1");
    check(
        "a kind in two targets",
        &[
            ("src/lib.rs", "pub mod crd;".to_owned()),
            ("src/main.rs", "mod crd; fn main() {}".to_owned()),
            ("src/crd.rs", unreadable),
        ],
        &[],
        &[("CupSpec", "expected a string literal for `version`")],
    );
}

/// A checkout without submodules lacks a path dependency. This only matters where one of its types
/// is needed.
#[test]
fn missing_path_dependency_affects_kinds_that_need_it() {
    let manifest =
        format!("{MANIFEST}lids = {{ path = \"../lids\" }}\nspouts = {{ path = \"deps/spouts\" }}\n");
    let files = |fields: &str| {
        vec![
            ("Cargo.toml", manifest.clone()),
            (
                ".gitmodules",
                "[submodule \"deps\"]\n\tpath = deps\n\turl = u\n".to_owned(),
            ),
            (
                "src/lib.rs",
                format!("use lids::seal; {}{}", cup("size: i32,"), pot(fields)),
            ),
        ]
    };
    let expected = "cannot read `lids::Lid`: no `Cargo.toml` for the path dependency `lids` in `../lids`";
    check(
        "a missing package",
        &files("lid: lids::Lid,"),
        &[CUP],
        &[("Pot", expected)],
    );
    check(
        "a package that no kind needs",
        &files("size: i32,"),
        &[CUP, POT],
        &[],
    );
    let mut files = files("size: i32,");
    let rule = "#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]\npub fn reconcile() {}\n";
    files[2].1.push_str(rule);
    check("roles as well", &files, &[CUP, POT, ROLE], &[]);
    let made = run(&files, true);
    let said = made.diagnostics.iter().map(|said| {
        (
            said.severity,
            said.message.as_str(),
            said.help.as_deref().unwrap_or_default(),
        )
    });
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            (
                Severity::Warning,
                "no `Cargo.toml` for the path dependency `lids` in `../lids`",
                "check out the repository that has it, or correct the path",
            ),
            (
                Severity::Warning,
                "no `Cargo.toml` for the path dependency `spouts` in `deps/spouts`",
                "run `git submodule update --init`",
            ),
        ]
    );
}
