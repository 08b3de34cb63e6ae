//! Puts the doc comments of variants into a description, because the values of an `enum` can't have
//! separate descriptions.
//!
//! The list of variants is the last paragraph in the description of the enum or of its tag, with
//! one line per variant. A field's description replaces that of its type, so the list is appended
//! to it again.

use serde_json::Value;

use crate::{Content, Schema, Tagging, Variant};

pub(crate) fn variant_docs(tagging: &Tagging, variants: &[Variant]) -> Option<String> {
    let is_named = matches!(tagging, Tagging::External | Tagging::Untagged);
    let is_unit = |variant: &Variant| variant.content == Content::Unit;
    let is_listed = match tagging {
        Tagging::External => variants.iter().any(is_unit),
        _ => variants.iter().all(is_unit),
    };
    let tagged = variants.iter().filter(|variant| !variant.untagged);
    (is_named && is_listed).then(|| list_variants(tagged)).flatten()
}

pub(crate) fn tag_docs<'a>(variants: impl Iterator<Item = &'a Variant>) -> Option<String> {
    list_variants(variants)
}

fn list_variants<'a>(variants: impl Iterator<Item = &'a Variant>) -> Option<String> {
    let line = |variant: &Variant| {
        let text = variant.description.as_ref()?;
        let words: Vec<_> = text.split_whitespace().collect();
        Some(format!("- {}: {}", variant.name, words.join(" ")))
    };
    let lines: Vec<_> = variants.filter_map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Appends the list of a field's type to the description of the field, unless it already contains
/// the list.
pub(crate) fn add_variant_docs(description: &str, schema: &Schema) -> String {
    let schemas = std::iter::once(schema)
        .chain(schema.items.as_deref())
        .chain(schema.additional_properties.as_deref());
    match schemas.filter_map(read_list).next() {
        Some(list) if !description.contains(list) => format!("{description}\n\n{list}"),
        _ => description.to_owned(),
    }
}

/// Returns the list in a schema's description: the last paragraph, if each of its lines describes
/// an allowed value.
fn read_list(schema: &Schema) -> Option<&str> {
    let description = schema.description.as_deref()?;
    let list = description.rsplit("\n\n").next()?;
    let is_about_name = |line: &str| {
        let line = line.strip_prefix("- ").unwrap_or_default();
        let names = schema.enumeration.iter().filter_map(Value::as_str);
        names
            .into_iter()
            .any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(": ")))
    };
    list.lines().all(is_about_name).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_lists_the_variants_of_its_type() {
        let schema = |description: &str| Schema {
            description: Some(description.into()),
            enumeration: vec!["Always".into(), "Never".into()],
            ..Schema::default()
        };
        let check = |schema: &Schema, field: &str, expected: &str| {
            assert_eq!(
                add_variant_docs(field, schema),
                expected,
                "{:?}",
                schema.description
            );
        };
        let list = "- Always: At each start.\n- Never: Not at all.";
        let with_list = format!("When to pull.\n\n{list}");
        let expected = format!("Policy of images.\n\n{list}");
        check(&schema(&with_list), "Policy of images.", &expected);
        check(&schema(list), "Policy of images.", &expected);
        check(&schema(&with_list), &expected, &expected);
        let of_list = Schema {
            items: Some(schema(list).into()),
            ..Schema::default()
        };
        check(&of_list, "Policy of images.", &expected);
        for other in [
            "When to pull.",
            "When:\n\n- Sometimes: maybe",
            "- Always: a\nand so on",
            "- Alwaysx: a",
        ] {
            check(&schema(other), "Policy of images.", "Policy of images.");
        }
    }
}
