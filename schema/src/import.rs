//! The schema that `schemars` makes for a leaf type to a structural one.
//!
//! `schemars` writes JSON Schema: references, `null`, formats of its own. What has a structural form gets it;
//! what has none is an error that says why.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::build::{allow_null, any, any_object, array_of, int_or_string, map_of, of_type, or_null, set_of};
use crate::known::{self, known};
use crate::{FORMATS, Schema, SchemaType, compare_numbers, refused};

/// Marks a schema that is structural already, because rbuilder made it.
pub(crate) const OWN: &str = "x-rbuilder";

/// Why a type has no structural schema.
pub(crate) type Refusal = String;

/// Reads a schema as schemars writes it, in which parts that [`mark_structural`] made are taken as they are.
///
/// # Errors
/// The reason, a phrase, if it has no structural form.
pub fn read_json_schema(value: &Value) -> Result<Schema, String> {
    import_schema(value, &Map::new(), &|_| None)
}

/// Writes a structural schema so that it can be a part of one that [`read_json_schema`] reads.
pub fn mark_structural(schema: &Schema) -> Value {
    let mut value = serde_json::to_value(schema).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        map.insert(OWN.to_owned(), Value::Bool(true));
    }
    value
}

/// Schemas of Kubernetes' types by their Rust path, where the reader has them.
pub(crate) type Kubernetes<'d> = &'d dyn Fn(&str) -> Option<Arc<Schema>>;

/// Reads one schema with the definitions that its references name.
pub(crate) fn import_schema(
    value: &Value,
    definitions: &Map<String, Value>,
    kubernetes: Kubernetes<'_>,
) -> Result<Schema, Refusal> {
    Import {
        definitions,
        kubernetes,
        path: Vec::new(),
    }
    .schema(value)
}

struct Import<'d> {
    definitions: &'d Map<String, Value>,
    kubernetes: Kubernetes<'d>,
    /// The references being followed, to see a cycle.
    path: Vec<String>,
}

