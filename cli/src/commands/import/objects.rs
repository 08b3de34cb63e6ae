//! The objects beside the Deployment: those that the original applies, and what differs in those that both have.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::permissions::{Permission, Rule, is_granted};
use super::report::{Match, Report, is_within, show_change};
use crate::edit::kustomization::resolve_entry;
use crate::go_project::{GoProject, Reached, follow_kustomizations};
use crate::plan::Plan;
use crate::tree::Tree;
use crate::yaml_stream::{list_items, parse_documents};

/// Kinds whose `spec` is compared. Roles are compared by what they grant; the Deployment has rows of its own.
const COMPARED: &[&str] = &[
    "Service",
    "Certificate",
    "Issuer",
    "ServiceMonitor",
    "NetworkPolicy",
    "PodDisruptionBudget",
];

/// Adds the rows of the objects that the original applies, and of those that are new.
pub(super) fn compare_objects(original: &GoProject, plan: &Plan, tree: &Tree, report: &mut Report) {
    let theirs = find_objects(&|path| original.file_text(path));
    let ours = find_objects(&|path| plan.read(tree, path).ok().flatten());
    let kept = theirs.keys().filter(|key| ours.contains_key(*key)).count();
    if kept > 0 {
        report.add(
            match kept {
                1 => "name of 1 object of config/default".to_owned(),
                kept => format!("names of {kept} objects of config/default"),
            },
            Match::Same,
            Vec::new(),
        );
    }
    let counterparts = find_counterparts(&theirs, &ours);
    for ((kind, name), found) in &theirs {
        let key = (kind.clone(), name.clone());
        let what = format!("{kind} {name}");
        match ours.get(&key) {
            Some(own) if COMPARED.contains(&kind.as_str()) => compare_spec(&what, found, own, report),
            Some(_) => {}
            // The CRDs have rows of their own.
            None if kind == "CustomResourceDefinition" => {}
            None if kind == "Namespace" && is_namespace_of(original, name) => {}
            None if counterparts.contains_key(&key) => report.add(
                what,
                Match::Better,
                vec![format!("{} has its permissions", counterparts[&key])],
            ),
            None => report.add(
                what,
                Match::ByHand,
                vec![format!(
                    "the Go project deploys it with {}: copy the file, and list it in a kustomization of this project, if the operator needs it",
                    found.origin
                )],
            ),
        }
    }
    let more: Vec<String> = ours
        .keys()
        .filter(|key| !theirs.contains_key(*key))
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect();
    if !more.is_empty() {
        report.add("objects that are new", Match::Better, more);
    }
}

/// Returns whether a Namespace is that of `config/default`: kustomize gives its name to the one that is scaffolded.
fn is_namespace_of(original: &GoProject, name: &str) -> bool {
    let kustomization = original.first_document("config/default/kustomization.yaml");
    kustomization.is_some_and(|kustomization| kustomization["namespace"] == *name)
}

type Objects = BTreeMap<(String, String), AppliedObject>;

