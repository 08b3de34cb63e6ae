//! Extracts the parts of a CRD that matter for validating objects.

use rbuilder_kubernetes::crd::{Crd, Version};
use rbuilder_schema::Schema;
use serde_json::Value;

use crate::scale::Scale;

/// A version of a kind.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The group, such as `example.com`.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Widget`.
    pub kind: String,
    /// Whether the kind is namespaced.
    pub is_namespaced: bool,
    /// The schema of the objects.
    pub schema: Schema,
    /// The schema of the version in which objects are stored, if that is another one and the server
    /// itself converts between them (strategy `None`).
    pub stored_schema: Option<Schema>,
    /// Whether `status` is a subresource.
    pub has_status: bool,
    /// The `scale` subresource.
    pub scale: Option<Scale>,
    /// The paths of selectable fields, e.g. `.spec.colour`.
    pub selectable_fields: Vec<String>,
}

impl Definition {
    /// Extracts the served versions from a `CustomResourceDefinition`.
    ///
    /// # Errors
    ///
    /// Returns a phrase if the value isn't an `apiextensions.k8s.io/v1` CRD.
    pub fn of_crd(crd: &Value) -> Result<Vec<Definition>, String> {
        let crd = Crd::of(crd);
        if !crd.has_versions() {
            return Err("expected a list for `spec.versions`".to_owned());
        }
        crd.served()
            .map(|version| Definition::of_version(crd, version))
            .collect()
    }

    /// Extracts a version of a `CustomResourceDefinition`, whether it's served or not.
    ///
    /// # Errors
    ///
    /// Returns a phrase if the value isn't an `apiextensions.k8s.io/v1` CRD.
    pub fn of_version(crd: Crd<'_>, version: Version<'_>) -> Result<Definition, String> {
        let text = |text: &str, what: &str| match text {
            "" => Err(format!("expected a string for `{what}`")),
            text => Ok(text.to_owned()),
        };
        let kind = text(crd.kind(), "spec.names.kind")?;
        let read_version = |version: Version<'_>| {
            let schema = read_schema(version.schema());
            schema.map_err(|reason| format!("the schema of {kind} {:?}: {reason}", version.name))
        };
        let stored = crd
            .storage()
            .filter(|stored| !crd.has_webhook() && stored.name != version.name);
        Ok(Definition {
            group: text(crd.group(), "spec.group")?,
            version: text(version.name, "spec.versions[].name")?,
            is_namespaced: crd.is_namespaced(),
            schema: read_version(version)?,
            stored_schema: stored.map(read_version).transpose()?,
            has_status: version.has_status(),
            scale: read_scale(version.scale()),
            selectable_fields: version.selectable_fields().map(str::to_owned).collect(),
            kind,
        })
    }
}

fn read_scale(scale: &Value) -> Option<Scale> {
    let text = |name: &str| scale[name].as_str().map(str::to_owned);
    Some(Scale {
        spec_replicas: text("specReplicasPath")?,
        status_replicas: text("statusReplicasPath")?,
        label_selector: text("labelSelectorPath"),
    })
}

/// Parses a schema from a CRD.
///
/// # Errors
///
/// Returns a phrase if the value isn't a structural schema.
pub fn read_schema(schema: &Value) -> Result<Schema, String> {
    if schema.is_null() {
        return Ok(Schema {
            preserve_unknown_fields: true,
            ..Schema::default()
        });
    }
    let mut schema = schema.clone();
    simplify(&mut schema);
    serde_json::from_value(schema).map_err(|error| error.to_string())
}

/// Removes what `Schema` can't represent: absent keywords spelled as `null` or `""`, and
/// `additionalProperties: true`, which is equivalent to an empty schema.
fn simplify(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    keywords.retain(|name, value| match name.as_str() {
        // Arbitrary values, possibly `null` or empty.
        "default" | "example" => true,
        "type" | "format" | "pattern" => !value.is_null() && *value != "",
        "additionalProperties" => !value.is_null() && *value != false,
        _ => !value.is_null(),
    });
    for (name, value) in keywords.iter_mut() {
        match (name.as_str(), &mut *value) {
            ("additionalProperties", Value::Bool(_)) => *value = Value::Object(serde_json::Map::new()),
            ("additionalProperties" | "items" | "not", value) => simplify(value),
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(simplify),
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => parts.iter_mut().for_each(simplify),
            _ => {}
        }
    }
}
