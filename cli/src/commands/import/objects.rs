//! Compares the objects that both projects apply, except for the Deployment.

use std::collections::BTreeSet;

use rbuilder_kubernetes::rbac::{Permission, Target, is_granted, permissions_of};
use serde_json::Value;

use super::applied::{AppliedObject, find_objects};
use super::comparison::{Match, Report, differing_keys, is_within, show_change};
use super::counterparts::{Accounts, account_of, find_counterparts, subjects_of};
use super::deployment::find_account;
use super::permissions::compare_permissions;
use crate::commands::permissions::is_role;
use crate::overlay::DEPLOYMENT;
use crate::plan::Plan;
use crate::tree::Tree;
use rbuilder_go_project::GoProject;

/// Kinds to compare by `spec`. Roles are compared by permissions, and the Deployment has its own
/// rows.
const COMPARED: &[&str] = &[
    "Service",
    "Certificate",
    "Issuer",
    "ServiceMonitor",
    "NetworkPolicy",
    "PodDisruptionBudget",
];

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
    let mut deployments = ours
        .values()
        .map(|found| &found.object)
        .filter(|object| object["kind"] == "Deployment");
    let accounts = Accounts {
        theirs: find_account(original).unwrap_or_else(|| "default".to_owned()),
        ours: account_of(deployments.next()),
    };
    let counterparts = find_counterparts(&theirs, &ours, &accounts);
    let mut rows = Rows {
        report,
        richer_roles: Vec::new(),
    };
    for ((kind, name), found) in &theirs {
        let key = (kind.clone(), name.clone());
        let what = format!("{kind} {name}");
        match ours.get(&key) {
            Some(own) if COMPARED.contains(&kind.as_str()) => compare_spec(&what, found, own, rows.report),
            Some(own) => compare_rest(&what, found, own, &accounts, &mut rows),
            // CRDs have their own rows.
            None if kind == "CustomResourceDefinition" => {}
            None if kind == "Namespace" && is_namespace_of(original, name) => {}
            None if counterparts.contains_key(&key) => rows.report.add(
                what,
                Match::Better,
                vec![format!("{} has its permissions", counterparts[&key])],
            ),
            None => rows.report.add(
                what,
                Match::ByHand,
                vec![format!(
                    "the Go project deploys it with {}: copy the file, and list it in a kustomization of this project, if the operator needs it",
                    found.origin
                )],
            ),
        }
    }
    let Rows { report, richer_roles } = rows;
    if !richer_roles.is_empty() {
        report.add("roles that grant more", Match::Better, richer_roles);
    }
    let more: Vec<String> = ours
        .keys()
        .filter(|key| !theirs.contains_key(*key))
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect();
    if !more.is_empty() && !theirs.is_empty() {
        report.add("objects that are new", Match::Better, more);
    }
}

/// Whether this is the Namespace of `config/default`, whose name is set by kustomize.
fn is_namespace_of(original: &GoProject, name: &str) -> bool {
    let kustomization = original.kustomization(DEPLOYMENT).unwrap_or_default();
    kustomization.namespace() == Some(name)
}

/// Kinds whose objects have their own rows.
const HAVE_ROWS: [&str; 4] = [
    "CustomResourceDefinition",
    "Deployment",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];
/// The role that has its own row.
const MANAGER_ROLE: &str = "config/rbac/role.yaml";

/// Adds a row for an object that differs between the projects. Excludes kinds that are compared by
/// `spec`, and the manager's objects, which have their own rows.
fn compare_rest(
    what: &str,
    theirs: &AppliedObject,
    ours: &AppliedObject,
    accounts: &Accounts,
    rows: &mut Rows<'_>,
) {
    let (before, after) = (&theirs.object, &ours.object);
    let has_rows = HAVE_ROWS.iter().any(|kind| before["kind"] == *kind);
    if has_rows || theirs.origin == MANAGER_ROLE || theirs.is_generated {
        return;
    }
    if is_role(before) {
        return compare_role(what, before, after, rows);
    }
    let mut details = Vec::new();
    for key in differing_keys(before, after) {
        let (old, new) = (&before[key.as_str()], &after[key.as_str()]);
        let is_same = match key.as_str() {
            "apiVersion" | "metadata" | "status" => true,
            // The manager's account has its own row.
            "subjects" => subjects_of(before, &accounts.theirs) == subjects_of(after, &accounts.ours),
            _ => false,
        };
        if !is_same {
            details.push(format!("`{key}`: {}", show_change(old, new)));
        }
    }
    let (old, new) = (
        &before["metadata"]["annotations"],
        &after["metadata"]["annotations"],
    );
    if !is_within(old, new) {
        details.push(format!("`metadata.annotations`: {}", show_change(old, new)));
    }
    if !details.is_empty() {
        details.push(advise_comparison(theirs, ours));
        rows.report.add(what, Match::ByHand, details);
    }
}

/// The table, and the roles that grant more than in the original, which share a row.
struct Rows<'a> {
    report: &'a mut Report,
    richer_roles: Vec<String>,
}

/// Group and resource of leader election. The Go library needs more permissions on these than ours.
const ELECTION: &[(&str, &str)] = &[
    ("", "configmaps"),
    ("", "events"),
    ("coordination.k8s.io", "leases"),
    ("events.k8s.io", "events"),
];

fn compare_role(what: &str, before: &Value, after: &Value, rows: &mut Rows<'_>) {
    let is_of_election = |permission: &Permission| match &permission.target {
        Target::Resource { group, resource, .. } => {
            what == "Role leader-election-role" && ELECTION.contains(&(group, resource))
        }
        Target::Url(_) => false,
    };
    let (theirs, ours) = (permissions_of(before), permissions_of(after));
    let needed: BTreeSet<Permission> = theirs
        .iter()
        .filter(|wanted| is_granted(wanted, &ours) || !is_of_election(wanted))
        .cloned()
        .collect();
    let is_less = needed.len() < theirs.len();
    let mut better = Vec::new();
    match compare_permissions(&needed, &ours) {
        (Match::ByHand, details) => return rows.report.add(what, Match::ByHand, details),
        (Match::Better, details) if is_less => better.extend(details),
        (Match::Better, details) => rows.richer_roles.push(format!("{what}: {}", details.join(", "))),
        (Match::Same, _) => {}
    }
    if is_less {
        better.push("what only Go needs to elect a leader is no longer granted".to_owned());
        rows.report.add(what, Match::Better, better);
    }
}

fn advise_comparison(theirs: &AppliedObject, ours: &AppliedObject) -> String {
    match theirs.origin == ours.origin {
        true => format!("compare the two in {}", ours.origin),
        false => format!("compare {} with {}", theirs.origin, ours.origin),
    }
}

fn compare_spec(what: &str, theirs: &AppliedObject, ours: &AppliedObject, report: &mut Report) {
    let (before, after) = (&theirs.object["spec"], &ours.object["spec"]);
    let keys: BTreeSet<&String> = [before, after]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|spec| spec.keys())
        // kustomize replaces parts of these names, and the placeholders differ.
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
            by_hand.push(advise_comparison(theirs, ours));
            report.add(what, Match::ByHand, by_hand);
        }
    }
}

/// Whether two values are equivalent for a Service's clients. The default protocol doesn't matter,
/// and neither do named target ports, which older projects point at another container.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_of_both_are_compared() {
        let check = |before: Value, after: Value, expected: Option<Match>| {
            let object = |spec: &Value| AppliedObject {
                object: json!({ "kind": "Service", "spec": spec }),
                origin: "a.yaml".to_owned(),
                is_generated: false,
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
}