impl Import<'_> {
    fn schema(&mut self, value: &Value) -> Result<Schema, Refusal> {
        let mut map = match value {
            Value::Bool(true) => return Ok(any()),
            Value::Object(map) => map.clone(),
            _ => return Err("it accepts no value".into()),
        };
        strip_null(&mut map);
        if map.remove(OWN).is_some() {
            return serde_json::from_value(Value::Object(map)).map_err(|error| error.to_string());
        }
        let mut schema = self.body(&map)?;
        keep_words(&map, &mut schema);
        Ok(schema)
    }

    /// An item of a list or a value of a map, where nothing drops a `null`.
    fn member(&mut self, value: &Value) -> Result<Arc<Schema>, Refusal> {
        let takes_null = value.as_object().is_some_and(|map| strip_null(&mut map.clone()));
        let schema = self.schema(value)?;
        Ok(if takes_null {
            or_null(schema)
        } else {
            schema.into()
        })
    }

    fn body(&mut self, map: &Map<String, Value>) -> Result<Schema, Refusal> {
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            return self.reference(reference);
        }
        if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            return Ok(int_or_string());
        }
        if SHAPE_KEYS.iter().any(|key| map.contains_key(*key)) {
            let mut schema = self.typed(map)?;
            self.combine(map, &mut schema)?;
            return Ok(schema);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(parts)) = map.get(key) {
                return self.alternatives(parts);
            }
        }
        if let Some(Value::Array(parts)) = map.get("allOf") {
            return match parts.as_slice() {
                [only] => self.schema(only),
                _ => Err("it combines several schemas with `allOf`".into()),
            };
        }
        self.typed(map)
    }

    fn reference(&mut self, reference: &str) -> Result<Schema, Refusal> {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        let kubernetes = kubernetes_path(name);
        if let Some(schema) = kubernetes.and_then(|path| known(&path).or_else(|| (self.kubernetes)(&path))) {
            return Ok(Schema::clone(&schema));
        }
        if self.path.iter().any(|earlier| earlier == name) {
            return Err(format!(
                "it contains itself: {} -> {name}",
                self.path.join(" -> ")
            ));
        }
        let Some(definition) = self.definitions.get(name) else {
            return Err(format!("its part `{name}` is not defined"));
        };
        if let Some((message, help)) = std_time(name, definition) {
            return Err(format!("{message}: {help}"));
        }
        self.path.push(name.to_owned());
        let schema = self.schema(definition);
        self.path.pop();
        schema
    }

    /// Alternatives have a structural form when they are all texts, or all objects.
    fn alternatives(&mut self, parts: &[Value]) -> Result<Schema, Refusal> {
        let parts: Vec<Schema> = parts
            .iter()
            .map(|part| self.schema(part))
            .collect::<Result<_, _>>()?;
        if let [only] = parts.as_slice() {
            return Ok(only.clone());
        }
        let is = |schema_type| move |part: &Schema| part.schema_type == Some(schema_type);
        if parts
            .iter()
            .all(|part| is(SchemaType::String)(part) && !part.enumeration.is_empty())
        {
            let enumeration = parts.into_iter().flat_map(|part| part.enumeration).collect();
            return Ok(Schema {
                enumeration,
                ..of_type(SchemaType::String)
            });
        }
        if parts.iter().all(is(SchemaType::Object)) {
            return hoist(parts);
        }
        if parts
            .iter()
            .all(|part| is(SchemaType::Integer)(part) || is(SchemaType::String)(part))
        {
            return Ok(int_or_string());
        }
        Err("it has alternatives of different types".into())
    }

    /// Adds what is said about a value beside its type: parts that constrain it, and parts that are objects, whose
    /// fields are fields of the whole.
    fn combine(&mut self, map: &Map<String, Value>, schema: &mut Schema) -> Result<(), Refusal> {
        for key in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Array(parts)) = map.get(key) else {
                continue;
            };
            let mut kept = Vec::new();
            for part in parts {
                if is_constraint(part) {
                    kept.push(Schema::from_literal(part).map_err(|_| "a part of it is not a schema")?);
                    continue;
                }
                let part = self.schema(part)?;
                if part.schema_type != Some(SchemaType::Object)
                    || schema.schema_type != Some(SchemaType::Object)
                {
                    return Err(format!("the parts of its `{key}` have types of their own"));
                }
                for (name, property) in part.properties {
                    match schema.properties.get(&name) {
                        Some(other) if *other != property => {
                            return Err(format!("its alternatives define `{name}` differently"));
                        }
                        _ => schema.properties.insert(name, property),
                    };
                }
                kept.push(Schema {
                    required: part.required,
                    ..Schema::default()
                });
            }
            // A part that says nothing holds for every value.
            let is_empty = kept.iter().all(|part| *part == Schema::default());
            match key {
                _ if is_empty => {}
                "allOf" => schema.all_of = kept,
                "anyOf" => schema.any_of = kept,
                _ => schema.one_of = kept,
            }
        }
        if let Some(not) = map.get("not").filter(|not| is_constraint(not))
            && schema.not.is_none()
        {
            schema.not = Schema::from_literal(not).ok().map(Arc::new);
        }
        Ok(())
    }

    fn typed(&mut self, map: &Map<String, Value>) -> Result<Schema, Refusal> {
        let Some(schema_type) = map.get("type") else {
            if SHAPE_KEYS.iter().any(|key| map.contains_key(*key)) {
                return Err("it has no `type`, which the API server requires".into());
            }
            return untyped(map);
        };
        let mut schema = match schema_type.as_str() {
            Some("null") => return Err("it is `null` in JSON, which a CRD cannot store".into()),
            Some("boolean") => of_type(SchemaType::Boolean),
            Some("integer") => integer(map)?,
            Some("number") => number(map),
            Some("string") => text(map),
            Some("array") => self.array(map)?,
            Some("object") => self.object(map)?,
            _ => return several_types(schema_type),
        };
        if let Some(Value::Array(allowed)) = map.get("enum") {
            schema.enumeration = allowed.clone();
        } else if let Some(only) = map.get("const") {
            schema.enumeration = vec![only.clone()];
        }
        keep_extensions(map, &mut schema);
        Ok(schema)
    }

    fn array(&mut self, map: &Map<String, Value>) -> Result<Schema, Refusal> {
        if map.contains_key("prefixItems") || map.get("items").is_some_and(Value::is_array) {
            return Err("it is a tuple; the items of a list in a CRD have one type".into());
        }
        let items = map
            .get("items")
            .map_or_else(|| Ok(any().into()), |items| self.member(items))?;
        let unique = map.get("uniqueItems") == Some(&Value::Bool(true));
        let list = if unique { set_of(items) } else { array_of(items) };
        let count = |key: &str| map.get(key).and_then(Value::as_u64);
        Ok(Schema {
            min_items: count("minItems"),
            max_items: count("maxItems"),
            ..list
        })
    }

    fn object(&mut self, map: &Map<String, Value>) -> Result<Schema, Refusal> {
        let any_key = of_type(SchemaType::String);
        let mut schema = match (map.get("additionalProperties"), map.get("patternProperties")) {
            (Some(Value::Bool(true)), _) => any_object(),
            (Some(values @ Value::Object(_)), _) => map_of(&any_key, self.member(values)?),
            // Keys of JSON are texts; a number as a key is a text of digits.
            (_, Some(Value::Object(patterns))) if !patterns.is_empty() => {
                let values = patterns.values().next().unwrap_or(&Value::Null);
                map_of(&any_key, self.member(values)?)
            }
            _ => of_type(SchemaType::Object),
        };
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, property) in properties {
                let property = self
                    .schema(property)
                    .map_err(|reason| format!("at `{name}`: {reason}"))?;
                schema.properties.insert(name.as_str().into(), property.into());
            }
        }
        if let Some(Value::Array(required)) = map.get("required") {
            schema
                .required
                .extend(required.iter().filter_map(Value::as_str).map(Arc::from));
        }
        if !schema.properties.is_empty() && schema.additional_properties.take().is_some() {
            schema.preserve_unknown_fields = true;
        }
        let count = |key: &str| map.get(key).and_then(Value::as_u64);
        schema.min_properties = count("minProperties");
        schema.max_properties = count("maxProperties");
        Ok(schema)
    }
}

