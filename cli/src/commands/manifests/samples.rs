//! Samples in `config/samples` that their CRD rejects, or that have no CRD any more.
//!
//! A sample is created with its kind and is not updated when the types change. `kubectl apply` then
//! rejects it, and catalogs show it as the example of the kind. A run only checks samples whose CRD
//! it changes, because parsing every CRD again would double the time of a run that changes nothing.
//! `doctor` checks all samples.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use rbuilder_generator::{Diagnostic, FileRange};
use rbuilder_schema::{Schema, check_created};
use serde_json::Value;

use super::Request;
use super::layout::Layout;
use crate::plan::Plan;
use crate::project::Project;
use crate::tree::Tree;
use crate::yaml_stream::{is_yaml, list_items, parse_documents, read_documents};

/// The directory of samples.
const SAMPLES: &str = "config/samples";

/// Returns a warning for each sample that is rejected by a CRD which a plan creates or changes, and
/// for each sample whose kind or version no longer has a CRD.
pub(super) fn find_refused(plan: &Plan, tree: &Tree, layout: &Layout) -> Vec<Diagnostic> {
    // Without samples, do not parse what was just generated.
    if list_samples(plan, tree).is_empty() {
        return Vec::new();
    }
    let changed = || plan.changes().iter().filter(|(path, _)| layout.holds_crd(path));
    let crds: Vec<Value> = changed()
        .filter_map(|(_, change)| change.after())
        .flat_map(read_crds)
        .collect();
    let before: Vec<Value> = changed()
        .flat_map(|(_, change)| read_crds(change.before()))
        .collect();
    if crds.is_empty() && before.is_empty() {
        return Vec::new();
    }
    let was_known = |_: &str, object: &Value| find_version(&before, object).is_some();
    check_samples(plan, tree, &crds, &was_known)
}

/// Returns a warning for each sample that is rejected by a CRD which a plan does not change, and
/// for each sample in a group of the project that has no CRD.
///
/// # Errors
/// Returns an error if the settings, a directory or a CRD cannot be read.
pub(in crate::commands) fn find_refused_before(plan: &Plan, tree: &Tree) -> Result<Vec<Diagnostic>> {
    let layout = Request::default().with_settings(tree)?.layout;
    let (mut crds, mut groups) = (Vec::new(), BTreeSet::new());
    for path in layout.list_crds(tree)? {
        let found = read_crds(&plan.read(tree, &path)?.unwrap_or_default());
        groups.extend(
            found
                .iter()
                .filter_map(|crd| Some(crd["spec"]["group"].as_str()?.to_owned())),
        );
        if !plan.changes().contains_key(&path) {
            crds.extend(found);
        }
    }
    // `find_refused` checks what the plan changes.
    let is_settled = plan.changes().keys().all(|path| !layout.holds_crd(path));
    let project = Project::read(tree)?.filter(|project| project.foreign_layout().is_none());
    let is_own = |path: &str, object: &Value| {
        let group = group_of(object).filter(|_| is_settled);
        group.is_some_and(|group| {
            groups.contains(group)
                || project
                    .as_ref()
                    .is_some_and(|project| project.has_scaffolded_for(path, group))
        })
    };
    Ok(check_samples(plan, tree, &crds, &is_own))
}

fn read_crds(text: &str) -> Vec<Value> {
    let mut documents = parse_documents(text).unwrap_or_default();
    documents.retain(|document| document["spec"]["versions"].is_array());
    documents
}

/// Returns the paths of all samples that exist after a plan.
fn list_samples(plan: &Plan, tree: &Tree) -> BTreeSet<String> {
    let planned = plan.changes().keys();
    let planned = planned.filter(|path| path.starts_with(SAMPLES)).cloned();
    let listed = tree.list(SAMPLES).unwrap_or_default();
    planned.chain(listed).filter(|path| is_yaml(path)).collect()
}

/// Checks the samples of CRDs. Samples that satisfy `is_own` must have a CRD. Skips unreadable
/// samples: kustomize reports them, and they are no reason to write no manifests.
fn check_samples(
    plan: &Plan,
    tree: &Tree,
    crds: &[Value],
    is_own: &dyn Fn(&str, &Value) -> bool,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for path in list_samples(plan, tree) {
        let Ok(Some(text)) = plan.read(tree, &path) else {
            continue;
        };
        for document in read_documents(&path, &text).unwrap_or_default() {
            let line = document.line;
            let objects = list_items(document.value);
            let is_listed = objects.len() > 1;
            for object in objects {
                let reason = match find_version(crds, &object) {
                    Some(version) => check_object(&object, version).err().map(Reason::Invalid),
                    None => is_own(&path, &object).then_some(Reason::Unknown),
                };
                let sample = match object["metadata"]["name"].as_str().filter(|_| is_listed) {
                    Some(name) => format!("the sample `{name}` in this list"),
                    None => "this sample".to_owned(),
                };
                found.extend(
                    reason.map(|reason| warn_of_sample((&path, &text, line), &sample, &object, &reason)),
                );
            }
        }
    }
    found
}

/// Why the API server rejects a sample.
enum Reason {
    Invalid(String),
    /// No CRD has its kind and version.
    Unknown,
}

/// Returns the API group of an object, or `None` for the core group.
fn group_of(object: &Value) -> Option<&str> {
    let (group, _) = object["apiVersion"].as_str()?.split_once('/')?;
    Some(group)
}

/// Returns the version of a CRD that an object uses.
fn find_version<'a>(crds: &'a [Value], object: &Value) -> Option<&'a Value> {
    let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
    let is_its = |crd: &&Value| {
        let spec = &crd["spec"];
        spec["group"] == group && spec["names"]["kind"] == object["kind"]
    };
    let versions = crds
        .iter()
        .filter(is_its)
        .flat_map(|crd| crd["spec"]["versions"].as_array());
    versions.flatten().find(|known| known["name"] == version)
}

/// Validates an object against the schema of its version. The API server validates most metadata on
/// its own, and drops the status if that is a subresource.
fn check_object(object: &Value, version: &Value) -> Result<(), String> {
    let Ok(mut schema) = serde_json::from_value::<Schema>(version["schema"]["openAPIV3Schema"].clone())
    else {
        return Ok(());
    };
    schema.embedded_resource = true;
    if let Some(metadata) = schema.properties.get_mut("metadata") {
        Arc::make_mut(metadata).preserve_unknown_fields = true;
    }
    let mut object = object.clone();
    if version["subresources"]["status"].is_object() {
        schema.required.retain(|name| &**name != "status");
        schema.properties.remove("status");
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
    }
    check_created(&object, &schema)
}

/// Returns the warning about a sample that starts on a line of a file, or about an item of a list
/// that does.
fn warn_of_sample(
    (path, text, line): (&str, &str, usize),
    sample: &str,
    object: &Value,
    reason: &Reason,
) -> Diagnostic {
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, api_version) = (name(&object["kind"]), name(&object["apiVersion"]));
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let length = text[start..].lines().next().map_or(0, str::len);
    let (message, help) = match reason {
        Reason::Invalid(reason) => (
            format!("{sample} is not a valid `{kind}` of {api_version}: {reason}"),
            "update the sample to match the types: `kubectl apply` rejects it, and the bundle contains it as the example of the kind",
        ),
        Reason::Unknown => (
            format!("{sample} is of {api_version}, and no CRD of the project has a `{kind}` there"),
            "update its `apiVersion` and `kind` to match the types, or delete it and its entry in the kustomization: `kubectl apply` rejects it",
        ),
    };
    Diagnostic::warning(FileRange::new(path, start..start + length), message).help(help)
}
