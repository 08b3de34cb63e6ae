//! The `fieldPath` of a rule: the field that the API server reports when the rule fails.

use rbuilder_schema::Schema;

/// Checks that a path leads to a field. Steps are `.name`, or `['name']` for map keys and names
/// with special characters.
pub(crate) fn follow_field_path(path: &str, schema: &Schema) -> Result<(), String> {
    normalize_field_path(path, schema).map(|_| ())
}

/// Normalizes a path to the API server's notation, e.g. `a.b` for `.a.b` and `a[b]` for the key `b`
/// of the map `a`.
pub(crate) fn normalize_field_path(path: &str, schema: &Schema) -> Result<String, String> {
    let mut schema = schema;
    let mut rest = path;
    let mut shown = String::new();
    while !rest.is_empty() {
        let name = if let Some(after) = rest.strip_prefix("['") {
            let end = after.find("']").ok_or("expected `']` after a name in brackets")?;
            rest = &after[end + 2..];
            &after[..end]
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            rest = &after[end..];
            &after[..end]
        } else {
            return Err("expected `.name` or `['name']`".to_owned());
        };
        schema = match (
            schema.properties.get(name),
            schema.additional_properties.as_deref(),
        ) {
            (Some(property), _) => {
                if !shown.is_empty() {
                    shown.push('.');
                }
                shown.push_str(name);
                property
            }
            (None, Some(values)) if schema.properties.is_empty() => {
                shown.push_str(&format!("[{name}]"));
                values
            }
            _ => return Err(format!("unknown field `{name}`")),
        };
    }
    Ok(shown)
}
