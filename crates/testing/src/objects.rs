//! Random objects that match a schema.

use std::collections::BTreeSet;
use std::mem::discriminant;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rbuilder_schema::{ListType, Schema, items_of, undo_kube_quirks, validate};
use serde_json::{Map, Value};

use super::choices::{Choices, Recipe};
use super::values::Maker;

// A schema may be unsatisfiable, so don't try forever.
const TRIES: u64 = 200;

/// Random objects that match the schema of a kind. Every run generates the same ones.
///
/// ```
/// # use rbuilder::CrdSchema;
/// # use kube::{CustomResource, CustomResourceExt};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
/// # #[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
/// # struct GreetingSpec { whom: String, #[serde(default)] schedule: Option<String> }
/// use rbuilder::testing::RandomObjects;
///
/// let greetings = RandomObjects::new(&Greeting::crd(), "v1").values("spec.schedule", ["@daily", "0 5 * * *"]);
/// for object in greetings.iter(100) {
///     let greeting: Greeting = serde_json::from_value(object).unwrap();
///     // … check a property of all objects …
/// }
/// ```
///
/// The objects respect types, bounds, formats, patterns, enums, required fields and alternatives.
/// Like objects returned by the API server, they have defaults set. CEL rules are not evaluated:
/// set [`values`](Self::values) for the fields used in a rule, or skip objects that violate it.
#[derive(Clone, Debug)]
pub struct RandomObjects {
    schema: Schema,
    identity: Map<String, Value>,
    maker: Maker,
    seed: u64,
}

/// An object for which a check fails, returned by [`RandomObjects::find_counterexample`].
#[derive(Clone, Debug)]
pub struct Counterexample<F> {
    /// The object.
    pub object: Value,
    /// The error of the check.
    pub failure: F,
    /// True if the check failed again for the same object. If false, the check is not deterministic
    /// and the object was not simplified.
    pub repeats: bool,
}

impl RandomObjects {
    /// Creates random objects for the given version of a kind.
    ///
    /// # Panics
    /// Panics if the CRD does not contain the version, or if the version has no schema.
    #[track_caller]
    pub fn new(crd: &CustomResourceDefinition, version: &str) -> Self {
        let found = crd.spec.versions.iter().find(|found| found.name == version);
        let name = &crd.spec.names.kind;
        let found = found.unwrap_or_else(|| panic!("{name} has no version {version}"));
        // kube-derive's schema differs from the one that `rbuilder manifests` generates. Use the
        // latter, because that's what the API server validates against.
        let mut found =
            serde_json::to_value(found).unwrap_or_else(|error| panic!("the CRD of {name}: {error}"));
        undo_kube_quirks(&mut found);
        let schema = found.pointer_mut("/schema/openAPIV3Schema").map(Value::take);
        let schema =
            schema.unwrap_or_else(|| panic!("{name} of {version} has no schema: derive `CrdSchema` for it"));
        let schema = serde_json::from_value(schema);
        let mut schema: Schema = schema.unwrap_or_else(|error| panic!("the schema of {name}: {error}"));
        // `identity` below provides these, so don't generate them as well.
        for stanza in ["apiVersion", "kind", "metadata"] {
            schema.properties.remove(stanza);
            schema.required.remove(stanza);
        }
        let mut metadata =
            serde_json::json!({ "name": "sample", "uid": "3f0e1a4c-0c5e-4b1b-9a3e-6b7a2d1c8f90" });
        if crd.spec.scope == "Namespaced" {
            metadata["namespace"] = "default".into();
        }
        let identity = serde_json::json!({
            "apiVersion": format!("{}/{version}", crd.spec.group), "kind": name, "metadata": metadata,
        });
        let identity = identity.as_object().cloned().unwrap_or_default();
        Self {
            schema,
            identity,
            maker: Maker::default(),
            seed: 0,
        }
    }

    /// Restricts the field at `path` to these values. Examples of paths: `spec.schedule`,
    /// `spec.containers[].image` (in each item), `spec.labels{}` (each value of a map). An optional
    /// field may still be absent; see [`always`](Self::always).
    ///
    /// # Panics
    /// Panics if `values` is empty.
    #[track_caller]
    pub fn values<T: Into<Value>>(mut self, path: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        assert!(!values.is_empty(), "no values for {path}");
        self.maker.values.insert(format!(".{path}"), values);
        self
    }

    /// Sets an optional field to a non-null value in every object.
    pub fn always(mut self, path: &str) -> Self {
        self.maker.present.insert(format!(".{path}"));
        self
    }

