//! Compares the manager's Deployment field by field, to show what a rollout of the Rust project
//! changes in the pods.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Map, Value};

use super::comparison::{Match, Report, is_within, prefixed, read_planned, show_change};
use super::deployment::{adds_to_selectors, find_deployment, name_prefix};
use crate::plan::Plan;
use crate::tree::Tree;
use rbuilder_go_project::GoProject;

const MANAGER: &str = "config/manager/manager.yaml";

/// Fields with their own rows, and fields that depend on others or on the image.
const KNOWN_OF_SPEC: &[&str] = &["replicas", "selector", "template"];
const KNOWN_OF_POD: &[&str] = &["containers", "serviceAccount", "serviceAccountName", "volumes"];
const KNOWN_OF_CONTAINER: &[&str] = &[
    "args",
    "command",
    "env",
    "image",
    "ports",
    "resources",
    "volumeMounts",
];
const GRACE_PERIOD: &str = "terminationGracePeriodSeconds";
const PROBES: &[&str] = &["livenessProbe", "readinessProbe", "startupProbe"];

pub(super) fn compare_deployments(
    original: &GoProject,
    plan: &Plan,
    tree: &Tree,
    report: &mut Report,
) -> Result<()> {
    let documents = read_planned(plan, tree, MANAGER)?;
    let (Some(theirs), Some(ours)) = (
        find_deployment(original),
        documents.iter().find(|document| document["kind"] == "Deployment"),
    ) else {
        return Ok(());
    };
    compare_identity(original, theirs, ours, report);
    compare_lists(theirs, ours, report);
    let (before, after) = (pod_of(theirs), pod_of(ours));
    compare_rest(
        "Deployment",
        (&theirs["spec"], &ours["spec"]),
        KNOWN_OF_SPEC,
        report,
    );
    compare_rest("Pods", (before, after), KNOWN_OF_POD, report);
    let of_first = |pod: &Value| with_security_of_pod(with_numbered_ports(&pod["containers"][0]), pod);
    let (before, after) = (of_first(before), of_first(after));
    compare_rest("manager", (&before, &after), KNOWN_OF_CONTAINER, report);
    Ok(())
}

fn pod_of(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]
}

fn compare_identity(original: &GoProject, theirs: &Value, ours: &Value, report: &mut Report) {
    let prefix = name_prefix(original);
    for (what, pointer) in [
        ("name of the Deployment", "/metadata/name"),
        ("selector of the Deployment", "/spec/selector"),
        ("replicas", "/spec/replicas"),
        ("service account", "/spec/template/spec/serviceAccountName"),
        (
            "resources of the manager",
            "/spec/template/spec/containers/0/resources",
        ),
    ] {
        let value = |deployment: &Value| deployment.pointer(pointer).cloned().unwrap_or_default();
        let (before, after) = (value(theirs), value(ours));
        // kustomize adds the prefix to a name, unless the name already has it.
        let is_prefixed =
            || before.as_str() == after.as_str().map(|name| format!("{prefix}{name}")).as_deref();
        // Labels in the kustomization may be part of the selector, so they are left to the user.
        let is_whole = pointer != "/spec/selector" || !adds_to_selectors(original);
        let is_same = before == after && is_whole
            || before.is_null() && pointer.ends_with("replicas")
            || pointer.ends_with("serviceAccountName") && is_prefixed();
        // The `default` account is shared with other pods in the namespace, so a new account is an
        // improvement.
        let is_new = before.is_null() && pointer.ends_with("serviceAccountName");
        match (is_same, is_whole) {
            _ if is_new => report.add(what, Match::Better, vec![show_change(&before, &after)]),
            (true, _) => report.add(what, Match::Same, Vec::new()),
            (false, true) => report.add(what, Match::ByHand, vec![show_change(&before, &after)]),
            (false, false) => report.add(
                what,
                Match::ByHand,
                vec![
                    "the selector of the original has labels of config/default/kustomization.yaml: copy them before you deploy"
                        .to_owned(),
                ],
            ),
        }
    }
}

