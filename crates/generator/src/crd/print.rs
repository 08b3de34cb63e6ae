//! Prints schemas as YAML without an intermediate JSON value, which would copy a large schema.

use std::sync::Arc;

use rbuilder_schema::{Cel, ExternalDocs, Schema};

use crate::yaml::{Entries, Node, sort_keys};

/// Writes a schema. Keys are in the order in which Go marshals `JSONSchemaProps`; [`Schema`]
/// declares its fields in the same order.
pub(super) fn print_schema(schema: &Schema, node: Node<'_>) {
    node.map(|entries| write(schema, entries));
}

fn write(schema: &Schema, entries: &mut Entries<'_>) {
    // Destructure so that a new field cannot be forgotten.
    let Schema {
        additional_properties,
        all_of,
        any_of,
        default,
        description,
        enumeration,
        example,
        exclusive_maximum,
        exclusive_minimum,
        external_docs,
        format,
        items,
        max_items,
        max_length,
        max_properties,
        maximum,
        min_items,
        min_length,
        min_properties,
        minimum,
        multiple_of,
        not,
        nullable,
        one_of,
        pattern,
        properties,
        required,
        title,
        schema_type,
        embedded_resource,
        int_or_string,
        list_map_keys,
        list_type,
        map_type,
        preserve_unknown_fields,
        validations,
        keys: _,
        lacks_default: _,
        descriptor: _,
        drops_object_meta: _,
        is_reported: _,
        closed: _,
        weight: _,
    } = schema;
    part(entries, "additionalProperties", additional_properties);
    parts(entries, "allOf", all_of);
    parts(entries, "anyOf", any_of);
    if let Some(default) = default {
        entries.word("default").value(default);
    }
    text(entries, "description", description);
    list(entries, "enum", enumeration, |node, value| node.value(value));
    if let Some(example) = example {
        entries.word("example").value(example);
    }
    flag(entries, "exclusiveMaximum", *exclusive_maximum);
    flag(entries, "exclusiveMinimum", *exclusive_minimum);
    if let Some(docs) = external_docs {
        entries
            .word("externalDocs")
            .map(|entries| write_docs(docs, entries));
    }
    text(entries, "format", format);
    part(entries, "items", items);
    count(entries, "maxItems", *max_items);
    count(entries, "maxLength", *max_length);
    count(entries, "maxProperties", *max_properties);
    number(entries, "maximum", maximum);
    count(entries, "minItems", *min_items);
    count(entries, "minLength", *min_length);
    count(entries, "minProperties", *min_properties);
    number(entries, "minimum", minimum);
    number(entries, "multipleOf", multiple_of);
    part(entries, "not", not);
    flag(entries, "nullable", *nullable);
    parts(entries, "oneOf", one_of);
    text(entries, "pattern", pattern);
    if !properties.is_empty() {
        let mut sorted: Vec<(&str, &Schema)> =
            properties.iter().map(|(name, part)| (&**name, &**part)).collect();
        sort_keys(&mut sorted);
        entries.word("properties").map(|entries| {
            for (name, property) in sorted {
                print_schema(property, entries.key(name));
            }
        });
    }
    list(entries, "required", required, |node, name| node.text(name));
    text(entries, "title", title);
    word(
        entries,
        "type",
        schema_type.map(|schema_type| schema_type.as_str()),
    );
    flag(entries, "x-kubernetes-embedded-resource", *embedded_resource);
    flag(entries, "x-kubernetes-int-or-string", *int_or_string);
    list(
        entries,
        "x-kubernetes-list-map-keys",
        list_map_keys,
        |node, key| node.text(key),
    );
    word(
        entries,
        "x-kubernetes-list-type",
        list_type.map(|list_type| list_type.as_str()),
    );
    word(
        entries,
        "x-kubernetes-map-type",
        map_type.map(|map_type| map_type.as_str()),
    );
    flag(
        entries,
        "x-kubernetes-preserve-unknown-fields",
        *preserve_unknown_fields,
    );
    list(entries, "x-kubernetes-validations", validations, |node, rule| {
        node.map(|entries| write_rule(rule, entries));
    });
}

