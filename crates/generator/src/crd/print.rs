//! Prints schemas as YAML, without converting them to a JSON value first, which would copy a large
//! schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_schema::{Cel, ExternalDocs, KeyValue, Schema};

use crate::yaml::{Entries, Node, sort_keys};

pub(super) fn print_schema(schema: &Schema, node: Node<'_>) {
    node.map(|entries| schema.each_key(|key, value| write(value, entries.word(key))));
}

fn write(value: KeyValue<'_>, node: Node<'_>) {
    match value {
        KeyValue::Count(count) => node.count(count),
        KeyValue::Number(number) => node.number(number),
        KeyValue::Flag => node.flag(true),
        KeyValue::Text(text) => node.text(text),
        KeyValue::Texts(texts) => list(node, texts, |node, text| node.text(text)),
        KeyValue::Word(word) => node.word(word),
        KeyValue::Value(value) => node.value(value),
        KeyValue::Values(values) => list(node, values, |node, value| node.value(value)),
        KeyValue::Part(part) => print_schema(part, node),
        KeyValue::Parts(parts) => list(node, parts, |node, part| print_schema(part, node)),
        KeyValue::Fields(fields) => write_fields(fields, node),
        KeyValue::Names(names) => list(node, names, |node, name| node.text(name)),
        KeyValue::Docs(docs) => node.map(|entries| write_docs(docs, entries)),
        KeyValue::Rules(rules) => list(node, rules, |node, rule| {
            node.map(|entries| write_rule(rule, entries));
        }),
    }
}

fn write_fields(fields: &BTreeMap<Arc<str>, Arc<Schema>>, node: Node<'_>) {
    let mut sorted: Vec<(&str, &Schema)> = fields.iter().map(|(name, part)| (&**name, &**part)).collect();
    sort_keys(&mut sorted);
    node.map(|entries| {
        for (name, property) in sorted {
            print_schema(property, entries.key(name));
        }
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
    if let Some(reason) = reason {
        entries.word("reason").word(reason.as_str());
    }
    entries.word("rule").text(rule);
}

fn list<T>(node: Node<'_>, items: impl IntoIterator<Item = T>, write: impl Fn(Node<'_>, T)) {
    node.list(|list| items.into_iter().for_each(|item| write(list.item(), item)));
}

fn text(entries: &mut Entries<'_>, key: &'static str, text: &Option<impl AsRef<str>>) {
    if let Some(text) = text {
        entries.word(key).text(text.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::yaml;

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
