//! Samples in `config/samples` that the CRD of their kind refuses.
//!
//! A sample is written with the kind, and stays as it is when the types change. `kubectl apply` then refuses it, and catalogs show it
//! as the example of the kind. Samples of the CRDs that a run changes are checked, and by `doctor` all of them: to parse each CRD again
//! would double the time of a run that changes nothing.

use anyhow::Result;
use rbuilder_generator::{Diagnostic, FileRange};
use rbuilder_schema::{Schema, check_created};
use serde_json::Value;

use super::layout::Layout;
use crate::plan::Plan;
use crate::tree::Tree;
use crate::yaml_stream::{is_yaml, parse_documents, read_documents};

/// The directory of samples.
const SAMPLES: &str = "config/samples";
/// The directory of a project's CRDs.
const CRDS: &str = "config/crd/bases";

/// Returns a warning for each sample that a CRD refuses which a plan creates or changes.
pub(super) fn find_refused(plan: &Plan, tree: &Tree, layout: &Layout) -> Vec<Diagnostic> {
    let changed = plan.changes().iter().filter(|(path, _)| layout.holds_crd(path));
    let crds: Vec<Value> = changed
        .filter_map(|(_, change)| change.after())
        .flat_map(|text| parse_documents(text).unwrap_or_default())
        .collect();
    check_samples(plan, tree, &crds)
}

/// Returns a warning for each sample that a CRD of the project refuses which a plan leaves as it is.
///
/// # Errors
/// Fails if a directory or a CRD cannot be read.
pub(in crate::commands) fn find_refused_before(plan: &Plan, tree: &Tree) -> Result<Vec<Diagnostic>> {
    let mut crds = Vec::new();
    for path in tree.list(CRDS)? {
        if !plan.changes().contains_key(&path) {
            let text = tree.read(&path)?.unwrap_or_default();
            crds.extend(parse_documents(&text).unwrap_or_default());
        }
    }
    Ok(check_samples(plan, tree, &crds))
}

/// Checks the samples of CRDs. What cannot be read is passed over: it is for kustomize to say, and no reason to write no manifests.
fn check_samples(plan: &Plan, tree: &Tree, crds: &[Value]) -> Vec<Diagnostic> {
    if crds.is_empty() {
        return Vec::new();
    }
    let planned = plan.changes().keys();
    let mut paths: Vec<String> = planned
        .filter(|path| path.starts_with(SAMPLES))
        .cloned()
        .collect();
    paths.extend(tree.list(SAMPLES).unwrap_or_default());
    paths.retain(|path| is_yaml(path));
    paths.sort();
    paths.dedup();
    let mut found = Vec::new();
    for path in paths {
        let Ok(Some(text)) = plan.read(tree, &path) else {
            continue;
        };
        for document in read_documents(&path, &text).unwrap_or_default() {
            let Some(schema) = find_schema(crds, &document.value) else {
                continue;
            };
            if let Err(reason) = check_object(&document.value, schema) {
                found.push(refused(&path, &text, document.line, &document.value, &reason));
            }
        }
    }
    found
}

/// Returns the schema of an object among CRDs.
fn find_schema<'a>(crds: &'a [Value], object: &Value) -> Option<&'a Value> {
    let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
    let is_its = |crd: &&Value| {
        let spec = &crd["spec"];
        spec["group"] == group && spec["names"]["kind"] == object["kind"]
    };
    let crd = crds.iter().find(is_its)?;
    let mut versions = crd["spec"]["versions"].as_array()?.iter();
    let version = versions.find(|known| known["name"] == version)?;
    Some(&version["schema"]["openAPIV3Schema"])
}

/// Checks what the schema of a kind describes: the API server checks the metadata itself, and drops a status.
fn check_object(object: &Value, schema: &Value) -> Result<(), String> {
    const OTHERS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
    let Ok(mut schema) = serde_json::from_value::<Schema>(schema.clone()) else {
        return Ok(());
    };
    schema.required.retain(|name| !OTHERS.contains(&&**name));
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        OTHERS.iter().for_each(|name| drop(fields.remove(*name)));
    }
    check_created(&object, &schema)
}

fn refused(path: &str, text: &str, line: usize, object: &Value, reason: &str) -> Diagnostic {
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, api_version) = (name(&object["kind"]), name(&object["apiVersion"]));
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let length = text[start..].lines().next().map_or(0, str::len);
    let message = format!("this sample is not a valid `{kind}` of {api_version}: {reason}");
    let help = "change the sample with the types: `kubectl apply` refuses it, and the bundle has it as the example of the kind";
    Diagnostic::warning(FileRange::new(path, start..start + length), message).help(help)
}
