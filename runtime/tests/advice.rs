//! Advice of the generator for types with schemars' derive: the types that it leads to compile.

#[path = "../../generator/tests/advice/after.rs"]
mod after;
#[path = "../../generator/tests/advice/go_markers.rs"]
mod go_markers;

#[test]
fn a_type_in_each_form_has_a_schema() {
    let schema = schemars::schema_for!(after::same_form::Root);
    assert_eq!(schema.as_value()["required"], serde_json::json!(["a"]));
}