/// Returns the roles of the original whose permissions a role of another name has, and the bindings of such roles to service
/// accounts, each with what has them: kubebuilder has renamed its roles, and so do projects.
fn find_counterparts(theirs: &Objects, ours: &Objects) -> BTreeMap<(String, String), String> {
    let permissions_of = |object: &Value| -> BTreeSet<Permission> {
        let rules = Rule::of_role(object).into_iter();
        rules.flat_map(|rule| rule.permissions()).collect()
    };
    let is_role = |kind: &str| kind == "ClusterRole" || kind == "Role";
    let own: Vec<(&(String, String), BTreeSet<Permission>)> = ours
        .iter()
        .filter(|((kind, _), _)| is_role(kind))
        .map(|(key, found)| (key, permissions_of(&found.object)))
        .collect();
    let mut found: BTreeMap<(String, String), String> = BTreeMap::new();
    for (key, role) in theirs
        .iter()
        .filter(|(key, _)| is_role(&key.0) && !ours.contains_key(*key))
    {
        let wanted = permissions_of(&role.object);
        let has_all =
            |granted: &BTreeSet<Permission>| wanted.iter().all(|wanted| is_granted(wanted, granted));
        let matching = own
            .iter()
            .filter(|(own, granted)| own.0 == key.0 && has_all(granted));
        // A wildcard is one permission, and grants most.
        let breadth = |granted: &BTreeSet<Permission>| {
            let wildcards = granted.iter().filter(|permission| permission.4 == "*").count();
            (wildcards, granted.len())
        };
        let closest = matching.min_by_key(|(_, granted)| breadth(granted));
        if let Some(((kind, name), _)) = closest.filter(|_| !wanted.is_empty()) {
            found.insert(key.clone(), format!("{kind} {name}"));
        }
    }
    let accounts = (account_of(theirs), account_of(ours));
    let mut bindings = Vec::new();
    let is_left = |key: &(String, String)| key.0.ends_with("RoleBinding") && !ours.contains_key(key);
    for (key, binding) in theirs.iter().filter(|(key, _)| is_left(key)) {
        let role = &binding.object["roleRef"];
        let role = (text(&role["kind"]), text(&role["name"]));
        let of_same_name = ours.contains_key(&role).then(|| format!("{} {}", role.0, role.1));
        let Some(counterpart) = found.get(&role).cloned().or(of_same_name) else {
            continue;
        };
        let is_bound = |(_, own): (&(String, String), &AppliedObject)| {
            let role = &own.object["roleRef"];
            format!("{} {}", text(&role["kind"]), text(&role["name"])) == counterpart
                && own.object["kind"] == key.0
                && subjects_of(&own.object, &accounts.1) == subjects_of(&binding.object, &accounts.0)
        };
        if let Some(own) = ours.iter().find(|entry| is_bound(*entry)) {
            bindings.push((key.clone(), format!("{} {}", own.0.0, own.0.1)));
        }
    }
    found.extend(bindings);
    found
}

/// Returns the name of the service account of the manager's Pods.
fn account_of(objects: &Objects) -> String {
    let mut deployments = objects.iter().filter(|((kind, _), _)| kind == "Deployment");
    let deployment = deployments.next().map(|(_, found)| &found.object);
    let account = deployment.and_then(|object| object.pointer("/spec/template/spec/serviceAccountName"));
    account.and_then(Value::as_str).unwrap_or("default").to_owned()
}

/// Returns the kinds and names of what a binding is for; the account of the manager has no name, because the projects can differ in it.
fn subjects_of(binding: &Value, account: &str) -> Vec<(String, String)> {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects
        .map(|subject| {
            let (kind, name) = (text(&subject["kind"]), text(&subject["name"]));
            let is_manager = kind == "ServiceAccount" && name == account;
            (kind, if is_manager { String::new() } else { name })
        })
        .collect()
}

/// Adds a row for an object that both have.
fn compare_spec(what: &str, theirs: &AppliedObject, ours: &AppliedObject, report: &mut Report) {
    let (before, after) = (&theirs.object["spec"], &ours.object["spec"]);
    let keys: BTreeSet<&String> = [before, after]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|spec| spec.keys())
        // kustomize replaces parts of these names, which have different words in their places.
        .filter(|key| *key != "dnsNames")
        .collect();
    let (mut better, mut by_hand) = (Vec::new(), Vec::new());
    for key in keys {
        let (before, after) = (&before[key.as_str()], &after[key.as_str()]);
        let change = || format!("`spec.{key}`: {}", show_change(before, after));
        match () {
            () if is_alike(before, after) => {}
            () if is_within(before, after) => better.push(change()),
            () => by_hand.push(change()),
        }
    }
    match (better.is_empty(), by_hand.is_empty()) {
        (true, true) => report.add(what, Match::Same, Vec::new()),
        (false, true) => report.add(what, Match::Better, better),
        (_, false) => {
            by_hand.push(match theirs.origin == ours.origin {
                true => format!("compare the two in {}", ours.origin),
                false => format!("compare {} with {}", theirs.origin, ours.origin),
            });
            report.add(what, Match::ByHand, by_hand);
        }
    }
}

