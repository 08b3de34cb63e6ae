//! The field path of a rule, at which the API server reports that it failed.

use rbuilder_schema::Schema;

/// Follows `.name`, and `['name']` for a name with special characters or a key of a map.
///
/// # Errors
/// The reason why the path does not lead to a field.
pub(crate) fn follow_field_path(path: &str, schema: &Schema) -> Result<(), String> {
    let mut schema = schema;
    let mut rest = path;
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
            (Some(property), _) => property,
            (None, Some(values)) if schema.properties.is_empty() => values,
            _ => return Err(format!("unknown field `{name}`")),
        };
    }
    Ok(())
}
