//! The part of a schema that follows from the Rust type.

use rbuilder_schema::Schema;

/// Returns the schema without the constraints of markers. `may_be_absent` returns `true` for a path
/// whose value only a marker requires.
pub fn form(schema: &Schema, path: &str, may_be_absent: &dyn Fn(&str) -> bool) -> Schema {
    let inner = |schema: &Schema, path: String| form(schema, &path, may_be_absent).into();
    let mut form = Schema {
        properties: schema
            .properties
            .iter()
            .map(|(name, property)| (name.clone(), inner(property, format!("{path}.{name}"))))
            .collect(),
        items: schema
            .items
            .as_deref()
            .map(|items| inner(items, format!("{path}[]"))),
        additional_properties: schema
            .additional_properties
            .as_deref()
            .map(|values| inner(values, format!("{path}{{}}"))),
        minimum: None,
        maximum: None,
        multiple_of: None,
        min_length: None,
        max_length: None,
        min_items: None,
        max_items: None,
        min_properties: None,
        max_properties: None,
        enumeration: Vec::new(),
        all_of: Vec::new(),
        list_type: None,
        list_map_keys: Vec::new(),
        ..schema.clone()
    };
    form.required
        .retain(|name| !may_be_absent(&format!("{path}.{name}")));
    form
}
