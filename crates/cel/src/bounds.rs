//! Help for rules that exceed the budget: suggests size limits missing from the schema.

use rbuilder_schema::{Schema, SchemaType};

#[derive(Clone)]
pub(crate) struct MissingBound {
    pub(crate) path: String,
    /// The validation to add, e.g. `max_items`.
    pub(crate) bound: &'static str,
}

impl MissingBound {
    fn describe(&self) -> String {
        let path = if self.path.is_empty() { "." } else { &self.path };
        format!("`{}` to `{path}`", self.bound)
    }
}

/// Help for a rule that exceeds the budget: suggests up to four bounds. `unbounded` is the
/// innermost unbounded list or map around the value.
pub(crate) fn advise_bounds(schema: &Schema, path: &str, unbounded: Option<&MissingBound>) -> String {
    let mut missing: Vec<MissingBound> = unbounded.into_iter().cloned().collect();
    collect_missing(schema, path, &mut missing);
    missing.truncate(4);
    if missing.is_empty() {
        return "simplify the rule, or lower the bounds of the lists, maps and strings it reads".to_owned();
    }
    let bounds: Vec<String> = missing.iter().map(MissingBound::describe).collect();
    format!("bound the values it reads: add {}", bounds.join(", "))
}

fn collect_missing(schema: &Schema, path: &str, missing: &mut Vec<MissingBound>) {
    let bound = match schema.schema_type {
        Some(SchemaType::Array) if schema.max_items.is_none() => Some("max_items"),
        Some(SchemaType::String) if schema.max_length.is_none() && !has_fixed_size(schema) => {
            Some("max_length")
        }
        Some(SchemaType::Object)
            if schema.additional_properties.is_some() && schema.max_properties.is_none() =>
        {
            Some("max_properties")
        }
        _ => None,
    };
    missing.extend(bound.map(|bound| MissingBound {
        path: path.to_owned(),
        bound,
    }));
    if let Some(items) = &schema.items {
        collect_missing(items, &format!("{path}[]"), missing);
    }
    if let Some(values) = &schema.additional_properties {
        collect_missing(values, &format!("{path}.*"), missing);
    }
    for (name, property) in &schema.properties {
        // Only a few are shown, so don't traverse the rest of a large schema.
        if missing.len() > 8 {
            return;
        }
        collect_missing(property, &format!("{path}.{name}"), missing);
    }
}

/// Returns true if strings have a known size even without `max_length`.
fn has_fixed_size(schema: &Schema) -> bool {
    !schema.enumeration.is_empty()
        || matches!(schema.format.as_deref(), Some("date" | "date-time" | "duration"))
}