/// The keys that say the type of a value.
const SHAPE_KEYS: &[&str] = &["type", "properties", "items", "additionalProperties"];

/// The keys that a part of `allOf`, `anyOf`, `oneOf` and `not` may have in a structural schema.
const CONSTRAINT_KEYS: &[&str] = &[
    "allOf",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "properties",
    "required",
];

/// Returns whether a part constrains values without saying their type.
fn is_constraint(part: &Value) -> bool {
    let all = |parts: Option<&Value>| {
        let parts = parts.and_then(Value::as_array);
        parts.is_none_or(|parts| parts.iter().all(is_constraint))
    };
    let one = |part: Option<&Value>| part.is_none_or(is_constraint);
    let Value::Object(map) = part else { return false };
    let fields = map.get("properties").and_then(Value::as_object);
    map.keys().all(|key| CONSTRAINT_KEYS.contains(&key.as_str()))
        && ["allOf", "anyOf", "oneOf"].iter().all(|key| all(map.get(*key)))
        && ["items", "not"].iter().all(|key| one(map.get(*key)))
        && fields.is_none_or(|fields| fields.values().all(is_constraint))
        && ["exclusiveMinimum", "exclusiveMaximum"]
            .iter()
            .all(|key| map.get(*key).is_none_or(Value::is_boolean))
}

/// Keeps what is said to readers, and about a value that is absent.
fn keep_words(map: &Map<String, Value>, schema: &mut Schema) {
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(Arc::from);
    schema.description = text("description").or(schema.description.take());
    schema.title = text("title").or(schema.title.take());
    let value = |key: &str| map.get(key).filter(|value| !value.is_null()).cloned();
    schema.default = value("default").or(schema.default.take());
    schema.example = value("example").or(schema.example.take());
    if map.get("nullable") == Some(&Value::Bool(true)) {
        allow_null(schema);
    }
}