fn write_docs(ExternalDocs { description, url }: &ExternalDocs, entries: &mut Entries<'_>) {
    text(entries, "description", description);
    entries.word("url").text(url);
}

fn write_rule(rule: &Cel, entries: &mut Entries<'_>) {
    let Cel {
        field_path,
        message,
        message_expression,
        optional_old_self,
        reason,
        rule,
        origin: _,
        message_expression_origin: _,
        field_path_origin: _,
    } = rule;
    text(entries, "fieldPath", field_path);
    text(entries, "message", message);
    text(entries, "messageExpression", message_expression);
    if let Some(optional) = optional_old_self {
        entries.word("optionalOldSelf").flag(*optional);
    }
    word(entries, "reason", reason.map(|reason| reason.as_str()));
    entries.word("rule").text(rule);
}

fn part(entries: &mut Entries<'_>, key: &'static str, part: &Option<Arc<Schema>>) {
    if let Some(part) = part {
        print_schema(part, entries.word(key));
    }
}

fn parts(entries: &mut Entries<'_>, key: &'static str, parts: &[Schema]) {
    list(entries, key, parts, |node, part| print_schema(part, node));
}

fn list<T>(
    entries: &mut Entries<'_>,
    key: &'static str,
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    write: impl Fn(Node<'_>, T),
) {
    let items = items.into_iter();
    if items.len() > 0 {
        entries
            .word(key)
            .list(|list| items.for_each(|item| write(list.item(), item)));
    }
}

fn text(entries: &mut Entries<'_>, key: &'static str, text: &Option<impl AsRef<str>>) {
    if let Some(text) = text {
        entries.word(key).text(text.as_ref());
    }
}

fn word(entries: &mut Entries<'_>, key: &'static str, word: Option<&'static str>) {
    if let Some(word) = word {
        entries.word(key).word(word);
    }
}

fn flag(entries: &mut Entries<'_>, key: &'static str, flag: bool) {
    if flag {
        entries.word(key).flag(true);
    }
}

fn count(entries: &mut Entries<'_>, key: &'static str, count: Option<u64>) {
    if let Some(count) = count {
        entries.word(key).count(count);
    }
}

fn number(entries: &mut Entries<'_>, key: &'static str, number: &Option<serde_json::Number>) {
    if let Some(number) = number {
        entries.word(key).number(number);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::yaml;

    /// A schema in which every key is set.
    fn full() -> Value {
        let leaf = json!({ "type": "string" });
        let rule = json!({
            "fieldPath": ".a", "message": "m", "messageExpression": "'m'", "optionalOldSelf": false,
            "reason": "FieldValueInvalid", "rule": "self == 'on'",
        });
        json!({
            "additionalProperties": leaf, "allOf": [leaf], "anyOf": [leaf, {}], "default": { "b10": 1, "b9": [] },
            "description": "Two\nlines.", "enum": ["y", 1, null], "example": "1_000", "exclusiveMaximum": true,
            "exclusiveMinimum": true, "externalDocs": { "description": "d", "url": "https://example.com" },
            "format": "int64", "items": { "items": leaf }, "maxItems": 1, "maxLength": 2, "maxProperties": 3,
            "maximum": 1e21, "minItems": 4, "minLength": 5, "minProperties": 6, "minimum": -0.5, "multipleOf": 7,
            "not": {}, "nullable": true, "oneOf": [{ "required": ["z"] }], "pattern": "^a: b$",
            "properties": { "f1": leaf, "f10": leaf, "f2": leaf, "on": leaf, "": {} }, "required": ["a", "n"],
            "title": "t", "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-int-or-string": true, "x-kubernetes-list-map-keys": ["k"],
            "x-kubernetes-list-type": "map", "x-kubernetes-map-type": "granular",
            "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [rule],
        })
    }

    #[test]
    fn prints_like_serialized_schema() {
        let read: Schema = serde_json::from_value(full()).expect("a schema");
        let mut text = String::new();
        print_schema(&read, yaml::write_document(&mut text));
        assert_eq!(text, yaml::to_string(&full()));
    }
}
