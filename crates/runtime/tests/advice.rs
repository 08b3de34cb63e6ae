//! The generator's advice for types with schemars' derive: the types that it suggests compile.

#[path = "../../generator/tests/advice/after.rs"]
mod after;
#[path = "../../generator/tests/advice/go_markers.rs"]
mod go_markers;

#[test]
fn suggested_types_compile_and_have_a_schema() {
    let schema = schemars::schema_for!(after::same_form::Root);
    assert_eq!(schema.as_value()["required"], serde_json::json!(["a"]));
}
