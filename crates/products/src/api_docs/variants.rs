//! Describes the variants of a tagged enum by the fields required for each tag value.

use std::sync::Arc;

use rbuilder_schema::Schema;
use serde_json::Value;

use super::fact::{Fact, inline_value};

/// One fact for each alternative that requires fields, e.g. ``if `type` is Image, required
/// `reference` ``.
///
/// Returns `None` if no field's value distinguishes the alternatives, or if they require more than
/// the presence of fields.
pub(super) fn describe_variants(branches: &[Schema]) -> Option<Vec<Fact>> {
    let tag = find_tag(branches)?;
    let facts = branches.iter().map(|branch| {
        let names: Vec<String> = branch.properties[tag]
            .enumeration
            .iter()
            .map(inline_value)
            .collect();
        let required = required_paths(branch, tag, "")?;
        Some((!required.is_empty()).then(|| Fact {
            label: format!("if {tag} is {}, required", names.join(" or ")),
            code: required.join(", "),
        }))
    });
    let facts: Option<Vec<Option<Fact>>> = facts.collect();
    Some(facts?.into_iter().flatten().collect())
}

fn find_tag(branches: &[Schema]) -> Option<&Arc<str>> {
    let (first, rest) = branches.split_first()?;
    let values = |branch: &Schema, name: &str| -> Vec<Value> {
        let field = branch.properties.get(name);
        field.map(|field| field.enumeration.clone()).unwrap_or_default()
    };
    first.properties.keys().find(|name| {
        let mut seen = values(first, name);
        !seen.is_empty()
            && !rest.is_empty()
            && rest.iter().all(|branch| {
                let own = values(branch, name);
                let is_other = !own.is_empty() && own.iter().all(|value| !seen.contains(value));
                seen.extend(own);
                is_other
            })
    })
}

/// Paths of the fields that an alternative requires, without the tag. `None` if it has other
/// constraints.
fn required_paths(schema: &Schema, tag: &str, above: &str) -> Option<Vec<String>> {
    let bare = Schema {
        required: Default::default(),
        properties: Default::default(),
        ..schema.clone()
    };
    // There are constraints other than required fields.
    if bare != Schema::default() {
        return None;
    }
    let is_tag = |name: &str| above.is_empty() && name == tag;
    let own = schema.required.iter().filter(|name| !is_tag(name));
    let mut paths: Vec<String> = own.map(|name| format!("{above}{name}")).collect();
    for (name, field) in schema.properties.iter().filter(|(name, _)| !is_tag(name)) {
        paths.extend(required_paths(field, tag, &format!("{above}{name}."))?);
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(branches: Value, expected: Option<&[&str]>) {
        let branches: Vec<Schema> = serde_json::from_value(branches).expect("schemas");
        let facts = describe_variants(&branches);
        let facts = facts.map(|facts| {
            let words = facts.iter().map(|fact| format!("{} {}", fact.label, fact.code));
            words.collect::<Vec<_>>()
        });
        let expected = expected.map(|lines| lines.iter().map(ToString::to_string).collect());
        assert_eq!(facts, expected);
    }

    #[test]
    fn describes_each_variant_with_required_fields() {
        check(
            json!([
                { "properties": { "type": { "enum": ["Image"] } }, "required": ["reference"] },
                { "properties": { "type": { "enum": ["Git", "Hg"] } }, "required": ["type", "url"] },
                { "properties": { "type": { "enum": ["Empty"] } } },
            ]),
            Some(&[
                "if type is Image, required reference",
                "if type is Git or Hg, required url",
            ]),
        );
        check(
            json!([
                { "properties": { "kind": { "enum": ["A"] }, "value": { "required": ["x"] } } },
                { "properties": { "kind": { "enum": ["B"] }, "value": { "required": ["y"] } } },
            ]),
            Some(&["if kind is A, required value.x", "if kind is B, required value.y"]),
        );
    }

    #[test]
    fn ignores_other_alternatives() {
        check(json!([{ "required": ["a"] }, { "required": ["b"] }]), None);
        check(
            json!([
                { "properties": { "type": { "enum": ["A"] } } },
                { "properties": { "type": { "enum": ["A", "B"] } } },
            ]),
            None,
        );
        // More than required fields.
        check(
            json!([
                { "properties": { "type": { "enum": ["A"] }, "size": { "minimum": 1 } } },
                { "properties": { "type": { "enum": ["B"] } } },
            ]),
            None,
        );
    }
}
