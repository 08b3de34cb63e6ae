//! Compares the table of `rbuilder import` with what kustomize renders for both projects. If a row
//! says that an object is the same or better, this must be true in a cluster. Like the tests of the
//! scaffold's manifests, this needs kubectl.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::import::{import, original};
use crate::kustomize::{find, has_kubectl, render};
use crate::support::Folder;

/// These are the roles and bindings of kubebuilder's scaffold, and others for a separate agent.
const RBAC: &str = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager-role}
subjects: [{kind: ServiceAccount, name: kitchen, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader-election-role}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch, create, update, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader-election-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader-election-role}
subjects: [{kind: ServiceAccount, name: kitchen, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cup-reader}
rules:
- {apiGroups: [crew.example.com], resources: [cups], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: agent-role}
rules:
- {apiGroups: [crew.example.com], resources: [cups], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: agent-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: agent-role}
subjects: [{kind: ServiceAccount, name: agent, namespace: system}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent}
"#;

/// kustomize can render the deployment of this project.
fn deployed() -> Folder {
    let original = original();
    original.write("config/rbac/more.yaml", RBAC);
    for (folder, files) in [
        ("crd", "bases/crew.example.com_cups.yaml"),
        ("rbac", "service_account.yaml, role.yaml, more.yaml"),
        ("manager", "manager.yaml"),
        ("webhook", "manifests.yaml"),
    ] {
        let text = format!("resources: [{files}]\n");
        original.write(&format!("config/{folder}/kustomization.yaml"), &text);
    }
    let path = "config/default/kustomization.yaml";
    let text = original.tree()[path].replace("- ../crd\n", "- ../crd\n- ../webhook\n");
    original.write(path, &text);
    original
}

/// Leaves out descriptions, and metadata that makes no difference to clients.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| *name != "description" || !value.is_string())
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect(),
        Value::Array(items) => items.iter().map(plain).collect(),
        value => value.clone(),
    }
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Returns the permissions of all roles that are bound to the account, one per line.
fn granted(objects: &[Value], account: &str) -> BTreeSet<String> {
    let has_account = |binding: &&Value| {
        let mut subjects = binding["subjects"].as_array().into_iter().flatten();
        subjects.any(|subject| subject["name"] == account)
    };
    let mut found = BTreeSet::new();
    for binding in objects.iter().filter(has_account) {
        let role = &binding["roleRef"];
        let (kind, name) = (role["kind"].as_str(), role["name"].as_str());
        let role = find(objects, kind.expect("a kind"), name.expect("a name"));
        found.extend(permissions(role));
    }
    found
}

fn permissions(role: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for group in strings(&rule["apiGroups"]) {
            for resource in strings(&rule["resources"]) {
                for verb in strings(&rule["verbs"]) {
                    found.insert(format!("{verb} {group}/{resource}"));
                }
            }
        }
    }
    found
}

#[test]
fn rows_are_true_of_the_rendered_manifests() {
    if !has_kubectl() {
        return;
    }
    let original = deployed();
    let (folder, ran) = import(&original);
    ran.ok();
    let ran = folder
        .run(&format!("import {} --output json", original.path().display()))
        .ok();
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    let (theirs, ours) = (
        render(&original, "config/default"),
        render(&folder, "config/default"),
    );
    let both = |kind: &str, name: &str| (find(&theirs, kind, name), find(&ours, kind, name));
    let deployments = both("Deployment", "cups-barista");
    let mut checked = BTreeSet::new();
    for row in answer["table"].as_array().expect("a table") {
        let (what, result) = (row["what"].as_str().expect("a name"), &row["result"]);
        let details = row["details"].to_string();
        if result == "by hand" {
            continue;
        }
        let same = |pointer: &str| {
            let (before, after) = (deployments.0.pointer(pointer), deployments.1.pointer(pointer));
            assert_eq!(before, after, "{what}");
        };
        match what.split(' ').collect::<Vec<_>>().as_slice() {
            ["CRD", name] => {
                let (before, after) = both("CustomResourceDefinition", name);
                let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
                assert_eq!(
                    before.pointer(schema).map(plain),
                    after.pointer(schema).map(plain)
                );
            }
            ["webhook", name] => {
                let webhook = |objects: &[Value]| {
                    let of_all = objects.iter().filter_map(|object| object["webhooks"].as_array());
                    let mut webhook = of_all
                        .flatten()
                        .find(|webhook| webhook["name"] == *name)
                        .unwrap_or_else(|| panic!("no webhook {name}"))
                        .clone();
                    // Only the manifests of this project have the Service.
                    webhook["clientConfig"]["service"]["name"] = Value::Null;
                    webhook["clientConfig"]["service"]["namespace"] = Value::Null;
                    webhook
                };
                assert_eq!(webhook(&theirs), webhook(&ours), "{what}");
            }
            ["permissions", ..] => {
                let (before, after) = (granted(&theirs, "cups-kitchen"), granted(&ours, "cups-kitchen"));
                let lost: Vec<_> = before.difference(&after).collect();
                let is_of_election =
                    |lost: &&&String| lost.ends_with("/configmaps") || lost.ends_with("/leases");
                assert!(lost.iter().all(|lost| is_of_election(&lost)), "{lost:?}");
            }
            [kind @ ("ClusterRole" | "Role"), name] if details.contains("has its permissions") => {
                let role = find(&theirs, kind, &format!("cups-{name}"));
                let own = details.split(' ').nth(1).expect("a name");
                let own = find(&ours, kind, &format!("cups-{own}"));
                assert!(
                    permissions(role).is_subset(&permissions(own)),
                    "{what}: {details}"
                );
            }
            ["names", "of", count, ..] => {
                let key = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
                let (before, after): (BTreeSet<_>, BTreeSet<_>) =
                    (theirs.iter().map(key).collect(), ours.iter().map(key).collect());
                assert_eq!(before.intersection(&after).count().to_string(), *count);
            }
            ["selector", ..] => same("/spec/selector"),
            ["replicas"] => same("/spec/replicas"),
            ["service", "account"] => same("/spec/template/spec/serviceAccountName"),
            ["resources", ..] => same("/spec/template/spec/containers/0/resources"),
            _ => continue,
        }
        checked.insert(what.to_owned());
    }
    for what in [
        "CRD cups.crew.example.com",
        "webhook mcup.kb.io",
        "permissions of the manager",
        "ClusterRole cup-reader",
        "selector of the Deployment",
        "service account",
    ] {
        assert!(checked.contains(what), "{what}: {checked:?}");
    }
    // The manager has these permissions as well, but the agent would lose them.
    let names: Vec<&str> = checked.iter().map(String::as_str).collect();
    assert!(!names.iter().any(|what| what.contains("agent")), "{names:?}");
    assert!(granted(&ours, "cups-agent").is_empty());
}