fn compare_lists(theirs: &Value, ours: &Value, report: &mut Report) {
    let list = |deployment: &Value, pointer: &str| {
        deployment
            .pointer(pointer)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    for (what, pointer) in [
        (
            "arguments of the manager",
            "/spec/template/spec/containers/0/args",
        ),
        (
            "environment of the manager",
            "/spec/template/spec/containers/0/env",
        ),
        ("volumes", "/spec/template/spec/volumes"),
        ("volume mounts", "/spec/template/spec/containers/0/volumeMounts"),
    ] {
        let own = list(ours, pointer);
        let lost: Vec<String> = list(theirs, pointer)
            .iter()
            .filter(|item| !own.contains(item) && !own.contains(&renamed_argument(item)))
            .map(Value::to_string)
            .collect();
        if !lost.is_empty() {
            report.add(what, Match::ByHand, prefixed("missing: ", lost));
        }
    }
    compare_ports(
        &list(theirs, "/spec/template/spec/containers/0/ports"),
        &list(ours, "/spec/template/spec/containers/0/ports"),
        report,
    );
    let containers = list(theirs, "/spec/template/spec/containers").len();
    if containers > 1 {
        report.add(
            "containers",
            Match::ByHand,
            vec![format!(
                "the original has {containers}, and the first is compared"
            )],
        );
    }
}

/// Renames an argument as in newer projects: kubebuilder 2 had another flag for leader election.
fn renamed_argument(argument: &Value) -> Value {
    match argument.as_str() {
        Some("--enable-leader-election" | "--enable-leader-election=true") => "--leader-elect".into(),
        _ => argument.clone(),
    }
}

/// Ports served by the scaffold, whose components add them to the container.
const SERVED: &[(u64, &str)] = &[(8443, "metrics"), (9443, "webhooks")];

fn compare_ports(theirs: &[Value], ours: &[Value], report: &mut Report) {
    let number = |port: &Value| port["containerPort"].as_u64().unwrap_or_default();
    let is_there = |port: &&Value| {
        let own = ours.iter().any(|other| number(other) == number(port));
        own || SERVED.iter().any(|(served, _)| *served == number(port))
    };
    let lost: Vec<String> = theirs
        .iter()
        .filter(|port| !is_there(port))
        .map(|port| match port["name"].as_str() {
            Some(name) => format!("{} ({name})", number(port)),
            None => number(port).to_string(),
        })
        .collect();
    if lost.is_empty() {
        return;
    }
    let served: Vec<String> = SERVED
        .iter()
        .map(|(port, what)| format!("{what} on {port}"))
        .collect();
    let details = format!(
        "missing: {}; the manager serves {} over TLS, and health on 8081: change what connects to the others",
        lost.join(", "),
        served.join(" and ")
    );
    report.add("ports of the manager", Match::ByHand, vec![details]);
}

fn compare_rest(of: &str, (before, after): (&Value, &Value), known: &[&str], report: &mut Report) {
    let keys: BTreeSet<&String> = [before, after]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|map| map.keys())
        .filter(|key| !known.contains(&key.as_str()))
        .collect();
    for key in keys {
        let (before, after) = (&before[key.as_str()], &after[key.as_str()]);
        if before == after {
            continue;
        }
        let what = format!("`{key}` of the {of}");
        let change = show_change(before, after);
        match key.as_str() {
            GRACE_PERIOD if before.as_u64() < after.as_u64() => report.add(
                what,
                Match::Better,
                vec![format!("{change}: the manager waits for running reconciles")],
            ),
            _ if is_within(before, after) => report.add(what, Match::Better, vec![change]),
            _ => report.add(
                what,
                Match::ByHand,
                vec![format!("{change}: change {MANAGER} if that matters")],
            ),
        }
    }
}

fn with_security_of_pod(mut container: Value, pod: &Value) -> Value {
    for key in ["runAsGroup", "runAsNonRoot", "runAsUser", "seccompProfile"] {
        let of_pod = &pod["securityContext"][key];
        if container["securityContext"][key].is_null() && !of_pod.is_null() {
            container["securityContext"][key] = of_pod.clone();
        }
    }
    container
}

fn with_numbered_ports(container: &Value) -> Value {
    let mut container = container.clone();
    let ports: Map<String, Value> = container["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|port| Some((port["name"].as_str()?.to_owned(), port["containerPort"].clone())))
        .collect();
    for probe in PROBES {
        for action in ["httpGet", "tcpSocket"] {
            let Some(port) = container.pointer_mut(&format!("/{probe}/{action}/port")) else {
                continue;
            };
            if let Some(number) = port.as_str().and_then(|name| ports.get(name)) {
                *port = number.clone();
            }
        }
    }
    container
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_field_that_differs_has_a_row() {
        let probe = |port: Value| json!({ "httpGet": { "path": "/healthz", "port": port } });
        let before = json!({
            "name": "operator",
            "image": "a",
            "imagePullPolicy": "Always",
            "livenessProbe": probe(json!(8081)),
            "readinessProbe": probe(json!(8082)),
        });
        let after = json!({
            "name": "manager",
            "image": "b",
            "imagePullPolicy": "Always",
            "ports": [{ "name": "health", "containerPort": 8081 }],
            "livenessProbe": probe(json!("health")),
            "readinessProbe": probe(json!("health")),
            "securityContext": { "readOnlyRootFilesystem": true },
        });
        let mut report = Report::default();
        let sides = (&with_numbered_ports(&before), &with_numbered_ports(&after));
        compare_rest("manager", sides, KNOWN_OF_CONTAINER, &mut report);
        let rows: Vec<(String, Match)> = report
            .rows
            .iter()
            .map(|row| (row.what.clone(), row.result))
            .collect();
        let row = |key: &str, result| (format!("`{key}` of the manager"), result);
        assert_eq!(
            rows,
            [
                row("name", Match::ByHand),
                row("readinessProbe", Match::ByHand),
                row("securityContext", Match::Better),
            ]
        );
    }

    #[test]
    fn ports_that_are_served_no_longer_have_a_row() {
        let check = |ports: Value, expected: Option<&str>| {
            let mut report = Report::default();
            let own = [json!({ "containerPort": 8081, "name": "health" })];
            compare_ports(ports.as_array().expect("a list"), &own, &mut report);
            let found = report.rows.first().map(|row| row.details.concat());
            match (found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => panic!("{ports}: {found:?}, expected {expected:?}"),
            }
        };
        check(json!([]), None);
        check(
            json!([{ "containerPort": 8443 }, { "containerPort": 8081 }]),
            None,
        );
        check(
            json!([{ "containerPort": 9090, "name": "metrics" }, { "containerPort": 8888 }]),
            Some("missing: 9090 (metrics), 8888; "),
        );
    }
}