/// Returns whether two values differ at most in what no client of a Service sees: the protocol that ports have anyway, and ports of
/// the Pods that have a name, which is that of another container in older projects.
fn is_alike(before: &Value, after: &Value) -> bool {
    let ports = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let is_named = [before, after]
        .into_iter()
        .flat_map(ports)
        .any(|port| port["targetPort"].is_string());
    let plain = |value: &Value| {
        let mut value = value.clone();
        for port in value.as_array_mut().into_iter().flatten() {
            let is_default = port["protocol"] == "TCP";
            if let Some(port) = port.as_object_mut() {
                port.retain(|key, _| !(key == "protocol" && is_default || key == "targetPort" && is_named));
            }
        }
        value
    };
    plain(before) == plain(after)
}

/// An object and where it comes from.
struct AppliedObject {
    object: Value,
    /// What makes it, such as "config/default/metrics_service.yaml".
    origin: String,
}

/// Returns the objects that `kubectl apply -k config/default` would apply, by kind and name before the prefix.
fn find_objects(read: &dyn Fn(&str) -> Option<String>) -> BTreeMap<(String, String), AppliedObject> {
    let mut found = Vec::new();
    let mut deleted = Vec::new();
    for reached in follow_kustomizations(&["config/default"], &|path| read_documents(read, path)) {
        let Reached {
            path,
            folder,
            documents,
        } = reached;
        let Some(folder) = folder else {
            found.extend(
                documents
                    .into_iter()
                    .flat_map(list_items)
                    .map(|object| AppliedObject {
                        object,
                        origin: path.clone(),
                    }),
            );
            continue;
        };
        for kustomization in documents {
            found.extend(generated_objects(&kustomization, &path));
            let patches = kustomization["patches"].as_array().into_iter().flatten();
            deleted.extend(patches.filter_map(|patch| deletion(read, &folder, patch)));
        }
    }
    found.retain(|found| !deleted.iter().any(|target| is_selected(&found.object, target)));
    found
        .into_iter()
        .map(|found| {
            (
                (
                    text(&found.object["kind"]),
                    text(&found.object["metadata"]["name"]),
                ),
                found,
            )
        })
        .collect()
}

