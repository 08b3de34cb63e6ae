//! Compares the rules with what kube-apiserver says, as recorded by `cargo xtask builtin`.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::find_violations;
use crate::builtin_defaults::set_defaults;

#[derive(Deserialize)]
struct Recorded {
    object: Value,
    #[serde(default)]
    causes: BTreeSet<String>,
}

/// Number of recorded errors that have no rule. Lower it with each new rule.
const WITHOUT_RULE: usize = 107;

fn check(recorded: &Recorded) -> (BTreeSet<String>, &BTreeSet<String>) {
    let mut object = recorded.object.clone();
    object["metadata"]["namespace"] = "default".into();
    let (group, _) = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'))
        .unwrap_or(("", ""));
    let (group, kind) = (
        group.to_owned(),
        object["kind"].as_str().expect("a kind").to_owned(),
    );
    set_defaults(&group, &kind, &mut object);
    let found = find_violations(&group, &kind, &object, None);
    (found.iter().map(ToString::to_string).collect(), &recorded.causes)
}

#[test]
fn objects_are_refused_with_the_words_of_the_server() {
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    for line in include_str!("../../tests/builtin.jsonl").lines() {
        let recorded: Recorded = serde_json::from_str(line).expect("a line");
        let (found, expected) = check(&recorded);
        for error in found.difference(expected) {
            wrong.push(format!(
                "{}\n  here:   {error}\n  server: {expected:?}",
                recorded.object
            ));
        }
        missing.extend(expected.difference(&found).cloned());
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(missing.len(), WITHOUT_RULE, "\n{}", missing.join("\n"));
}

/// What a test in `crates/runtime/tests/api_server/services.rs` asks both servers.
#[test]
fn fields_of_the_former_type_of_a_service_are_not_checked() {
    let check = |old: Value, new: Value, expected: &[&str]| {
        let service = |spec: &Value| {
            let mut service = json!({ "metadata": { "name": "a", "namespace": "a" }, "spec": spec });
            set_defaults("", "Service", &mut service);
            service
        };
        let found = find_violations("", "Service", &service(&new), Some(&service(&old)));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{old}\n{new}");
    };
    let balanced = || {
        json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31_000,
            "loadBalancerClass": "a.b/c", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"],
            "ports": [{ "name": "a", "port": 80, "nodePort": 30_080 }, { "name": "b", "port": 81, "nodePort": 30_081 }],
        })
    };
    let with = |mut spec: Value, changes: Value| {
        for (name, value) in changes.as_object().expect("fields") {
            spec[name] = value.clone();
        }
        spec
    };
    let cluster = with(balanced(), json!({ "type": "ClusterIP" }));
    check(balanced(), cluster.clone(), &[]);
    let fewer = json!([{ "port": 80, "nodePort": 30_080 }]);
    check(balanced(), with(cluster.clone(), json!({ "ports": fewer })), &[]);
    let other = json!([{ "port": 80, "nodePort": 30_099 }]);
    check(
        balanced(),
        with(cluster.clone(), json!({ "ports": other })),
        &["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
    );
    check(
        balanced(),
        with(balanced(), json!({ "externalTrafficPolicy": "Cluster" })),
        &[],
    );
    // Fields that the new type needs are not dropped because they were absent before.
    check(
        balanced(),
        with(cluster, json!({ "type": "ExternalName" })),
        &["spec.externalName: Required value"],
    );
    check(
        json!({ "type": "ExternalName", "externalName": "a.b" }),
        json!({ "type": "ClusterIP", "externalName": "a.b" }),
        &["spec.ports: Required value"],
    );
}
