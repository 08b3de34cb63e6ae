//! `allow(…)` suppresses warnings within the item that has the marker, but no others.

use rbuilder_generator::codes::Code;
use rbuilder_generator::{Diagnostic, Levels, Options, Product, Severity, SourceSet, generate};

const START: &str = "\
use kube::CustomResource;
use rbuilder::{CrdSchema, rbac, webhook};
use serde::{Deserialize, Serialize};
";

const MANIFEST: &str = "[package]\nname = \"cafe\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nk8s-openapi = { version = \"0.29\", features = [\"v1_37\"] }\nkube = \"5\"\nrbuilder = \"0.1\"\nserde = \"1\"\n";

const DERIVES: &str = "#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n#[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\")]\n#[serde(rename_all = \"camelCase\")]\n";

fn run(library: &str, options: &Options) -> Vec<Diagnostic> {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", MANIFEST);
    sources.insert("src/lib.rs", format!("{START}{library}"));
    generate(&sources, options).diagnostics
}

/// Each message is expected with the text at its place.
fn check(library: &str, expected: &[(&str, &str)]) {
    let source = format!("{START}{library}");
    let found = run(library, &Options::default());
    let shown: Vec<(&str, &str)> = found
        .iter()
        .map(|said| (said.message.as_str(), &source[said.place.range.clone()]))
        .collect();
    assert_eq!(shown, expected, "{library}");
}

/// Both fields have an unknown format. One marker is for the kind, and the other one for the first
/// field.
fn kind(on_kind: &str, on_field: &str) -> String {
    let field = |name: &str, on: &str| {
        format!("    {on}\n    #[kube(validation(format = \"{name}\"))]\n    pub {name}: String,\n")
    };
    format!(
        "{DERIVES}{on_kind}\npub struct CupSpec {{\n{}{}}}\n",
        field("phone", on_field),
        field("colour", "")
    )
}

const PHONE: (&str, &str) = ("unknown format `phone`", "\"phone\"");
const COLOUR: (&str, &str) = ("unknown format `colour`", "\"colour\"");

#[test]
fn warnings_are_left_out_within_the_item() {
    check(&kind("", ""), &[PHONE, COLOUR]);
    check(&kind("", "#[kube(allow(RB0306))]"), &[COLOUR]);
    check(&kind("", "#[crd(allow(RB0306, reason = \"agreed\"))]"), &[COLOUR]);
    check(&kind("#[crd(allow(RB0306))]", ""), &[]);
}

#[test]
fn variants_and_types_of_fields_have_levels_of_their_own() {
    let types = |on_variant: &str, on_type: &str| {
        format!(
            "{DERIVES}pub struct CupSpec {{\n    pub lid: Lid,\n    pub contact: Contact,\n}}\n\
             #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\npub enum Lid {{\n    {on_variant}\n    \
             Tight {{\n        #[kube(validation(format = \"phone\"))]\n        maker: String,\n    }},\n    None {{}},\n}}\n\
             #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]\n{on_type}\npub struct Contact(#[kube(validation(format = \"colour\"))] String);\n"
        )
    };
    check(&types("", ""), &[PHONE, COLOUR]);
    check(&types("#[kube(allow(RB0306))]", ""), &[COLOUR]);
    check(&types("", "#[crd(allow(RB0306))]"), &[PHONE]);
}

#[test]
fn warnings_about_rules_and_webhooks_are_left_out() {
    let unknown = "the group `apps` has no resource `deployment`";
    let rule = "groups = \"apps\", resources = \"deployment\", verbs = \"get\"";
    check(
        &format!("#[rbac({rule})]\nfn reconcile() {{}}\n"),
        &[(unknown, "\"deployment\"")],
    );
    for markers in [
        format!("#[rbac({rule}, allow(RB0601))]\n"),
        format!("#[rbac(allow(RB0601))]\n#[rbac({rule})]\n"),
    ] {
        check(&format!("{markers}fn reconcile() {{}}\n"), &[]);
        check(
            &format!("struct A;\nimpl A {{\n{markers}fn reconcile() {{}}\n}}\n"),
            &[],
        );
    }
    let other = format!("#[rbac(allow(RB0601))]\nfn other() {{}}\n#[rbac({rule})]\nfn reconcile() {{}}\n");
    check(
        &other,
        &[
            ("there is no warning `RB0601` to allow here", "RB0601"),
            (unknown, "\"deployment\""),
        ],
    );
    let webhook = |allow: &str| {
        format!(
            "#[webhook(validating, groups = \"apps\", versions = \"v1\", resources = \"deployments\"{allow})]\n\
             fn validate(pod: &k8s_openapi::api::core::v1::Pod) -> Result<(), String> {{\n    Ok(())\n}}\n"
        )
    };
    let found = run(&webhook(""), &Options::default());
    let codes: Vec<_> = found
        .iter()
        .filter_map(|said| Code::of_message(&said.message))
        .map(|code| code.id)
        .collect();
    assert_eq!(codes, ["RB0702"], "{found:?}");
    assert_eq!(found[0].severity, Severity::Warning);
    check(&webhook(", allow(RB0702)"), &[]);
}

