//! Prints markers.

use rbuilder_schema::{Cel, Form, KEYS, Key, Markers, Role, Schema};
use serde_json::Value;

use crate::classes::Ty;

use super::{Meta, literal, string_literal};

/// Arguments of `#[crd(…)]` for markers, except for rules, which get their own attributes.
pub(crate) fn marker_args(markers: &Markers, ty: Option<&Ty>) -> Vec<Meta> {
    let mut args = Vec::new();
    if let Some(schema) = &markers.schema {
        args.push(Meta::assign("schema", schema_literal(schema)));
    }
    let validation = validation_args(markers.stated());
    if !validation.is_empty() {
        args.push(Meta::list("validation", validation));
    }
    for (name, inner) in [("items", &markers.items), ("values", &markers.values)] {
        if let Some(inner) = inner {
            let mut nested = marker_args(inner, ty.and_then(Ty::part));
            nested.extend(inner.cel.iter().map(rule_arg));
            args.push(Meta::list(name, nested));
        }
    }
    let stated = markers.stated();
    for (name, value) in [("default", &markers.default), ("example", &stated.example)] {
        args.extend(value.as_ref().map(|value| Meta::assign(name, literal(value))));
    }
    match markers.optional {
        Some(true) => args.push(Meta::word("optional")),
        Some(false) => args.push(Meta::word("required")),
        None => {}
    }
    let topology = &markers.topology;
    if let Some(list_type) = topology.list_type {
        args.push(Meta::assign("list_type", string_literal(list_type.as_str())));
    }
    if !topology.list_map_keys.is_empty() {
        let keys = Value::from(topology.list_map_keys.clone());
        args.push(Meta::assign("list_map_keys", literal(&keys)));
    }
    if let Some(map_type) = topology.map_type {
        let name = if ty.is_some_and(Ty::is_map) {
            "map_type"
        } else {
            "struct_type"
        };
        args.push(Meta::assign(name, string_literal(map_type.as_str())));
    }
    let flags = [
        ("nullable", markers.nullable),
        ("embedded_resource", markers.embedded_resource),
        ("preserve_unknown_fields", markers.preserve_unknown_fields),
    ];
    args.extend(
        flags
            .into_iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(name, _)| Meta::word(name)),
    );
    match markers.embedded_object_meta {
        Some(true) => args.push(Meta::word("embedded_object_meta")),
        Some(false) => args.push(Meta::assign("embedded_object_meta", false)),
        None => {}
    }
    for key in KEYS.iter().filter(|key| key.role == Role::Words) {
        if let Form::Text(text) = key.form {
            let text = text.get(stated).as_ref();
            args.extend(text.map(|text| Meta::assign(key.name, string_literal(text))));
        }
    }
    if let Some(docs) = &stated.external_docs {
        let mut parts = vec![Meta::assign("url", string_literal(&docs.url))];
        parts.extend(
            docs.description
                .as_ref()
                .map(|text| Meta::assign("description", string_literal(text))),
        );
        args.push(Meta::list("external_docs", parts));
    }
    args
}

/// E.g. `cel(rule = "…", message = "…")`.
pub(crate) fn rule_arg(cel: &Cel) -> Meta {
    let mut args = vec![Meta::assign("rule", string_literal(&cel.rule))];
    let texts = [
        ("message", &cel.message),
        ("message_expression", &cel.message_expression),
        ("field_path", &cel.field_path),
    ];
    for (name, text) in texts {
        args.extend(text.as_ref().map(|text| Meta::assign(name, string_literal(text))));
    }
    args.extend(
        cel.reason
            .map(|reason| Meta::assign("reason", string_literal(reason.as_str()))),
    );
    args.extend(
        cel.optional_old_self
            .map(|is_optional| Meta::assign("optional_old_self", is_optional)),
    );
    Meta::list("cel", args)
}

fn schema_literal(schema: &Schema) -> String {
    literal(&serde_json::to_value(schema).unwrap_or_default())
}

fn validation_args(constraints: &Schema) -> Vec<Meta> {
    let stated = Key::arguments().filter(|key| key.is_set(constraints));
    let arg = |key: &Key| {
        let name = key.argument;
        Some(match key.form {
            Form::Flag(_) => Meta::word(name),
            Form::Count(count) => Meta::assign(name, (*count.get(constraints))?),
            Form::Number(number) => Meta::assign(name, number.get(constraints).as_ref()?),
            Form::Text(text) => Meta::assign(name, string_literal(text.get(constraints).as_ref()?)),
            _ => Meta::assign(name, literal(&value_of(key, constraints))),
        })
    };
    stated.filter_map(arg).collect()
}

fn value_of(key: &Key, schema: &Schema) -> Value {
    let alone = schema.only(|other| other.name == key.name);
    let mut value = serde_json::to_value(alone).unwrap_or_default();
    value[key.name].take()
}
