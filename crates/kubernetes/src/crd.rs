//! CustomResourceDefinitions of `apiextensions.k8s.io/v1`.
//!
//! No other code indexes `spec.versions`: `cargo xtask tidy` reports it.

use serde_json::Value;

use crate::gvk;

/// The kind of CRDs.
pub const KIND: &str = "CustomResourceDefinition";

/// A CRD as JSON, which needn't be valid. Values that are missing or have another type are empty.
#[derive(Clone, Copy, Debug)]
pub struct Crd<'a> {
    value: &'a Value,
}

/// A version of a CRD.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The name, such as `v1`.
    pub name: &'a str,
    /// Whether clients can use the version. The API server's default is `false`.
    pub is_served: bool,
    /// Whether objects are stored in this version.
    pub is_storage: bool,
    /// The whole item of `spec.versions`.
    pub value: &'a Value,
}

/// Whether an object is a CRD.
#[must_use]
pub fn is_crd(object: &Value) -> bool {
    object["kind"] == KIND
}

impl<'a> Crd<'a> {
    /// Wraps an object without checking its kind.
    #[must_use]
    pub fn of(value: &'a Value) -> Self {
        Self { value }
    }

    /// Returns `None` if the object isn't a CRD.
    #[must_use]
    pub fn read(value: &'a Value) -> Option<Self> {
        is_crd(value).then_some(Self { value })
    }

    /// Whether there is a list of versions. Patches of CRDs usually have none.
    #[must_use]
    pub fn has_versions(self) -> bool {
        self.value["spec"]["versions"].is_array()
    }

    /// The name of the object.
    #[must_use]
    pub fn name(self) -> &'a str {
        text(&self.value["metadata"]["name"])
    }

    /// The name that the object must have: `<plural>.<group>`.
    #[must_use]
    pub fn expected_name(self) -> String {
        gvk::qualify(self.plural(), self.group())
    }

    /// The group.
    #[must_use]
    pub fn group(self) -> &'a str {
        text(&self.value["spec"]["group"])
    }

    /// All names, as an object.
    #[must_use]
    pub fn names(self) -> &'a Value {
        &self.value["spec"]["names"]
    }

    /// The kind.
    #[must_use]
    pub fn kind(self) -> &'a str {
        text(&self.names()["kind"])
    }

    /// The name in URLs.
    #[must_use]
    pub fn plural(self) -> &'a str {
        text(&self.names()["plural"])
    }

    /// `Namespaced` or `Cluster`.
    #[must_use]
    pub fn scope(self) -> &'a str {
        text(&self.value["spec"]["scope"])
    }

    /// Whether objects are in namespaces. True without a valid scope.
    #[must_use]
    pub fn is_namespaced(self) -> bool {
        self.scope() != "Cluster"
    }

    /// How objects are converted, as an object.
    #[must_use]
    pub fn conversion(self) -> &'a Value {
        &self.value["spec"]["conversion"]
    }

    /// Whether a webhook converts objects.
    #[must_use]
    pub fn has_webhook(self) -> bool {
        self.conversion()["strategy"] == "Webhook"
    }

    /// All versions, in the order of the CRD.
    pub fn versions(self) -> impl Iterator<Item = Version<'a>> + Clone {
        let versions = self.value["spec"]["versions"].as_array().into_iter().flatten();
        versions.map(Version::of)
    }

    /// The served versions, in the order of the CRD.
    pub fn served(self) -> impl Iterator<Item = Version<'a>> + Clone {
        self.versions().filter(|version| version.is_served)
    }

    /// Finds a version by its name.
    #[must_use]
    pub fn version(self, name: &str) -> Option<Version<'a>> {
        self.versions().find(|version| version.name == name)
    }

    /// The version in which objects are stored.
    #[must_use]
    pub fn storage(self) -> Option<Version<'a>> {
        self.versions().find(|version| version.is_storage)
    }

    /// The versions in which objects may be stored according to the cluster. `None` if the status
    /// doesn't say so.
    #[must_use]
    pub fn stored_versions(self) -> Option<Vec<&'a str>> {
        let stored = self.value["status"]["storedVersions"].as_array()?;
        Some(stored.iter().map(text).collect())
    }
}

impl<'a> Version<'a> {
    /// Wraps an item of `spec.versions`.
    #[must_use]
    pub fn of(value: &'a Value) -> Self {
        Version {
            name: text(&value["name"]),
            is_served: value["served"] == true,
            is_storage: value["storage"] == true,
            value,
        }
    }

    /// The schema. `null` if there is none.
    #[must_use]
    pub fn schema(&self) -> &'a Value {
        &self.value["schema"]["openAPIV3Schema"]
    }

    /// The columns of tables.
    #[must_use]
    pub fn columns(&self) -> &'a [Value] {
        list(&self.value["additionalPrinterColumns"])
    }

    /// Whether `status` is a subresource.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.value["subresources"]["status"].is_object()
    }

    /// The `scale` subresource. `null` if there is none.
    #[must_use]
    pub fn scale(&self) -> &'a Value {
        &self.value["subresources"]["scale"]
    }

    /// The paths of selectable fields, e.g. `.spec.colour`.
    pub fn selectable_fields(&self) -> impl Iterator<Item = &'a str> {
        let fields = list(&self.value["selectableFields"]).iter();
        fields.filter_map(|field| field["jsonPath"].as_str())
    }

    /// Whether clients are warned of using the version.
    #[must_use]
    pub fn is_deprecated(&self) -> bool {
        self.value["deprecated"] == true
    }

    /// The warning about a deprecated version. `None` is the API server's default.
    #[must_use]
    pub fn deprecation_warning(&self) -> Option<&'a str> {
        self.value["deprecationWarning"].as_str()
    }
}

/// Returns the items of `spec.versions`.
pub fn versions_mut(crd: &mut Value) -> impl Iterator<Item = &mut Value> {
    let versions = crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    versions.into_iter().flatten()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_values_are_empty() {
        for value in [
            json!(null),
            json!({ "spec": { "group": 1, "versions": {} } }),
            json!([]),
        ] {
            let crd = Crd::of(&value);
            assert_eq!(
                (crd.group(), crd.kind(), crd.expected_name().as_str()),
                ("", "", "")
            );
            assert_eq!(crd.versions().count(), 0);
            assert!(!crd.has_versions() && Crd::read(&value).is_none());
        }
    }

    #[test]
    fn version_without_served_is_not_served() {
        let value = json!({ "spec": { "versions": [{ "name": "v1" }, { "name": "v2", "served": true }] } });
        let served: Vec<&str> = Crd::of(&value).served().map(|version| version.name).collect();
        assert_eq!(served, ["v2"]);
        assert!(Crd::of(&value).storage().is_none());
    }
}
