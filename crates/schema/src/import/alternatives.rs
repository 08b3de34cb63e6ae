//! `oneOf`, `anyOf` and `allOf`, which either replace a type or add constraints to it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Import, Refusal};
use crate::build::{int_or_string, of_type};
use crate::{Key, Role, Schema, SchemaType};

impl Import<'_> {
    /// Converts alternatives. These only have a structural form if all of them are strings, all of
    /// them are objects, or they are just integers and strings.
    pub(super) fn alternatives(&mut self, parts: &[Value]) -> Result<Schema, Refusal> {
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

    /// Adds constraints alongside a type. If a part is an object, its fields are merged as well.
    pub(super) fn combine(&mut self, map: &Map<String, Value>, schema: &mut Schema) -> Result<(), Refusal> {
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
            // An empty part accepts every value, so if all parts are empty, there's nothing to add.
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
}

/// Returns whether a part constrains values without specifying their type.
fn is_constraint(part: &Value) -> bool {
    let all = |parts: Option<&Value>| {
        let parts = parts.and_then(Value::as_array);
        parts.is_none_or(|parts| parts.iter().all(is_constraint))
    };
    let one = |part: Option<&Value>| part.is_none_or(is_constraint);
    let Value::Object(map) = part else { return false };
    let fields = map.get("properties").and_then(Value::as_object);
    map.keys()
        .all(|key| Key::named(key).is_some_and(|key| key.role == Role::Constraint))
        && ["allOf", "anyOf", "oneOf"].iter().all(|key| all(map.get(*key)))
        && ["items", "not"].iter().all(|key| one(map.get(*key)))
        && fields.is_none_or(|fields| fields.values().all(is_constraint))
        && ["exclusiveMinimum", "exclusiveMaximum"]
            .iter()
            .all(|key| map.get(*key).is_none_or(Value::is_boolean))
}

/// Merges alternatives that are objects into one object with the fields of all of them. `anyOf`
/// then lists the required fields of each.
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
    // A part without requirements matches every object, so `anyOf` would be a no-op.
    if parts.iter().all(|part| !part.required.is_empty()) {
        let requires = |part: Schema| Schema {
            required: part.required,
            ..Schema::default()
        };
        schema.any_of = parts.into_iter().map(requires).collect();
    }
    Ok(schema)
}