/// Returns the objects that a kustomization makes of files and literals.
fn generated_objects(kustomization: &Value, path: &str) -> Vec<AppliedObject> {
    let mut found = Vec::new();
    for (key, kind) in [("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")] {
        for entry in kustomization[key].as_array().into_iter().flatten() {
            found.push(AppliedObject {
                object: json!({ "kind": kind, "metadata": { "name": entry["name"] } }),
                origin: format!("`{key}` of {path}"),
            });
        }
    }
    found
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn read_documents(read: &dyn Fn(&str) -> Option<String>, path: &str) -> Vec<Value> {
    let documents = read(path).and_then(|text| parse_documents(&text).ok());
    documents.unwrap_or_default()
}

/// The target of a patch that deletes objects, such as that for objects which cert-manager makes needless.
fn deletion(read: &dyn Fn(&str) -> Option<String>, folder: &str, patch: &Value) -> Option<Value> {
    let documents = match patch["patch"].as_str() {
        Some(text) => parse_documents(text).ok()?,
        None => read_documents(read, &resolve_entry(folder, patch["path"].as_str()?)?),
    };
    let deletes = documents
        .into_iter()
        .find(|document| document["$patch"] == "delete")?;
    match &patch["target"] {
        Value::Null => Some(json!({ "kind": deletes["kind"], "name": deletes["metadata"]["name"] })),
        target => Some(target.clone()),
    }
}

/// Returns true if a target of kustomize selects an object: by kind and name, and by labels with one value each.
fn is_selected(object: &Value, target: &Value) -> bool {
    let agrees = |key: &str, value: &Value| target[key].is_null() || target[key] == *value;
    let selector = target["labelSelector"].as_str().unwrap_or_default();
    let has_label = |part: &str| match part.split_once('=') {
        Some((key, value)) => object["metadata"]["labels"][key.trim()] == value.trim(),
        None => false,
    };
    target["annotationSelector"].is_null()
        && agrees("kind", &object["kind"])
        && agrees("name", &object["metadata"]["name"])
        && selector.split(',').filter(|part| !part.is_empty()).all(has_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_generators_are_there() {
        let read = |path: &str| match path {
            "config/default/kustomization.yaml" => Some("resources: [../manager]\n".to_owned()),
            "config/manager/kustomization.yaml" => Some(
                "configMapGenerator:\n- name: settings\n  files: [a.yaml]\nsecretGenerator:\n- name: key\n"
                    .to_owned(),
            ),
            _ => None,
        };
        let found: Vec<String> = find_objects(&read)
            .into_iter()
            .map(|((kind, name), object)| format!("{kind} {name}: {}", object.origin))
            .collect();
        assert_eq!(
            found,
            [
                "ConfigMap settings: `configMapGenerator` of config/manager/kustomization.yaml",
                "Secret key: `secretGenerator` of config/manager/kustomization.yaml",
            ]
        );
    }

    #[test]
    fn objects_of_both_are_compared() {
        let check = |before: Value, after: Value, expected: Option<Match>| {
            let object = |spec: &Value| AppliedObject {
                object: json!({ "kind": "Service", "spec": spec }),
                origin: "a.yaml".to_owned(),
            };
            let mut report = Report::default();
            compare_spec("Service a", &object(&before), &object(&after), &mut report);
            let result = report.rows.first().map(|row| row.result);
            assert_eq!(result, expected, "{before} and {after}");
        };
        let ports = |port: u64| json!([{ "port": port, "protocol": "TCP" }]);
        let selector = json!({ "selector": { "a": "b" } });
        check(
            json!({ "ports": [{ "port": 1 }] }),
            json!({ "ports": ports(1) }),
            Some(Match::Same),
        );
        check(
            json!({ "ports": ports(1) }),
            json!({ "ports": ports(2) }),
            Some(Match::ByHand),
        );
        check(
            selector.clone(),
            json!({ "selector": { "a": "b", "c": "d" } }),
            Some(Match::Better),
        );
        check(
            json!({ "selector": { "a": "b", "c": "d" } }),
            selector,
            Some(Match::ByHand),
        );
        check(
            json!({ "dnsNames": ["x"] }),
            json!({ "dnsNames": ["y"] }),
            Some(Match::Same),
        );
    }

    #[test]
    fn objects_that_patches_delete_are_not_there() {
        let check = |patches: &str, expected: &[&str]| {
            let root = format!("resources: [a.yaml, ../b/]\npatches: {patches}");
            let read = |path: &str| {
                match path {
                "config/default/kustomization.yaml" => Some(root.clone()),
                "config/default/a.yaml" => {
                    Some("kind: Role\nmetadata: {name: a, labels: {part: x}}\n---\nkind: Service\nmetadata: {name: s}\n".to_owned())
                }
                "config/b/kustomization.yaml" => Some("resources: [role.yaml]".to_owned()),
                "config/b/role.yaml" => Some("kind: Role\nmetadata: {name: b, labels: {part: y}}\n".to_owned()),
                "config/default/delete.yaml" => Some("$patch: delete\nkind: Role\nmetadata: {name: b}\n".to_owned()),
                _ => None,
            }
            };
            let names: Vec<String> = find_objects(&read).into_keys().map(|(_, name)| name).collect();
            assert_eq!(names, expected, "{patches}");
        };
        check("[]", &["a", "b", "s"]);
        check("[{path: delete.yaml}]", &["a", "s"]);
        check(
            "[{path: delete.yaml, target: {labelSelector: part=x}}]",
            &["b", "s"],
        );
        check("[{path: delete.yaml, target: {kind: Service}}]", &["a", "b"]);
        check(
            "[{path: delete.yaml, target: {labelSelector: part in (x)}}]",
            &["a", "b", "s"],
        );
        check(
            "[{path: delete.yaml, target: {annotationSelector: part=x}}]",
            &["a", "b", "s"],
        );
        check(
            "[{path: missing.yaml}, {patch: 'kind: Role', target: {kind: Role}}]",
            &["a", "b", "s"],
        );
    }
}
