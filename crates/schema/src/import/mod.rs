//! Turns the schemas that `schemars` makes for leaf types into structural schemas.
//!
//! `schemars` writes JSON Schema, which has references, `null` and formats of its own. We replace
//! whatever the API server would reject or warn about (e.g. unknown formats). Something that has no
//! structural form is an error that says why.
//!
//! Kubernetes types are recognized by the names of their schemas (e.g.
//! `io.k8s.api.core.v1.PodSpec`), and the caller provides the structural schema for each of them.
//! The library has them in its catalogue, and takes those of the minor version that k8s-openapi was
//! compiled for.

mod alternatives;
mod leaf;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::build::{allow_null, any, any_object, array_of, int_or_string, map_of, of_type, or_null, set_of};
use crate::known::known;
use crate::{Form, KEYS, Key, Role, Schema, SchemaType, Subject, refused};

/// Marks a schema that rbuilder made, so it's structural already.
pub(crate) const OWN: &str = "x-rbuilder";

pub(crate) type Refusal = String;

/// Reads a schema that `schemars` generated. The parts that come from [`mark_structural`] are
/// copied as they are.
///
/// # Errors
///
/// Returns a phrase that says why the schema has no structural form.
pub fn read_json_schema(value: &Value) -> Result<Schema, String> {
    import_schema(value, &Map::new(), &|_| None)
}

/// Marks a structural schema, so that [`read_json_schema`] keeps it as it is when it's part of
/// another one.
pub fn mark_structural(schema: &Schema) -> Value {
    let mut value = serde_json::to_value(schema).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        map.insert(OWN.to_owned(), Value::Bool(true));
    }
    value
}

/// Looks up the schema of a Kubernetes type by its Rust path.
pub(crate) type Kubernetes<'d> = &'d dyn Fn(&str) -> Option<Arc<Schema>>;

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
    /// The references that are being resolved. We need them to notice cycles.
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

    fn member(&mut self, value: &Value) -> Result<Arc<Schema>, Refusal> {
        // Unlike in a field, the API server doesn't drop `null` in a list or a map.
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
        // A schema that has a type can still have `anyOf` and so on, which then only add
        // constraints.
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

    fn typed(&mut self, map: &Map<String, Value>) -> Result<Schema, Refusal> {
        let Some(schema_type) = map.get("type") else {
            if SHAPE_KEYS.iter().any(|key| map.contains_key(*key)) {
                return Err("it has no `type`, which the API server requires".into());
            }
            return leaf::read_untyped(map);
        };
        let mut schema = match schema_type.as_str() {
            Some("null") => return Err("it is `null` in JSON, which a CRD cannot store".into()),
            Some("boolean") => of_type(SchemaType::Boolean),
            Some("integer") => leaf::read_integer(map)?,
            Some("number") => leaf::read_number(map),
            Some("string") => leaf::read_string(map),
            Some("array") => self.array(map)?,
            Some("object") => self.object(map)?,
            _ => return leaf::read_several_types(schema_type),
        };
        if let Some(Value::Array(allowed)) = map.get("enum") {
            schema.enumeration = allowed.clone();
        } else if let Some(only) = map.get("const") {
            schema.enumeration = vec![only.clone()];
        }
        leaf::keep_extensions(map, &mut schema);
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
        let mut list = if unique { set_of(items) } else { array_of(items) };
        leaf::read_sizes(map, Subject::List, &mut list);
        Ok(list)
    }

    fn object(&mut self, map: &Map<String, Value>) -> Result<Schema, Refusal> {
        let any_key = of_type(SchemaType::String);
        let mut schema = match (map.get("additionalProperties"), map.get("patternProperties")) {
            (Some(Value::Bool(true)), _) => any_object(),
            (Some(values @ Value::Object(_)), _) => map_of(&any_key, self.member(values)?),
            // Since keys are strings in JSON, the pattern only says that they're integers. Ignore
            // it.
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
        // A structural schema can't both have fields and be a map.
        if !schema.properties.is_empty() && schema.additional_properties.take().is_some() {
            schema.preserve_unknown_fields = true;
        }
        leaf::read_sizes(map, Subject::Object, &mut schema);
        Ok(schema)
    }
}

const SHAPE_KEYS: &[&str] = &["type", "properties", "items", "additionalProperties"];

fn keep_words(map: &Map<String, Value>, schema: &mut Schema) {
    let is_kept = |key: &&Key| key.role == Role::Words || key.name == "default";
    for key in KEYS.iter().filter(is_kept) {
        let value = map.get(key.name).filter(|value| !value.is_null());
        match (key.form, value) {
            (Form::Text(text), Some(Value::String(value))) => {
                *text.get_mut(schema) = Some(value.as_str().into());
            }
            (Form::Value(copy), Some(value)) => *copy.get_mut(schema) = Some(value.clone()),
            _ => {}
        }
    }
    if map.get("nullable") == Some(&Value::Bool(true)) {
        allow_null(schema);
    }
}

/// Removes `null`, because in a CRD an optional value is absent instead. Returns whether it was
/// there.
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
            // The inner schema may be optional, too.
            strip_null(map);
            return true;
        }
    }
    stripped
}

/// Recognizes std's `Duration` and `SystemTime` by their fields, since the names that `schemars`
/// gives them could just as well be those of a user's types.
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

/// Turns `io.k8s.api.core.v1.Pod` into `k8s_openapi::api::core::v1::Pod`.
fn kubernetes_path(name: &str) -> Option<String> {
    let rest = name.strip_prefix("io.k8s.")?;
    Some(format!(
        "k8s_openapi::{}",
        rest.replace('-', "_").replace('.', "::")
    ))
}
