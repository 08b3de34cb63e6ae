//! A deployment's namespace. `deploy` creates it if it is missing, and `undeploy` deletes it if it
//! contains no other objects.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::join_first;
use crate::cluster::{APPLY, Kubectl, describe};
use crate::shell::Shell;

/// Annotation on namespaces created by `deploy`.
///
/// It isn't one of the applied fields, so it stays when the namespace is applied again, even by
/// another tool.
const CREATED: &str = "rbuilder.dev/created-by";
const CREATED_BY: &str = "rbuilder deploy";
const NAMED: usize = 5;

/// Applies namespaces created by `deploy`, and creates missing ones. Other namespaces are left
/// alone.
pub(crate) fn apply(kubectl: &Kubectl, namespaces: &[Value], shell: &mut Shell) -> Result<()> {
    for namespace in namespaces {
        match find(kubectl, name_of(namespace))? {
            None => create(kubectl, namespace)?,
            Some(found) if is_created_by_deploy(&found) => {}
            Some(found) => {
                note_missing(&found, namespace, shell);
                continue;
            }
        }
        // Don't force conflicts: others may have set labels, e.g. for Pod Security, a mesh or a
        // team.
        match kubectl.read(&APPLY, &namespace.to_string()) {
            Ok(printed) => shell.out(&printed),
            // The first line names the fields. Drop kubectl's advice to take them over.
            Err(error) if format!("{error:#}").contains("conflict") => shell.note(&format!(
                "namespace {} stays as it is, because others set fields of it: {}\n  \
                 = help: leave these fields out of its manifest\n",
                name_of(namespace),
                format!("{error:#}").lines().next().unwrap_or_default()
            )),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn name_of(namespace: &Value) -> &str {
    namespace["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_created_by_deploy(found: &Value) -> bool {
    found["metadata"]["annotations"][CREATED] == CREATED_BY
}

fn create(kubectl: &Kubectl, namespace: &Value) -> Result<()> {
    let created = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name_of(namespace), "annotations": { CREATED: CREATED_BY } },
    });
    kubectl.read(&["create", "-f", "-"], &created.to_string())?;
    Ok(())
}

/// Prints labels and annotations of the manifest that are missing from a namespace owned by others.
fn note_missing(found: &Value, namespace: &Value, shell: &mut Shell) {
    let missing = ["labels", "annotations"].into_iter().flat_map(|list| {
        let wanted = namespace["metadata"][list].as_object().into_iter().flatten();
        let is_missing = move |(key, value): &(&String, &Value)| found["metadata"][list][*key] != **value;
        wanted
            .filter(is_missing)
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
    });
    let missing: Vec<String> = missing.collect();
    if !missing.is_empty() {
        shell.note(&format!(
            "namespace {} stays as it is, because `rbuilder deploy` did not create it: it does not get {} from its \
             manifest\n  = help: set what the manager needs of these, such as labels for Pod Security, with `kubectl label`\n",
            name_of(namespace),
            join_first(&missing, NAMED)
        ));
    }
}

/// Deletes a namespace if `deploy` created it and it only contains objects of the deployment, or if
/// the user requests it. Otherwise prints why it stays.
pub(super) fn remove(
    kubectl: &Kubectl,
    namespace: &Value,
    rendered: &[Value],
    is_asked: bool,
    shell: &mut Shell,
) -> Result<()> {
    let name = name_of(namespace);
    let Some(found) = find(kubectl, name)? else {
        return Ok(());
    };
    let reason = match is_asked {
        true => None,
        false => find_reason_to_keep(kubectl, &found, name, rendered)?,
    };
    match reason {
        None => kubectl.run(&["delete", "namespace", name, "--ignore-not-found"], "", shell),
        Some(reason) => {
            shell.note(&format!(
                "namespace {name} stays: {reason}\n  \
                 = help: `rbuilder undeploy --delete-namespace` deletes it with everything in it\n"
            ));
            Ok(())
        }
    }
}

fn find(kubectl: &Kubectl, name: &str) -> Result<Option<Value>> {
    Ok(kubectl.list(&["namespaces", name])?.into_iter().next())
}

fn find_reason_to_keep(
    kubectl: &Kubectl,
    found: &Value,
    name: &str,
    rendered: &[Value],
) -> Result<Option<String>> {
    if !is_created_by_deploy(found) {
        return Ok(Some("`rbuilder deploy` did not create it".to_owned()));
    }
    let objects = list_objects(kubectl, name)
        .with_context(|| format!("cannot tell what is left in namespace {name}, which stays"))?;
    let own = OwnObjects::of(rendered, &objects);
    let foreign = objects
        .iter()
        .filter(|object| !own.contains(object))
        .map(describe);
    let foreign: Vec<String> = foreign.collect();
    Ok((!foreign.is_empty()).then(|| format!("it contains {}", join_first(&foreign, NAMED))))
}

fn list_objects(kubectl: &Kubectl, namespace: &str) -> Result<Vec<Value>> {
    // Events and Leases aren't worth keeping, and endpoints are deleted with their Service.
    const IGNORED: [&str; 4] = [
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "endpoints",
    ];
    let resources = kubectl.read(
        &[
            "api-resources",
            "--namespaced=true",
            "--verbs=list,delete",
            "--output=name",
        ],
        "",
    )?;
    let resources = resources.lines().filter(|resource| !IGNORED.contains(resource));
    let resources = resources.collect::<Vec<_>>().join(",");
    kubectl.list(&[&resources, "--namespace", namespace])
}

struct OwnObjects<'a> {
    rendered: &'a [Value],
    /// UIDs of all objects in the namespace.
    uids: Vec<&'a Value>,
}

