//! The API server's rules for structural schemas and list topology, asked before the API server is.

use crate::build::is_scalar;
use crate::{ListType, Schema, SchemaType};

/// What the API server would refuse, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Path of the value, as `.spec.items[].name`; empty for the schema itself.
    pub path: String,
    /// What is wrong, a phrase.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// Every rule that a schema breaks, in the order of its fields.
pub fn check_structural(schema: &Schema) -> Vec<Breach> {
    let mut breaches = Vec::new();
    visit(schema, String::new(), &mut breaches);
    breaches
}

fn visit(schema: &Schema, path: String, breaches: &mut Vec<Breach>) {
    let mut breach = |message: String, help: Option<String>| {
        breaches.push(Breach {
            path: path.clone(),
            message,
            help,
        });
    };
    if schema.schema_type.is_none() && !schema.int_or_string && !schema.preserve_unknown_fields {
        let help =
            "say one with `validation(type = \"…\")`, or take any content with `preserve_unknown_fields`";
        breach("the value has no type".into(), Some(help.into()));
    }
    if schema.schema_type == Some(SchemaType::Array) && schema.items.is_none() {
        breach("the list says nothing about its items".into(), None);
    }
    if schema.additional_properties.is_some() && !schema.properties.is_empty() {
        breach("an object has fields or is a map, not both".into(), None);
    }
    if schema.embedded_resource && schema.properties.is_empty() && !schema.preserve_unknown_fields {
        breach(
            "an embedded resource needs fields, or leave to have any".into(),
            None,
        );
    }
    if let Some(list_type) = schema.list_type {
        for (message, help) in check_list_map(list_type, schema) {
            breach(message, help);
        }
    }
    if schema.items.as_deref().is_some_and(|items| items.nullable)
        && matches!(schema.list_type, Some(ListType::Map | ListType::Set))
    {
        breach("items of a set or map cannot be `null`".into(), None);
    }
    for (name, property) in &schema.properties {
        visit(property, format!("{path}.{name}"), breaches);
    }
    if let Some(items) = &schema.items {
        visit(items, format!("{path}[]"), breaches);
    }
    if let Some(values) = &schema.additional_properties {
        visit(values, format!("{path}.*"), breaches);
    }
}

/// What is wrong with the merging of one list: message and help.
pub(crate) fn check_list_map(list_type: ListType, schema: &Schema) -> Vec<(String, Option<String>)> {
    let Some(items) = schema.items.as_deref() else {
        return Vec::new();
    };
    match list_type {
        ListType::Atomic => Vec::new(),
        ListType::Set => check_set(items),
        ListType::Map if items.schema_type != Some(SchemaType::Object) => {
            let help = "write `list_type = \"set\"` or `\"atomic\"`".to_owned();
            vec![(
                "items of a list of type `map` are objects, and these are none".to_owned(),
                Some(help),
            )]
        }
        ListType::Map => schema
            .list_map_keys
            .iter()
            .filter_map(|key| check_key(key, items))
            .collect(),
    }
}

fn check_set(items: &Schema) -> Vec<(String, Option<String>)> {
    let atomic = match items.schema_type {
        Some(SchemaType::Object) => items.map_type == Some(crate::MapType::Atomic),
        Some(SchemaType::Array) => items
            .list_type
            .is_none_or(|list_type| list_type == ListType::Atomic),
        _ => is_scalar(items),
    };
    if atomic {
        return Vec::new();
    }
    let help = "write `list_type = \"map\"` with keys, or `\"atomic\"`".to_owned();
    vec![(
        "items of a set are single values, and these are objects".to_owned(),
        Some(help),
    )]
}

fn check_key(key: &str, items: &Schema) -> Option<(String, Option<String>)> {
    let Some(property) = items.properties.get(key) else {
        let names: Vec<_> = items.properties.keys().map(|name| format!("`{name}`")).collect();
        return Some((
            format!("the items have no field `{key}`"),
            Some(format!("they have {}", names.join(", "))),
        ));
    };
    if !is_scalar(property) {
        return Some((format!("the key `{key}` is not a single value"), None));
    }
    if property.nullable {
        return Some((format!("the key `{key}` can be `null`"), None));
    }
    if !items.required.contains(key) && property.default.is_none() {
        let help = "make the field required, or give it a default".to_owned();
        return Some((format!("items can be without the key `{key}`"), Some(help)));
    }
    None
}