/// Takes `null` out: in a CRD an optional value is absent. Says whether it was there.
fn strip_null(map: &mut Map<String, Value>) -> bool {
    let mut stripped = false;
    if let Some(Value::Array(types)) = map.get_mut("type") {
        let had = types.len();
        types.retain(|name| name != "null");
        stripped = types.len() != had;
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".into(), only);
        }
        if stripped && let Some(Value::Array(allowed)) = map.get_mut("enum") {
            allowed.retain(|value| !value.is_null());
        }
    }
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(parts)) = map.get_mut(key) else {
            continue;
        };
        let had = parts.len();
        parts.retain(|part| part.get("type") != Some(&Value::String("null".into())));
        if parts.len() != had
            && let [Value::Object(only)] = parts.as_slice()
        {
            let only = only.clone();
            map.remove(key);
            for (key, value) in only {
                map.entry(key).or_insert(value);
            }
            // What was inside may have been an option itself.
            strip_null(map);
            return true;
        }
    }
    stripped
}

/// std's duration and time, which `schemars` gives no name of their own: the fields tell them from a user's type.
fn std_time(name: &str, definition: &Value) -> Option<(&'static str, &'static str)> {
    let (path, seconds, nanoseconds) = match name {
        "Duration" => ("std::time::Duration", "secs", "nanos"),
        "SystemTime" => ("std::time::SystemTime", "secs_since_epoch", "nanos_since_epoch"),
        _ => return None,
    };
    let fields = definition.get("properties")?.as_object()?;
    let is = |field: &str, format: &str| fields.get(field).is_some_and(|schema| schema["format"] == format);
    let is_std = fields.len() == 2 && is(seconds, "uint64") && is(nanoseconds, "uint32");
    is_std.then(|| refused(path)).flatten()
}

/// `io.k8s.api.core.v1.Pod` is `k8s_openapi::api::core::v1::Pod`.
fn kubernetes_path(name: &str) -> Option<String> {
    let rest = name.strip_prefix("io.k8s.")?;
    Some(format!(
        "k8s_openapi::{}",
        rest.replace('-', "_").replace('.', "::")
    ))
}

fn untyped(map: &Map<String, Value>) -> Result<Schema, Refusal> {
    match (map.get("enum"), map.get("const")) {
        (Some(Value::Array(allowed)), _) if allowed.iter().all(Value::is_string) => Ok(Schema {
            enumeration: allowed.clone(),
            ..of_type(SchemaType::String)
        }),
        (_, Some(only @ Value::String(_))) => Ok(Schema {
            enumeration: vec![only.clone()],
            ..of_type(SchemaType::String)
        }),
        (None, None) => Ok(any()),
        _ => Err("its type cannot be inferred from its values".into()),
    }
}

fn several_types(schema_type: &Value) -> Result<Schema, Refusal> {
    let names: Vec<_> = schema_type
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    match names.as_slice() {
        ["integer", "string"] | ["string", "integer"] => Ok(int_or_string()),
        ["integer", "number"] | ["number", "integer"] => Ok(of_type(SchemaType::Number)),
        _ => Err(format!("it has several types: {}", names.join(", "))),
    }
}

/// `schemars` names the formats of integers after Rust's types.
fn integer(map: &Map<String, Value>) -> Result<Schema, Refusal> {
    let rust = match map.get("format").and_then(Value::as_str) {
        Some("int8") => "i8",
        Some("int16") => "i16",
        Some("int32") => "i32",
        Some("int64" | "int") => "i64",
        Some("uint8") => "u8",
        Some("uint16") => "u16",
        Some("uint32") => "u32",
        Some("uint64" | "uint") => "u64",
        Some("int128" | "uint128") => {
            return Err("a CRD has no format for 128-bit integers; use a string".into());
        }
        _ => "",
    };
    let mut schema = known::integer_type(rust).unwrap_or_else(|| of_type(SchemaType::Integer));
    bound(map, &mut schema);
    Ok(schema)
}

fn number(map: &Map<String, Value>) -> Schema {
    let mut schema = of_type(SchemaType::Number);
    schema.format = known_format(map);
    bound(map, &mut schema);
    schema
}