impl<'a> OwnObjects<'a> {
    fn of(rendered: &'a [Value], in_namespace: &'a [Value]) -> Self {
        let uids = in_namespace.iter().map(|object| &object["metadata"]["uid"]);
        Self {
            rendered,
            uids: uids.collect(),
        }
    }

    fn contains(&self, object: &Value) -> bool {
        // An owner in the same namespace is judged by itself. A cluster-scoped owner, e.g. of another
        // operator, stays, and so must what it owns.
        let references = object["metadata"]["ownerReferences"].as_array();
        let mut references = references.into_iter().flatten();
        let is_owned = references.any(|reference| self.uids.contains(&&reference["uid"]));
        let is_terminating = object["metadata"]["deletionTimestamp"].is_string();
        is_owned
            || is_terminating
            || is_default(object)
            || self.is_rendered(object)
            || self.is_created_secret(object)
    }

    fn is_rendered(&self, object: &Value) -> bool {
        let id = |object: &Value| [object["kind"].clone(), object["metadata"]["name"].clone()];
        self.rendered.iter().any(|rendered| id(rendered) == id(object))
    }

    /// Whether a Secret was created by the manager or cert-manager, i.e. a Role or a Certificate in
    /// the deployment refers to it by name.
    fn is_created_secret(&self, object: &Value) -> bool {
        let name = &object["metadata"]["name"];
        object["kind"] == "Secret"
            && self
                .rendered
                .iter()
                .any(|rendered| match rendered["kind"].as_str() {
                    Some("Certificate") => rendered["spec"]["secretName"] == *name,
                    Some("Role") => names_secret(rendered, name),
                    _ => false,
                })
    }
}

fn names_secret(role: &Value, name: &Value) -> bool {
    let contains = |list: &Value, value: &Value| list.as_array().is_some_and(|list| list.contains(value));
    let mut rules = role["rules"].as_array().into_iter().flatten();
    rules
        .any(|rule| contains(&rule["resources"], &json!("secrets")) && contains(&rule["resourceNames"], name))
}

fn is_default(object: &Value) -> bool {
    let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
    (kind == "ServiceAccount" && name == "default")
        || (kind == "ConfigMap" && name == "kube-root-ca.crt")
        || (kind == "Secret" && object["type"] == "kubernetes.io/service-account-token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_foreign_objects_keep_a_namespace() {
        let named = |kind: &str, name: &str| json!({ "kind": kind, "metadata": { "name": name } });
        let mut role = named("Role", "certificate");
        role["rules"] = json!([{ "resources": ["secrets"], "resourceNames": ["webhook-server-cert"] }]);
        let mut certificate = named("Certificate", "metrics");
        certificate["spec"] = json!({ "secretName": "metrics-server-cert" });
        let rendered = [named("Deployment", "manager"), role, certificate];
        let replica_set = json!({ "kind": "ReplicaSet", "metadata": { "name": "manager", "uid": "1" } });
        let in_namespace = [replica_set];
        let own = OwnObjects::of(&rendered, &in_namespace);
        let check = |object: Value, expected: bool| assert_eq!(own.contains(&object), expected, "{object}");
        check(named("Deployment", "manager"), true);
        check(named("Secret", "webhook-server-cert"), true);
        check(named("Secret", "metrics-server-cert"), true);
        check(named("ServiceAccount", "default"), true);
        check(named("ConfigMap", "kube-root-ca.crt"), true);
        check(named("ConfigMap", "precious"), false);
        check(named("Secret", "precious"), false);
        check(named("Deployment", "other"), false);
        let mut pod = named("Pod", "manager-1");
        check(pod.clone(), false);
        pod["metadata"]["ownerReferences"] = json!([{ "kind": "ReplicaSet", "uid": "1" }]);
        check(pod.clone(), true);
        pod["metadata"]["ownerReferences"] = json!([{ "kind": "Tenant", "uid": "2" }]);
        check(pod, false);
    }
}
