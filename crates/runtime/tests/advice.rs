//! Compiles the types that the generator suggests in place of schemars' derive.

#[path = "../../generator/tests/advice/after.rs"]
mod after;
#[rustfmt::skip] // the generator compares its text
#[path = "../../generator/tests/advice/corrected.rs"]
mod corrected;
#[path = "../../generator/tests/advice/go_markers.rs"]
mod go_markers;

#[test]
fn suggested_types_compile_and_have_a_schema() {
    let schema = schemars::schema_for!(after::same_form::Root);
    assert_eq!(schema.as_value()["required"], serde_json::json!(["a"]));
}

#[test]
fn corrected_sources_compile_and_have_a_schema() {
    use kube::CustomResourceExt as _;

    // This is `minimun = 1` with the typo fixed.
    let crd = serde_json::to_value(corrected::field_40::Widget::crd()).expect("JSON");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["minimum"], 1.0);
}