/// Bounds, of which the tighter one holds.
fn bound(map: &Map<String, Value>, schema: &mut Schema) {
    let number = |key: &str| map.get(key).and_then(Value::as_number).cloned();
    let exclusive_minimum = number("exclusiveMinimum");
    let exclusive_maximum = number("exclusiveMaximum");
    if let Some(low) = exclusive_minimum.clone().or_else(|| number("minimum"))
        && schema
            .minimum
            .as_ref()
            .is_none_or(|old| compare_numbers(&low, old).is_gt())
    {
        schema.minimum = Some(low);
        schema.exclusive_minimum = exclusive_minimum.is_some();
    }
    if let Some(high) = exclusive_maximum.clone().or_else(|| number("maximum"))
        && schema
            .maximum
            .as_ref()
            .is_none_or(|old| compare_numbers(&high, old).is_lt())
    {
        schema.maximum = Some(high);
        schema.exclusive_maximum = exclusive_maximum.is_some();
    }
    schema.multiple_of = number("multipleOf");
    if let Some(Value::Object(not)) = map.get("not") {
        let refused = not.get("const").cloned().map(|only| vec![only]);
        let refused = refused.or_else(|| not.get("enum").and_then(Value::as_array).cloned());
        schema.not = refused.map(|enumeration| {
            Arc::new(Schema {
                enumeration,
                ..Schema::default()
            })
        });
    }
}

fn text(map: &Map<String, Value>) -> Schema {
    let count = |key: &str| map.get(key).and_then(Value::as_u64);
    Schema {
        format: known_format(map),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: map.get("pattern").and_then(Value::as_str).map(Arc::from),
        ..of_type(SchemaType::String)
    }
}

/// A format that the API server does not know would make it warn on every apply. A `duration` of JSON Schema is one of
/// ISO 8601, where the API server's has no years and months.
fn known_format(map: &Map<String, Value>) -> Option<Arc<str>> {
    let format = map.get("format").and_then(Value::as_str)?;
    (FORMATS.contains(&format) && format != "duration").then(|| format.into())
}

/// Keeps the `x-kubernetes-…` extensions of a foreign `JsonSchema`, as kube's derives do.
fn keep_extensions(map: &Map<String, Value>, schema: &mut Schema) {
    let on = |key: &str| map.get(key) == Some(&Value::Bool(true));
    let read = |key: &str| map.get(key).cloned();
    schema.preserve_unknown_fields |= on("x-kubernetes-preserve-unknown-fields");
    schema.embedded_resource |= on("x-kubernetes-embedded-resource");
    if let Some(value) = read("x-kubernetes-validations") {
        schema.validations = serde_json::from_value(value).unwrap_or_default();
    }
    if let Some(value) = read("x-kubernetes-list-type") {
        schema.list_type = serde_json::from_value(value).ok();
    }
    if let Some(value) = read("x-kubernetes-list-map-keys") {
        schema.list_map_keys = serde_json::from_value(value).unwrap_or_default();
    }
    if let Some(value) = read("x-kubernetes-map-type") {
        schema.map_type = serde_json::from_value(value).ok();
    }
}