    /// Sets the seed. Defaults to 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Returns the first `count` objects.
    ///
    /// # Panics
    /// The iterator panics if it fails to generate an object that matches the schema.
    pub fn iter(&self, count: u32) -> impl Iterator<Item = Value> + '_ {
        (0..count).map(|number| self.make(number).0)
    }

    /// Runs `check` on the first `count` objects. If it fails, returns the simplest object found
    /// for which it fails with the same variant of the enum `F`.
    ///
    /// # Panics
    /// Panics if it fails to generate an object that matches the schema.
    pub fn find_counterexample<F>(
        &self,
        count: u32,
        mut check: impl FnMut(&Value) -> Result<(), F>,
    ) -> Option<Counterexample<F>> {
        (0..count).find_map(|number| {
            let (object, recipe) = self.make(number);
            let failure = check(&object).err()?;
            let first = Counterexample {
                object,
                failure,
                repeats: false,
            };
            Some(self.simplify(first, recipe, &mut check))
        })
    }

    fn simplify<F>(
        &self,
        first: Counterexample<F>,
        recipe: Recipe,
        check: &mut impl FnMut(&Value) -> Result<(), F>,
    ) -> Counterexample<F> {
        let variant = discriminant(&first.failure);
        let mut fail = |choices: &mut Choices| {
            let object = self.make_from(choices).ok()?;
            let failure = check(&object).err()?;
            (discriminant(&failure) == variant).then_some(Counterexample {
                object,
                failure,
                repeats: true,
            })
        };
        // `fail` returns `None` if the check passes now, i.e. if it isn't deterministic.
        let simplest = recipe.simplest(|choices| fail(choices).is_some());
        fail(&mut simplest.choices()).unwrap_or(first)
    }

    fn make(&self, number: u32) -> (Value, Recipe) {
        let mut last = String::new();
        for attempt in 0..TRIES {
            // Seed each object by its index, so that it does not depend on how many attempts the
            // objects before it needed.
            let mut choices = Choices::random(self.seed ^ (u64::from(number) << 20) ^ attempt);
            match self.make_from(&mut choices) {
                Ok(object) => return (object, choices.into_recipe()),
                Err(reason) => last = reason,
            }
        }
        panic!(
            "no object of {} {} was found that fits the schema: {last}; give `values` that do",
            self.identity["kind"], self.identity["apiVersion"]
        )
    }

    fn make_from(&self, choices: &mut Choices) -> Result<Value, String> {
        let made = self.maker.value(&self.schema, "", choices);
        let labels = [("labels", "app"), ("annotations", "example.com/note")];
        let mut whole = self.identity.clone();
        for (what, key) in labels {
            if choices.maybe(3, |_| ()).is_some() {
                whole["metadata"][what] = serde_json::json!({ key: "a" });
            }
        }
        let settled = self.admit(made)?;
        whole.extend(settled.as_object().cloned().unwrap_or_default());
        Ok(Value::Object(whole))
    }

    /// Returns an object as the API server would store it: unknown fields and disallowed nulls are
    /// removed, and defaults are set. CEL rules, patterns and formats are not checked.
    ///
    /// # Errors
    /// Returns the reason why the API server would reject the object.
    pub fn admit(&self, object: Value) -> Result<Value, String> {
        let mut object = object;
        let mut identity = Map::new();
        if let Value::Object(fields) = &mut object {
            for stanza in ["apiVersion", "kind", "metadata"] {
                identity.extend(fields.remove_entry(stanza));
            }
        }
        settle(&mut object, &self.schema);
        validate(&object, &self.schema)?;
        check_extensions(&object, &self.schema)?;
        if let Value::Object(fields) = &mut object {
            fields.extend(identity);
        }
        Ok(object)
    }
}

fn settle(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => settle_fields(fields, schema),
        Value::Array(items) => {
            if let Some(inner) = items_of(schema) {
                items.iter_mut().for_each(|item| settle(item, &inner));
            }
        }
        _ => {}
    }
}

fn settle_fields(fields: &mut Map<String, Value>, schema: &Schema) {
    let keeps = |name: &str| {
        schema.preserve_unknown_fields
            || schema.embedded_resource && ["apiVersion", "kind", "metadata"].contains(&name)
    };
    fields.retain(|name, value| match inner(schema, name) {
        Some(inner) => !value.is_null() || inner.nullable,
        None => keeps(name),
    });
    for (name, property) in &schema.properties {
        if let Some(default) = &property.default
            && !fields.contains_key(&**name)
        {
            fields.insert(name.to_string(), default.clone());
        }
    }
    // Defaults may be partial (e.g. `{}` for an object with defaults of its own), so visit them
    // too.
    for (name, value) in fields.iter_mut() {
        if let Some(inner) = inner(schema, name) {
            settle(value, inner);
        }
    }
}

fn inner<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    schema
        .properties
        .get(name)
        .or(schema.additional_properties.as_ref())
        .map(|inner| &**inner)
}

// `validate` knows plain JSON schema only. This adds the checks for `x-kubernetes-list-type` and
// `x-kubernetes-embedded-resource`.
fn check_extensions(value: &Value, schema: &Schema) -> Result<(), String> {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource && !["apiVersion", "kind"].iter().all(|key| fields.contains_key(*key))
            {
                return Err("an embedded resource has no apiVersion or kind".into());
            }
            for (name, value) in fields {
                if let Some(inner) = inner(schema, name) {
                    check_extensions(value, inner)?;
                }
            }
        }
        Value::Array(items) => {
            let keys = items.iter().filter_map(|item| item_identity(item, schema));
            let keys: Vec<String> = keys.collect();
            if keys.iter().collect::<BTreeSet<_>>().len() != keys.len() {
                return Err("a list contains an item twice".into());
            }
            if let Some(inner) = &schema.items {
                items.iter().try_for_each(|item| check_extensions(item, inner))?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns the key that must be unique among the items of a list, or `None` for atomic lists, which
/// may contain duplicates.
pub(super) fn item_identity(item: &Value, list: &Schema) -> Option<String> {
    match list.list_type {
        Some(ListType::Set) => Some(item.to_string()),
        Some(ListType::Map) => {
            let keys = list.list_map_keys.iter();
            let values = keys.map(|key| item.get(key).map(Value::to_string).unwrap_or_default());
            Some(values.collect::<Vec<_>>().join(","))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_status_becomes_default() {
        let status = json!({ "type": "object", "nullable": true, "default": { "observedGeneration": -1 },
            "properties": { "observedGeneration": { "type": "integer" } } });
        let crd = serde_json::from_value(json!({ "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "kind": "Foo", "plural": "foos" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": { "type": "object", "properties": { "status": status } } } }],
        } }));
        let objects = RandomObjects::new(&crd.unwrap(), "v1");
        let admitted = objects.admit(json!({ "status": null })).unwrap();
        assert_eq!(admitted, json!({ "status": { "observedGeneration": -1 } }));
    }
}
