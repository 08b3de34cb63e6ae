//! Decodes `metadata` like Go's `ObjectMeta`, dropping unknown fields and empty values.

use serde_json::{Map, Value};

use crate::go;

#[derive(Debug)]
pub(crate) struct Decoded {
    /// As re-encoded by the server.
    pub(crate) value: Value,
    pub(crate) unknown: Vec<String>,
}

enum Type {
    Text,
    Integer,
    Bool,
    Time,
    /// `map[string]string`.
    Texts,
    TextList,
    List(&'static str, &'static [(&'static str, Type)]),
    Any,
}

const OWNER: &[(&str, Type)] = &[
    ("apiVersion", Type::Text),
    ("blockOwnerDeletion", Type::Bool),
    ("controller", Type::Bool),
    ("kind", Type::Text),
    ("name", Type::Text),
    ("uid", Type::Text),
];

const MANAGER: &[(&str, Type)] = &[
    ("apiVersion", Type::Text),
    ("fieldsType", Type::Text),
    ("fieldsV1", Type::Any),
    ("manager", Type::Text),
    ("operation", Type::Text),
    ("subresource", Type::Text),
    ("time", Type::Time),
];

const OBJECT_META: &[(&str, Type)] = &[
    ("annotations", Type::Texts),
    ("creationTimestamp", Type::Time),
    ("deletionGracePeriodSeconds", Type::Integer),
    ("deletionTimestamp", Type::Time),
    ("finalizers", Type::TextList),
    ("generateName", Type::Text),
    ("generation", Type::Integer),
    ("labels", Type::Texts),
    ("managedFields", Type::List("ManagedFieldsEntry", MANAGER)),
    ("name", Type::Text),
    ("namespace", Type::Text),
    ("ownerReferences", Type::List("OwnerReference", OWNER)),
    ("resourceVersion", Type::Text),
    ("selfLink", Type::Text),
    ("uid", Type::Text),
];

/// Decodes metadata. The error is Go's message about the first value of the wrong type.
pub(crate) fn decode(metadata: &Value) -> Result<Decoded, String> {
    let fields = match metadata {
        Value::Object(fields) => fields,
        Value::Null => &Map::new(),
        other => {
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                token(other)
            ));
        }
    };
    let mut unknown = Vec::new();
    let place = Place {
        structure: "ObjectMeta",
        field: String::new(),
        path: String::new(),
    };
    let value = decode_fields(fields, OBJECT_META, &place, &mut unknown)?;
    Ok(Decoded {
        value: Value::Object(value),
        unknown,
    })
}

struct Place {
    structure: &'static str,
    /// Excludes list indices, which Go doesn't print.
    field: String,
    path: String,
}

impl Place {
    fn child(&self, name: &str) -> Place {
        let join = |parent: &str| match parent.is_empty() {
            true => name.to_owned(),
            false => format!("{parent}.{name}"),
        };
        Place {
            structure: self.structure,
            field: join(&self.field),
            path: join(&self.path),
        }
    }

    fn index(&self, index: usize, structure: &'static str) -> Place {
        Place {
            structure,
            field: self.field.clone(),
            path: format!("{}[{index}]", self.path),
        }
    }

    fn mismatch(&self, value: &Value, wanted: &str) -> String {
        format!(
            "json: cannot unmarshal {} into Go struct field {}.{} of type {wanted}",
            token(value),
            self.structure,
            self.field
        )
    }
}

/// The name of a JSON value's type in Go's messages.
pub(crate) fn token(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn decode_fields(
    fields: &Map<String, Value>,
    types: &'static [(&'static str, Type)],
    place: &Place,
    unknown: &mut Vec<String>,
) -> Result<Map<String, Value>, String> {
    let mut decoded = Map::new();
    for (name, value) in sorted(fields) {
        let place = place.child(name);
        let Some((_, known)) = types.iter().find(|(known, _)| known == name) else {
            unknown.push(place.path);
            continue;
        };
        if let Some(value) = decode_value(value, known, &place, unknown)? {
            decoded.insert(name.clone(), value);
        }
    }
    Ok(decoded)
}

