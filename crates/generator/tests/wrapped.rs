//! If a struct is passed through a macro, we generate the same CRDs as for the struct.

use rbuilder_generator::{Generated, Options, SourceSet, generate};

const MANIFEST: &str = "[package]\nname = \"cafe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nschemars = \"1\"\nserde = \"1\"\n";

fn run(files: &[(&str, &str)]) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", MANIFEST);
    for (path, text) in files {
        sources.insert(*path, *text);
    }
    generate(&sources, &Options::default())
}

const USES: &str =
    "use kube::CustomResource;\nuse schemars::JsonSchema;\nuse serde::{Deserialize, Serialize};\n";

const DERIVES: &str = "#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]\n";

const KUBE: &str = "#[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\", namespaced)]\n";

/// This macro adds attributes.
const ADDS: &str = "macro_rules! kind { ($(#[$m:meta])* $v:vis struct $name:ident { $($(#[$fm:meta])* $fv:vis $f:ident: $t:ty),* $(,)? }) => {\n\
                    #[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)] #[serde(rename_all = \"camelCase\")] $(#[$m])*\n\
                    $v struct $name { $($(#[$fm])* $fv $f: $t,)* }\n\
                    impl Thing for $name { fn name() -> &'static str { stringify!($name) } } } }\n";

const STRUCT: &str = "/// A cup.\npub struct CupSpec {\n    /// Its size.\n    #[schemars(range(max = MAX))]\n    pub size_of_cup: i32,\n    pub lid: Lid,\n}\n";

const OTHERS: &str =
    "const MAX: i32 = 7;\n#[derive(JsonSchema, Serialize, Deserialize)] pub struct Lid { tight: bool }\n";

/// The struct is not in a macro here.
fn expected() -> Vec<rbuilder_generator::OutputFile> {
    let lib = format!("{USES}{DERIVES}#[serde(rename_all = \"camelCase\")]\n{KUBE}{STRUCT}{OTHERS}");
    let expected = run(&[("src/lib.rs", &lib)]);
    assert_eq!(expected.diagnostics, [], "{lib}");
    expected.files
}

#[test]
fn passed_struct_is_read_as_written() {
    let expected = expected();
    let call = format!("kind! {{\n{KUBE}{STRUCT}}}\n");
    let whole = format!("{DERIVES}#[serde(rename_all = \"camelCase\")]\n{KUBE}{STRUCT}");
    for files in [
        // Define the macro before the call, after it, and in another file.
        vec![("src/lib.rs", format!("{USES}{ADDS}{call}{OTHERS}"))],
        vec![(
            "src/lib.rs",
            format!("{USES}{OTHERS}{call}{ADDS}pub(crate) use kind;"),
        )],
        vec![
            ("src/lib.rs", "#[macro_use] mod macros;\nmod api;\n".to_owned()),
            ("src/macros.rs", ADDS.to_owned()),
            ("src/api.rs", format!("{USES}{OTHERS}{call}")),
        ],
        vec![
            (
                "src/lib.rs",
                format!("mod macros;\n{USES}{OTHERS}crate::macros::{call}"),
            ),
            ("src/macros.rs", ADDS.to_owned()),
        ],
        // Put the attributes of the kind into the macro.
        vec![(
            "src/lib.rs",
            format!(
                "{USES}{}kind! {{\n{STRUCT}}}\n{OTHERS}",
                ADDS.replace("#[derive(Cus", &format!("{KUBE}#[derive(Cus"))
            ),
        )],
        // Put all attributes into the call, which has several items.
        vec![(
            "src/lib.rs",
            format!(
                "{USES}macro_rules! api {{ ($($item:item)*) => {{ $(#[allow(unused)] $item)* }} }}\napi! {{\n{whole}{OTHERS}}}\n"
            ),
        )],
        vec![(
            "src/lib.rs",
            format!("{USES}macro_rules! api {{ ($item:item) => {{ $item }} }}\n{OTHERS}api!({whole});\n"),
        )],
    ] {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let found = run(&files);
        assert_eq!(found.diagnostics, [], "{files:#?}");
        assert_eq!(found.files, expected, "{files:#?}");
    }
}

/// Each message comes with the text at its place.
#[test]
fn modules_in_a_call_are_found_from_its_file_and_module() {
    let expected = expected();
    let kind = format!("{USES}{DERIVES}#[serde(rename_all = \"camelCase\")]\n{KUBE}{STRUCT}{OTHERS}");
    let wrapper = "macro_rules! shown { ($($item:item)*) => { $(#[allow(unused)] $item)* } }\n";
    for (library, files) in [
        ("shown! { pub mod v1; }", vec![("src/v1.rs", kind.as_str())]),
        (
            "mod api;",
            vec![
                (
                    "src/api/mod.rs",
                    "//! The API of the server.\nshown! { pub mod v1; }",
                ),
                ("src/api/v1.rs", &kind),
            ],
        ),
        (
            "mod api { shown! { pub mod v1; } }",
            vec![("src/api/v1/mod.rs", &kind)],
        ),
        (
            "mod api { shown! { #[path = \"first.rs\"] pub mod v1; } }",
            vec![("src/api/first.rs", &kind)],
        ),
        (
            "shown! { mod api { shown! { pub mod v1; } } }",
            vec![("src/api/v1.rs", &kind)],
        ),
    ] {
        let library = format!("{wrapper}{library}\n");
        let mut all = vec![("src/lib.rs", library.as_str())];
        all.extend(files);
        let generated = run(&all);
        assert_eq!(generated.diagnostics, [], "{library}");
        assert_eq!(generated.files, expected, "{library}");
    }
}

