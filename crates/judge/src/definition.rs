//! Extracts the parts of a CRD that matter for validating objects.

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
        let versions = crd["spec"]["versions"]
            .as_array()
            .ok_or("expected a list for `spec.versions`")?;
        let served = versions.iter().filter(|version| version["served"] != false);
        served
            .map(|version| Definition::of_version(crd, version))
            .collect()
    }

    /// Extracts an item of `spec.versions` from a `CustomResourceDefinition`, whether it's served
    /// or not.
    ///
    /// # Errors
    ///
    /// Returns a phrase if the value isn't an `apiextensions.k8s.io/v1` CRD.
    pub fn of_version(crd: &Value, version: &Value) -> Result<Definition, String> {
        let spec = &crd["spec"];
        let text = |value: &Value, what: &str| {
            let text = value.as_str().map(str::to_owned);
            text.ok_or_else(|| format!("expected a string for `{what}`"))
        };
        let (group, kind) = (
            text(&spec["group"], "spec.group")?,
            text(&spec["names"]["kind"], "spec.names.kind")?,
        );
        let name = text(&version["name"], "spec.versions[].name")?;
        let read_version = |version: &Value| {
            let schema = read_schema(&version["schema"]["openAPIV3Schema"]);
            schema.map_err(|reason| format!("the schema of {kind} {}: {reason}", version["name"]))
        };
        let is_converted_by_server = spec["conversion"]["strategy"] != "Webhook";
        let mut versions = spec["versions"].as_array().into_iter().flatten();
        let stored = versions
            .find(|version| version["storage"] == true)
            .filter(|stored| is_converted_by_server && stored["name"] != name.as_str());
        let selectable = version["selectableFields"].as_array().into_iter().flatten();
        Ok(Definition {
            group: group.clone(),
            kind: kind.clone(),
            version: name.clone(),
            is_namespaced: spec["scope"] != "Cluster",
            schema: read_version(version)?,
            stored_schema: stored.map(read_version).transpose()?,
            has_status: version["subresources"]["status"].is_object(),
            scale: read_scale(&version["subresources"]["scale"]),
            selectable_fields: selectable
                .filter_map(|field| Some(field["jsonPath"].as_str()?.to_owned()))
                .collect(),
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
