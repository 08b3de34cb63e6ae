//! Imports a kind into a project with separate files for each kind: the source of each version, and
//! a sample.

use std::collections::BTreeSet;
use std::sync::Arc;

use rbuilder_catalogue::Minor;
use rbuilder_schema::{CsvMarkers, Schema};
use serde_json::{Map, Value};

use crate::Diagnostic;
use crate::definition::{Definition, Version};
use crate::file::Module;
use crate::recognize::KubernetesTypes;
use crate::repeated::merge_repeated;
use crate::sample::sample_value;
use crate::words::object_name;

/// A kind, and the source of its types.
#[derive(Clone, Debug)]
pub struct ImportedKind {
    /// API group, e.g. `shop.example.com`.
    pub group: String,
    /// Kind, e.g. `Gadget`.
    pub kind: String,
    /// Struct of the whole object, named after the kind unless that name is reserved.
    pub object: String,
    /// Resource name, e.g. `gadgets`.
    pub plural: String,
    /// Whether the kind is namespaced.
    pub is_namespaced: bool,
    /// Whether a webhook converts objects between versions.
    pub is_converted: bool,
    /// Versions, sorted by name.
    pub versions: Vec<ImportedVersion>,
    /// Warnings for everything that could not be preserved.
    pub warnings: Vec<Diagnostic>,
}

/// A version of a kind.
#[derive(Clone, Debug)]
pub struct ImportedVersion {
    /// Name, e.g. `v1alpha1`.
    pub name: String,
    /// Whether this is the storage version.
    pub is_stored: bool,
    /// Source of its types.
    pub text: String,
    /// Descriptors without a field, as `spec` or `status` and the path.
    pub unplaced: BTreeSet<(&'static str, String)>,
    /// A sample object without `apiVersion`, `kind` and `metadata`.
    pub sample: Map<String, Value>,
}

/// Writes the types of all versions of a definition.
///
/// `minor` is the Kubernetes version that the program enables in k8s-openapi. `csv` contains the
/// `#[csv(…)]` markers of the versions.
///
/// # Errors
/// Returns the problems in the definition.
pub fn import_kind(
    document: &Value,
    minor: Minor,
    csv: &[CsvMarkers],
) -> Result<ImportedKind, Vec<Diagnostic>> {
    let mut found = Vec::new();
    let definition = match Definition::read(document.clone(), &mut found) {
        Ok(definition) if !found.iter().any(Diagnostic::is_error) => definition,
        Ok(_) => return Err(found),
        Err(error) => {
            found.push(error);
            return Err(found);
        }
    };
    let kubernetes = KubernetesTypes::new(minor);
    let mut versions = Vec::new();
    for version in &definition.versions {
        let mut module = Module::new(&definition, version, &kubernetes);
        module.finish();
        let markers = csv.iter().find(|markers| markers.version == version.name);
        let unplaced = markers.map(|markers| module.describe(markers));
        found.extend(module.warnings());
        versions.push(ImportedVersion {
            name: version.name.clone(),
            is_stored: version.is_stored,
            text: module.print(),
            unplaced: unplaced.unwrap_or_default(),
            sample: sample_of(version),
        });
    }
    Ok(ImportedKind {
        group: definition.group.clone(),
        kind: definition.names.kind.clone(),
        object: object_name(&definition.names.kind),
        plural: definition.names.plural.clone(),
        is_namespaced: definition.is_namespaced,
        is_converted: definition.conversion.is_some(),
        versions,
        warnings: merge_repeated(found),
    })
}

/// A sample without the status and the fields common to all objects.
fn sample_of(version: &Version) -> Map<String, Value> {
    let mut schema: Schema = version.schema.clone();
    for name in ["apiVersion", "kind", "metadata", "status"] {
        schema.properties.remove(name);
        schema.required.remove(name);
    }
    if schema.properties.contains_key("spec") {
        // Even if the spec is optional, kube's types always have one.
        schema.required.insert(Arc::from("spec"));
    }
    match sample_value(&schema, "") {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
