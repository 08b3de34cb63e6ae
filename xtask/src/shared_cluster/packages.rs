//! Compares the objects deployed in different ways (i.e. by Helm, by kustomize, and by the Operator
//! Lifecycle Manager). Each of them uses other names.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::{Deployment, SCAFFOLDED};
use crate::committed::list_files;
use crate::helm::{Helm, compare_objects};
use crate::value::{find_kind, items, parse_objects, text};

/// Environment variables of the manager which are not in all packages. This is because the
/// lifecycle manager creates the certificates of webhooks, and determines which namespaces to
/// watch.
const VARIABLES: [&str; 5] = [
    "WEBHOOK_CERT_SERVICE",
    "WEBHOOK_CERT_PATH",
    "MUTATING_WEBHOOK_CONFIGURATION",
    "VALIDATING_WEBHOOK_CONFIGURATION",
    "WATCH_NAMESPACE",
];

/// Roles that are only needed if the manager creates its own certificates. Their names end with one
/// of these.
const CERTIFICATE_ROLES: [&str; 3] = [
    "-webhook-trust-role",
    "-webhook-certificate-role",
    "-conversion-role",
];

/// Checks that the objects of a Helm release are the same as the ones of a deployment with
/// kustomize, apart from their names.
pub(super) fn compare_release(
    helm: &Helm,
    chart: &Path,
    release: &Deployment,
    kustomize: (&Deployment, &[Value]),
) -> Result<()> {
    let line = format!("template {} --namespace {}", release.prefix, release.namespace);
    let rendered = parse_objects(&helm.command(&line).arg(chart).read()?)?;
    compare_objects(&rename(&rendered, release)?, &rename(kustomize.1, kustomize.0)?)
}

/// Renames a deployment's objects, so that they have the scaffold's names.
fn rename(objects: &[Value], deployment: &Deployment) -> Result<Vec<Value>> {
    let text = serde_json::to_string(objects)?
        .replace(deployment.prefix, SCAFFOLDED.prefix)
        .replace(deployment.namespace, SCAFFOLDED.namespace);
    Ok(serde_json::from_str(&text)?)
}

/// Compares a bundle with the objects from kustomize. The CRDs, the Deployment and the rules must
/// be the same.
pub(super) fn compare_bundle(bundle: &Path, kustomize: &[Value]) -> Result<()> {
    let mut files = Vec::new();
    for path in list_files(&bundle.join("manifests"), "")? {
        files.extend(parse_objects(&fs_err::read_to_string(path)?)?);
    }
    let csv = find_kind(&files, "ClusterServiceVersion")?;
    let install = &csv["spec"]["install"]["spec"];
    let manager = find_kind(kustomize, "Deployment")?;
    ensure!(
        manager_spec(&install["deployments"][0]["spec"]) == manager_spec(&manager["spec"]),
        "the Deployment in the bundle is {:#}",
        install["deployments"][0]
    );
    compare_crd(find_kind(&files, CRD)?, find_kind(kustomize, CRD)?)?;
    compare_rules(install, kustomize)
}

const CRD: &str = "CustomResourceDefinition";

/// Returns the spec of a Deployment, but not the fields replaced by a bundle. Lists are sorted.
fn manager_spec(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let container = &mut spec["template"]["spec"]["containers"][0];
    container["image"].take();
    for list in ["env", "ports"] {
        if let Some(items) = container[list].as_array_mut() {
            items.retain(|item| VARIABLES.iter().all(|name| item["name"] != *name));
            items.sort_by_key(|item| item["name"].to_string());
        }
    }
    spec
}

/// Compares two CRDs. We ignore the conversion, because it's up to the lifecycle manager to set it.
fn compare_crd(bundle: &Value, kustomize: &Value) -> Result<()> {
    for part in ["group", "names", "scope", "versions"] {
        ensure!(
            bundle["spec"][part] == kustomize["spec"][part],
            "the CRD in the bundle has other `{part}`"
        );
    }
    Ok(())
}

fn compare_rules(install: &Value, kustomize: &[Value]) -> Result<()> {
    let bound = kustomize.iter().map(|object| text(object, "/roleRef/name"));
    let is_expected = |name: &&str| CERTIFICATE_ROLES.iter().all(|end| !name.ends_with(end));
    let bound: Vec<&str> = bound.filter(is_expected).collect();
    let roles = kustomize.iter().filter(|object| {
        let is_role = object["kind"] == "Role" || object["kind"] == "ClusterRole";
        is_role && bound.contains(&text(object, "/metadata/name"))
    });
    let permissions = items(install, "/permissions").chain(items(install, "/clusterPermissions"));
    let (kustomize, bundle) = (list_rules(roles), list_rules(permissions));
    ensure!(!kustomize.is_empty(), "no role is bound");
    ensure!(
        kustomize == bundle,
        "the bundle has the rules {bundle:#?}, and the roles have {kustomize:#?}"
    );
    Ok(())
}

fn list_rules<'a>(roles: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let rules = roles.flat_map(|role| items(role, "/rules"));
    let mut rules: Vec<String> = rules.map(Value::to_string).collect();
    rules.sort();
    rules
}