fn said_about(lib: &str) -> Vec<(String, String)> {
    let found = run(&[("src/lib.rs", lib)]);
    assert_eq!(found.files, [], "{lib}");
    let errors = found.diagnostics.into_iter().filter(|said| said.is_error());
    errors
        .map(|said| {
            let at = lib[said.place.range.clone()]
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            (said.message, at)
        })
        .collect()
}

#[test]
fn other_macros_stay_errors() {
    let call = format!("kind! {{\n{KUBE}{STRUCT}}}\n");
    let inside = "this kind is inside a macro, which rbuilder does not expand";
    for (macros, expected) in [
        (ADDS.replace("$f: $t,", "$f: Option<$t>,"), inside),
        (ADDS.replace("impl Thing", "impl JsonSchema"), inside),
        (
            ADDS.replace("impl Thing for $name { fn", "mod other { fn"),
            inside,
        ),
        (ADDS.replace("($(#[$m", "(x) => {}; ($(#[$m"), inside),
        // Two macros have the same name here.
        (
            format!("{ADDS}mod other {{ {} }}", ADDS.replace("camelCase", "lowercase")),
            "this macro may hide a kind; rbuilder does not expand macros",
        ),
    ] {
        let said = said_about(&format!("{USES}{macros}{call}{OTHERS}"));
        assert!(
            said.iter().any(|(message, _)| message == expected),
            "{macros}: {said:?}"
        );
    }
}

#[test]
fn mistakes_are_reported_where_they_are() {
    let call = format!("kind! {{\n{KUBE}{STRUCT}}}\n");
    let lib = |macros: &str, call: &str| format!("{USES}{macros}{call}{OTHERS}");
    let in_call = said_about(&lib(ADDS, &call.replace("Lid,", "Nope,")));
    assert_eq!(
        in_call,
        [("cannot find type `Nope`".to_owned(), "Nope".to_owned())]
    );
    let in_macro = said_about(&lib(
        &ADDS.replace(
            "serde(rename_all = \"camelCase\")",
            "serde(rename_all = \"camel\")",
        ),
        &call,
    ));
    assert_eq!(in_macro.len(), 1, "{in_macro:?}");
    assert_eq!(in_macro[0].1, "kind! {");
    let not_a_struct = said_about(&lib(
        ADDS,
        &call.replace("pub struct CupSpec {", "struct A; pub struct CupSpec {"),
    ));
    assert_eq!(
        not_a_struct,
        [(
            "this macro may hide a kind; rbuilder does not expand macros".to_owned(),
            "kind! {".to_owned()
        )]
    );
}

/// One macro composes the attributes of a kind, and the other one calls it twice.
const NESTED: &str = "macro_rules! kind {
    ($k:literal, $(#[$m:meta])* pub struct $n:ident $b:tt) => {
        #[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
        #[kube(group = \"x.io\", version = \"v1\", kind = $k)]
        $(#[$m])* pub struct $n $b
    }
}
macro_rules! both {
    ($k:literal, $other:literal, $o:ident { $(#[$m:meta])* pub struct $n:ident $b:tt }) => {
        kind! { $other, $(#[$m])* pub struct $o { #[serde(flatten)] pub spec: $n } }
        kind! { $k, $(#[$m])* #[kube(namespaced)] pub struct $n $b }
    }
}
";

#[test]
fn calls_of_macros_that_define_kinds_are_reported() {
    let calls = "both! { \"Cup\", \"ClusterCup\", ClusterCupSpec { pub struct CupSpec { pub size: i32 } } }\n\
                 kind! { \"Pot\", pub struct PotSpec { pub size: i32 } }\n";
    let said = said_about(&format!("{USES}{NESTED}{calls}{OTHERS}"));
    let message = "this kind is inside a macro, which rbuilder does not expand";
    assert!(said.iter().all(|(said, _)| said == message), "{said:?}");
    let places: Vec<&str> = said
        .iter()
        .map(|(_, at)| at.split('{').next().unwrap_or_default().trim())
        .collect();
    assert_eq!(places, ["both!", "kind!"]);
    // If no call is in place of an item, the error is at the definition.
    let inside = format!("wrap! {{ {calls} }}\nfn f() {{ {calls} }}\n");
    let said = said_about(&format!("{USES}{NESTED}{inside}{OTHERS}"));
    let place = "CustomResource".to_owned();
    assert_eq!(said, [(message.to_owned(), place)]);
}