#[test]
fn unknown_codes_are_errors() {
    let found = run(&kind("#[crd(allow(RB0360))]", ""), &Options::default());
    let error = found.iter().find(|said| said.is_error()).expect("an error");
    assert_eq!(
        error.text(),
        "unknown code `RB0360`\nhelp: did you mean `RB0306`?"
    );
    for (marker, expected) in [
        ("allow(phone)", "unknown code `phone`"),
        ("allow()", "`allow` must not be empty"),
        ("allow", "expected arguments in parentheses for `allow`"),
        ("allow(RB0306 = true)", "`RB0306` takes no value"),
        ("allow(RB0306, RB0306)", "duplicate argument `RB0306`"),
        (
            "allow(RB0306, reason = 1)",
            "expected a string literal for `reason`, found `1`",
        ),
    ] {
        let found = run(&kind(&format!("#[crd({marker})]"), ""), &Options::default());
        let errors: Vec<&str> = found
            .iter()
            .filter(|said| said.is_error())
            .map(|said| said.message.as_str())
            .collect();
        assert_eq!(errors, [expected], "{marker}");
    }
}

#[test]
fn codes_without_a_warning_are_reported() {
    let none = ("there is no warning `RB0309` to allow here", "RB0309");
    check(&kind("#[crd(allow(RB0306, RB0309))]", ""), &[none]);
    // The outer marker has nothing left to do.
    check(
        &kind("#[crd(allow(RB0306))]", "#[crd(allow(RB0306))]").replace("colour", "hostname"),
        &[("there is no warning `RB0306` to allow here", "RB0306")],
    );
    // We only know that when all products are generated.
    let options = Options {
        products: vec![Product::Crds],
        ..Options::default()
    };
    assert_eq!(run(&kind("#[crd(allow(RB0306, RB0309))]", ""), &options), []);
    // Changes to CRDs are only known to the command.
    check(&kind("#[crd(allow(RB0306, RB0803))]", ""), &[]);
}

#[test]
fn errors_cannot_be_allowed() {
    let library = kind(
        "#[crd(allow(RB0306, RB0305))]",
        "#[kube(validation(pattern = \"(\"))]",
    );
    let found = run(&library, &Options::default());
    let said: Vec<(Severity, &str)> = found
        .iter()
        .map(|said| (said.severity, said.message.as_str()))
        .collect();
    let note = "`RB0305` is an error here, and errors cannot be allowed";
    assert_eq!(said[0], (Severity::Note, note));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].0 == Severity::Error, "{said:?}");
}

#[test]
fn markers_take_precedence_over_levels_of_the_run() {
    let mut levels = Levels::default();
    levels.deny("warnings").expect("a level");
    levels.deny("RB0306").expect("a code");
    let options = Options {
        levels,
        ..Options::default()
    };
    assert_eq!(run(&kind("#[crd(allow(RB0306))]", ""), &options), []);
    let found = run(&kind("#[crd(allow(RB0306, RB0309))]", ""), &options);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].is_error(), "{found:?}");
}

/// If a macro passes items through, it may add attributes in front of them.
#[test]
fn markers_in_macro_calls_apply() {
    let library = "macro_rules! kind { ($(#[$m:meta])* $v:vis struct $name:ident { $($(#[$fm:meta])* $fv:vis $f:ident: $t:ty),* $(,)? }) => { \
         #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)] #[serde(rename_all = \"camelCase\")] $(#[$m])* \
         $v struct $name { $($(#[$fm])* $fv $f: $t,)* } } }\n\
         kind! {\n#[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\")]\npub struct CupSpec {\n    \
         #[kube(validation(format = \"phone\"), allow(RB0306))]\n    pub a: String,\n    \
         #[kube(validation(format = \"colour\"))]\n    pub b: String,\n}\n}\n";
    check(library, &[COLOUR]);
}
