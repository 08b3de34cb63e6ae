//! Workloads whose Pods still run with former configuration.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Oracle, Violation};
use crate::world::Snapshot;

const WORKLOADS: [&str; 3] = ["daemonsets.apps", "deployments.apps", "statefulsets.apps"];

/// Reports workloads that kept their template, although the data of a ConfigMap or a Secret has
/// changed to which the template refers.
pub(crate) fn not_rolled_out(before: &Snapshot, state: &Snapshot) -> Vec<Violation> {
    let workloads = state.objects.iter().filter_map(|(name, object)| {
        let (resource, place) = name.split_once(' ')?;
        let (namespace, _) = place.split_once('/')?;
        let template = &object["spec"]["template"];
        let is_same = before.objects.get(name)?["spec"]["template"] == *template;
        (WORKLOADS.contains(&resource) && is_same).then_some((name, namespace, template))
    });
    workloads
        .flat_map(|(name, namespace, template)| {
            let mut sources = BTreeSet::new();
            collect_sources(template, namespace, &mut sources);
            let changed = sources.into_iter().filter(|source| is_changed(source, before, state));
            changed.map(move |source| {
                let message = format!(
                    "{name}: the template is as before, although {source} has other data, so that no Pod reads it"
                );
                Violation::new(Oracle::Path, format!("{name} {source}"), message)
            })
        })
        .collect()
}

fn is_changed(source: &str, before: &Snapshot, state: &Snapshot) -> bool {
    match (data_of(before, source), data_of(state, source)) {
        (Some(before), Some(after)) => before != after,
        _ => false,
    }
}

/// Values of a ConfigMap or Secret, which the user may have declared.
fn data_of<'s>(state: &'s Snapshot, source: &str) -> Option<[&'s Value; 3]> {
    let object = state.declared.get(source).or_else(|| state.objects.get(source))?;
    Some(["data", "binaryData", "stringData"].map(|field| &object[field]))
}

/// Collects the names of ConfigMaps and Secrets in volumes and environments.
fn collect_sources(value: &Value, namespace: &str, sources: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let resource = match field.as_str() {
                    "configMap" | "configMapRef" | "configMapKeyRef" => Some("configmaps"),
                    "secret" | "secretRef" | "secretKeyRef" => Some("secrets"),
                    _ => None,
                };
                let name = value["name"].as_str().or_else(|| value["secretName"].as_str());
                if let (Some(resource), Some(name)) = (resource, name) {
                    sources.insert(format!("{resource} {namespace}/{name}"));
                }
                collect_sources(value, namespace, sources);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_sources(item, namespace, sources)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(data: &str, hash: &str) -> Snapshot {
        let pod = json!({
            "containers": [
                { "name": "main", "envFrom": [{ "secretRef": { "name": "keys" } }] },
            ],
            "volumes": [{ "name": "config", "projected": { "sources": [{ "configMap": { "name": "a" } }] } }],
        });
        let template = json!({ "metadata": { "annotations": { "hash": hash } }, "spec": pod });
        let mut state = Snapshot::default();
        for (name, value) in [
            ("configmaps x/a", json!({ "data": { "key": data } })),
            ("configmaps y/a", json!({ "data": { "key": "" } })),
            (
                "deployments.apps x/web",
                json!({ "spec": { "template": template } }),
            ),
        ] {
            state.objects.insert(name.to_owned(), value);
        }
        state
    }

    #[test]
    fn changed_data_needs_another_template() {
        let found = not_rolled_out(&state("1", ""), &state("2", ""));
        let subjects: Vec<&str> = found.iter().map(|found| &*found.subject).collect();
        assert_eq!(subjects, ["deployments.apps x/web configmaps x/a"]);
        assert_eq!(not_rolled_out(&state("1", "1"), &state("2", "2")), []);
        assert_eq!(not_rolled_out(&state("1", ""), &state("1", "")), []);
    }

    #[test]
    fn data_of_the_user_counts_as_well() {
        let declared = |data: &str| {
            let mut state = state("1", "");
            let secret = json!({ "data": { "password": data } });
            state.declared.insert("secrets x/keys".to_owned(), secret);
            state
        };
        let found = not_rolled_out(&declared("a"), &declared("b"));
        assert_eq!(found[0].subject, "deployments.apps x/web secrets x/keys");
        // A Secret that appears is no change.
        assert_eq!(not_rolled_out(&state("1", ""), &declared("b")), []);
    }
}