/// Go encodes maps in key order.
fn sorted(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = fields.iter().collect();
    entries.sort_unstable_by_key(|(name, _)| *name);
    entries
}

/// Returns `None` for empty values, which the server omits.
fn decode_value(
    value: &Value,
    known: &'static Type,
    place: &Place,
    unknown: &mut Vec<String>,
) -> Result<Option<Value>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let mismatch = |wanted: &str| Err(place.mismatch(value, wanted));
    match (known, value) {
        (Type::Any, value) => Ok(Some(value.clone())),
        (Type::Text, Value::String(text)) => Ok((!text.is_empty()).then(|| value.clone())),
        (Type::Text, _) => mismatch(if place.field == "uid" || place.field.ends_with(".uid") {
            "types.UID"
        } else {
            "string"
        }),
        (Type::Integer, Value::Number(number)) => match go::integer(number) {
            Some(integer) => Ok((integer != 0).then(|| value.clone())),
            None => Err(place
                .mismatch(value, "int64")
                .replacen("number", &format!("number {number}"), 1)),
        },
        (Type::Integer, _) => mismatch("int64"),
        (Type::Bool, Value::Bool(_)) => Ok(Some(value.clone())),
        (Type::Bool, _) => mismatch("bool"),
        (Type::Time, Value::String(text)) => match rbuilder_schema::accepts_format("date-time", text) {
            Some(false) => Err(format!(
                "parsing time {0} as \"2006-01-02T15:04:05Z07:00\": cannot parse {0} as \"2006\"",
                go::quote(text)
            )),
            _ => Ok(Some(value.clone())),
        },
        (Type::Time, _) => mismatch("string"),
        (Type::Texts, Value::Object(entries)) => decode_texts(entries, place),
        (Type::Texts, _) => mismatch("map[string]string"),
        (Type::TextList, Value::Array(items)) => decode_text_list(items, place),
        (Type::TextList, _) => mismatch("[]string"),
        (Type::List(name, types), Value::Array(items)) => decode_list(items, name, types, place, unknown),
        (Type::List(name, _), _) => mismatch(&format!("[]v1.{name}")),
    }
}

/// `null` becomes an empty string, as Go decodes it into a string field.
fn decode_texts(entries: &Map<String, Value>, place: &Place) -> Result<Option<Value>, String> {
    let mut texts = Map::new();
    for (key, value) in sorted(entries) {
        let text = match value {
            Value::String(_) => value.clone(),
            Value::Null => "".into(),
            other => return Err(place.mismatch(other, "string")),
        };
        texts.insert(key.clone(), text);
    }
    Ok((!texts.is_empty()).then_some(Value::Object(texts)))
}

fn decode_text_list(items: &[Value], place: &Place) -> Result<Option<Value>, String> {
    let mut texts = Vec::new();
    for item in items {
        texts.push(match item {
            Value::String(_) => item.clone(),
            Value::Null => "".into(),
            other => return Err(place.mismatch(other, "string")),
        });
    }
    Ok((!texts.is_empty()).then_some(Value::Array(texts)))
}

fn decode_list(
    items: &[Value],
    structure: &'static str,
    types: &'static [(&'static str, Type)],
    place: &Place,
    unknown: &mut Vec<String>,
) -> Result<Option<Value>, String> {
    let mut list = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => &Map::new(),
            other => return Err(place.mismatch(other, &format!("v1.{structure}"))),
        };
        let mut decoded = decode_fields(fields, types, &place.index(index, structure), unknown)?;
        if structure == "OwnerReference" {
            // No `omitempty` in Go.
            for name in ["apiVersion", "kind", "name", "uid"] {
                decoded.entry(name).or_insert_with(|| "".into());
            }
        }
        list.push(Value::Object(decoded));
    }
    Ok((!list.is_empty()).then_some(Value::Array(list)))
}