/// Alternatives that are all objects: the fields of all of them, and which go together.
fn hoist(parts: Vec<Schema>) -> Result<Schema, Refusal> {
    let mut schema = of_type(SchemaType::Object);
    for part in &parts {
        for (name, property) in &part.properties {
            match schema.properties.get(name) {
                Some(other) if other != property => {
                    return Err(format!("its alternatives define `{name}` differently"));
                }
                _ => schema.properties.insert(name.clone(), property.clone()),
            };
        }
    }
    if parts.iter().all(|part| !part.required.is_empty()) {
        let requires = |part: Schema| Schema {
            required: part.required,
            ..Schema::default()
        };
        schema.any_of = parts.into_iter().map(requires).collect();
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schemars: Value, expected: Result<Value, &str>) {
        let definitions = json!({
            "Leaf": {"type": "string", "minLength": 1},
            "Duration": {"type": "object", "required": ["secs", "nanos"], "properties": {
                "secs": {"type": "integer", "format": "uint64", "minimum": 0},
                "nanos": {"type": "integer", "format": "uint32", "minimum": 0},
            }},
            "Node": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}},
        });
        let imported = import_schema(&schemars, definitions.as_object().expect("a map"), &|_| None);
        let imported = imported.map(|schema| serde_json::to_value(schema).expect("JSON"));
        assert_eq!(imported, expected.map_err(str::to_owned), "{schemars}");
    }

    #[test]
    fn structural_forms() {
        check(
            json!(true),
            Ok(json!({"x-kubernetes-preserve-unknown-fields": true})),
        );
        check(
            json!({"type": ["string", "null"], "enum": ["A", null]}),
            Ok(json!({"type": "string", "enum": ["A"]})),
        );
        check(
            json!({"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]}),
            Ok(json!({"type": "string", "minLength": 1})),
        );
        check(
            json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255}),
            Ok(json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255})),
        );
        check(
            json!({"type": "integer", "format": "uint32", "minimum": 1}),
            Ok(json!({"type": "integer", "format": "int64", "minimum": 1, "maximum": u32::MAX})),
        );
        check(
            json!({"type": "array", "items": {"type": ["integer", "null"], "format": "int32"}}),
            Ok(json!({"type": "array", "items": {"type": "integer", "format": "int32", "nullable": true}})),
        );
        check(
            json!({"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]}}),
            Ok(
                json!({"type": "object", "additionalProperties": {"type": "string", "minLength": 1, "nullable": true}}),
            ),
        );
        for format in [
            "ip",
            "duration",
            "zoned-date-time",
            "partial-date-time",
            "partial-time",
        ] {
            check(
                json!({"type": "string", "format": format}),
                Ok(json!({"type": "string"})),
            );
        }
        for format in ["date-time", "date", "uri", "uuid"] {
            let schema = json!({"type": "string", "format": format});
            check(schema.clone(), Ok(schema));
        }
        check(
            json!({"type": "object", "additionalProperties": true}),
            Ok(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        );
        check(
            json!({"type": "object", "additionalProperties": false, "patternProperties": {"^\\d+$": {"type": "boolean"}}}),
            Ok(json!({"type": "object", "additionalProperties": {"type": "boolean"}})),
        );
        check(
            json!({"type": "object", "additionalProperties": false, "properties": {"A": {"type": "boolean"}}}),
            Ok(json!({"type": "object", "properties": {"A": {"type": "boolean"}}})),
        );
        check(
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            Ok(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})),
        );
        check(
            json!({"$ref": "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}),
            Ok(json!({"type": "string", "format": "date-time"})),
        );
        check(
            json!({"oneOf": [{"type": "string", "enum": ["A"]}, {"type": "string", "const": "B"}]}),
            Ok(json!({"type": "string", "enum": ["A", "B"]})),
        );
    }

    #[test]
    fn what_is_structural_stays_as_it_is() {
        let own = json!({
            "type": "object", "description": "d", "default": {}, "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "integer", "format": "int64", "minimum": 0}},
            "oneOf": [{"required": ["a"]}],
        });
        let mut tagged = own.clone();
        tagged[OWN] = json!(true);
        check(tagged.clone(), Ok(own.clone()));
        check(json!({"anyOf": [tagged, {"type": "null"}]}), Ok(own));
    }

    #[test]
    fn refusals() {
        check(
            json!({"type": "null"}),
            Err("it is `null` in JSON, which a CRD cannot store"),
        );
        check(
            json!({"type": "array", "prefixItems": [true]}),
            Err("it is a tuple; the items of a list in a CRD have one type"),
        );
        check(
            json!({"type": "integer", "format": "uint128"}),
            Err("a CRD has no format for 128-bit integers; use a string"),
        );
        check(
            json!({"$ref": "#/$defs/Duration"}),
            Err(
                "a `std::time::Duration` is an object of seconds and nanoseconds in JSON, not a duration as in \
                 Kubernetes: use `kube::core::Duration`, which is a string such as `1h30m`",
            ),
        );
        check(
            json!({"$ref": "#/$defs/Node"}),
            Err("at `next`: it contains itself: Node -> Node"),
        );
    }
}
