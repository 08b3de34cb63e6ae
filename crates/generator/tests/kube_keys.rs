//! Attributes of a kind have to mean the same as in kube-derive 5.0, e.g. for derived names and for
//! schemas from elsewhere.

use crate::support;

use rbuilder_generator::Severity;
use serde_json::Value;
use support::{PRELUDE, run};

/// `attributes` are before the struct.
fn source(keys: &str, attributes: &str) -> String {
    format!(
        "{PRELUDE}use rbuilder::webhook;\n\
         #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\"{keys})]\n{attributes}\n\
         pub struct TestSpec {{ pub size: i32 }}\n"
    )
}

/// The message of an error, and its help.
type Said = (String, Option<String>);

/// Returns the generated files and the errors.
fn generated(source: &str) -> (Vec<(String, Value)>, Vec<Said>) {
    let generated = run(&[("src/main.rs", source)]);
    let files = generated.files.into_iter();
    let read = |text: &str| serde_saphyr::from_str(text).expect("YAML");
    let errors = generated
        .diagnostics
        .into_iter()
        .filter(|said| said.severity == Severity::Error);
    (
        files.map(|file| (file.path, read(&file.text))).collect(),
        errors.map(|said| (said.message, said.help)).collect(),
    )
}

fn only_error(source: &str) -> Said {
    match generated(source).1.as_slice() {
        [only] => only.clone(),
        several => panic!("{} errors: {several:?}", several.len()),
    }
}

#[test]
fn plural_is_derived_from_singular() {
    let handler = "#[webhook(validating, operations = \"create\", failure_policy = \"Fail\")]\n\
                   async fn check(test: Arc<Test>) {}\n";
    let text = source(", kind = \"Test\", singular = \"city\"", "") + handler;
    let (files, errors) = generated(&text);
    assert_eq!(errors, []);
    let file = |path: &str| {
        files
            .iter()
            .find(|(known, _)| known == path)
            .map(|(_, file)| file)
    };
    let crd = file("crd/bases/g.example.com_cities.yaml").expect("the CRD");
    assert_eq!(crd["spec"]["names"]["plural"], "cities");
    assert_eq!(crd["spec"]["names"]["singular"], "city");
    assert_eq!(crd["metadata"]["name"], "cities.g.example.com");
    let webhooks = file("webhook/manifests.yaml").expect("the webhooks");
    assert_eq!(
        webhooks["webhooks"][0]["rules"][0]["resources"],
        serde_json::json!(["cities"])
    );
}

#[test]
fn derived_names_can_collide() {
    let other = source(", kind = \"City\"", "").replace("TestSpec", "CitySpec");
    let other = &other[other.find("#[derive").expect("the item")..];
    let text = source(", kind = \"Test\", singular = \"city\", plural = \"tests\"", "") + other;
    let (message, _) = only_error(&text);
    assert_eq!(
        message,
        "kinds `Test` and `City` of group `g.example.com` share the name `city`"
    );
}

#[test]
fn plural_that_kube_cannot_derive_is_an_error() {
    let (message, help) = only_error(&source(", kind = \"Y\"", ""));
    assert_eq!(message, "kube cannot derive a valid plural from `y`");
    assert_eq!(
        help.as_deref(),
        Some("add `plural = \"…\"` next to `kind = \"Y\"`")
    );
    let long = format!("{}x", "a".repeat(61));
    let (message, _) = only_error(&source(&format!(", kind = \"Test\", singular = \"{long}\""), ""));
    assert_eq!(
        message,
        format!("kube cannot derive a valid plural from `{long}`")
    );
    let (_, errors) = generated(&source(", kind = \"Y\", plural = \"ys\"", ""));
    assert_eq!(errors, []);
}

#[test]
fn booleans_may_be_quoted() {
    let (files, errors) = generated(&source(
        ", kind = \"Test\", namespaced = \"true\", served = \"true\"",
        "",
    ));
    assert_eq!(errors, []);
    let crd = &files[0].1;
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    assert_eq!(crd["spec"]["versions"][0]["served"], true);
}

#[test]
fn schema_from_code_needs_a_marker() {
    let manual = ", kind = \"Test\", schema = \"manual\"";
    let (message, help) = only_error(&source(manual, ""));
    assert_eq!(message, "cannot find the `impl JsonSchema` of `Test`");
    assert_eq!(
        help.as_deref(),
        Some(
            "remove `schema = \"manual\"`, or write the schema of the spec: `#[crd(schema = { \"type\": \"object\" })]`"
        )
    );
    let (files, errors) = generated(&source(manual, "#[crd(schema = { \"type\": \"object\" })]"));
    assert_eq!(errors, []);
    let root = &files[0].1["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(root["properties"]["spec"], serde_json::json!({"type": "object"}));
}

#[test]
fn unknown_keys_and_values_are_errors() {
    let (message, help) = only_error(&source(", kind = \"Test\", schema = \"deriven\"", ""));
    assert_eq!(
        message,
        "expected `derived`, `manual` or `disabled` for `schema`, found `deriven`"
    );
    assert_eq!(help.as_deref(), Some("did you mean `derived`?"));
    let (message, help) = only_error(&source(", kind = \"Test\", struct = \"Foo\"", ""));
    assert_eq!(message, "unknown key `struct` of a kind");
    assert_eq!(help.as_deref(), Some("use `root = \"…\"`"));
}
