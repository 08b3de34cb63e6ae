//! Ports the language-independent parts of the manager's pods: environment, volumes and mounts, and
//! scheduling.

use serde_json::{Map, Value};

use super::blocks::{find_block, print_indented, print_map};

/// Variables for flags of the library whose values differ from Go's. All other flags match
/// kubebuilder's.
const FLAG_VARIABLES: [&str; 2] = ["LOG_FORMAT", "LOG_LEVEL"];

const POD_FIELDS: [&str; 14] = [
    "affinity",
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "hostAliases",
    "hostNetwork",
    "imagePullSecrets",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "shareProcessNamespace",
    "tolerations",
    "topologySpreadConstraints",
];
const CONTAINER_FIELDS: [&str; 2] = ["envFrom", "imagePullPolicy"];

/// Adds a pod template's fields to the manager's manifest, in addition to the existing ones.
pub(super) fn port_pod(template: &Value, manifest: &mut String) {
    let pod = &template["spec"];
    let container = &pod["containers"][0];
    let is_own = |entry: &Value| FLAG_VARIABLES.iter().any(|name| entry["name"] == *name);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut variables = list(&container["env"]);
    variables.retain(|entry| !is_own(entry));
    add_entries(manifest, "        env:\n", variables, "        ports:\n");
    let mounts = list(&container["volumeMounts"]);
    add_entries(manifest, "        volumeMounts:\n", mounts, ACCOUNT);
    add_entries(manifest, "      volumes:\n", list(&pod["volumes"]), ACCOUNT);
    add_fields(manifest, container, &CONTAINER_FIELDS, "        ports:\n");
    add_fields(manifest, pod, &POD_FIELDS, ACCOUNT);
    add_annotations(manifest, &template["metadata"]["annotations"]);
}

/// Adds fields missing from the manifest above the line `before`, with the same indentation.
fn add_fields(manifest: &mut String, from: &Value, fields: &[&str], before: &str) {
    let indent = before.len() - before.trim_start().len();
    let is_new = |key: &str| !manifest.contains(&format!("\n{}{key}:", " ".repeat(indent)));
    let found: Map<String, Value> = fields
        .iter()
        .filter(|key| !from[**key].is_null() && is_new(key))
        .map(|key| ((*key).to_owned(), from[*key].clone()))
        .collect();
    if let Some(at) = manifest
        .find(&format!("\n{before}"))
        .filter(|_| !found.is_empty())
    {
        manifest.insert_str(at + 1, &print_indented(&Value::Object(found), indent));
    }
}

/// Adds pod annotations. Keeps the scaffold's default container for kubectl.
fn add_annotations(manifest: &mut String, annotations: &Value) {
    let template = manifest.find("\n  template:").unwrap_or(manifest.len());
    let Some(block) = find_block(&manifest[template..], "      annotations:\n") else {
        return;
    };
    let own = manifest[template + block.start..template + block.end].to_owned();
    let mut added = annotations.as_object().cloned().unwrap_or_default();
    added.retain(|key, _| {
        !own.lines()
            .any(|line| line.trim_start().starts_with(&format!("{key}: ")))
    });
    if !added.is_empty() {
        manifest.insert_str(template + block.end, &print_map(&added, 6));
    }
}

const ACCOUNT: &str = "      serviceAccountName: ";

/// Adds entries to the list below a key, except for entries whose name is in the list already. A
/// missing list is inserted above the line `before`.
fn add_entries(manifest: &mut String, key: &str, mut entries: Vec<Value>, before: &str) {
    let indent = " ".repeat(key.len() - key.trim_start().len());
    let at = match manifest.find(key) {
        Some(at) => {
            let start = at + key.len();
            let is_inside = |line: &&str| {
                let rest = line.strip_prefix(&*indent);
                rest.is_some_and(|rest| rest.starts_with([' ', '-', '#']))
            };
            let lines = manifest[start..].split_inclusive('\n').take_while(is_inside);
            let end = start + lines.map(str::len).sum::<usize>();
            let list = &manifest[start..end];
            entries.retain(|entry| {
                let name = entry["name"].as_str().unwrap_or_default();
                !list
                    .lines()
                    .any(|line| line.trim_start() == format!("- name: {name}"))
            });
            end
        }
        None => match manifest.find(&format!("\n{before}")) {
            Some(at) => at + 1,
            None => return,
        },
    };
    if entries.is_empty() {
        return;
    }
    let head = if manifest.contains(key) { "" } else { key };
    let body = print_indented(&Value::Array(entries), indent.len());
    manifest.insert_str(at, &format!("{head}{body}"));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_added_once_each() {
        let manifest = "      containers:\n      - name: manager\n        env:\n        # A comment.\n        - name: A\n          value: x\n        ports:\n        - containerPort: 1\n      serviceAccountName: manager\n";
        let pod = json!({
            "containers": [{
                "env": [{ "name": "A", "value": "y" }, { "name": "B", "value": "1" }, { "name": "LOG_LEVEL", "value": "5" }],
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
            "volumes": [{ "name": "data", "emptyDir": {} }],
        });
        let mut text = manifest.to_owned();
        port_pod(&json!({ "spec": pod }), &mut text);
        let expected = "      containers:\n      - name: manager\n        env:\n        # A comment.\n        - name: A\n          value: x\n        - name: B\n          value: \"1\"\n        ports:\n        - containerPort: 1\n        volumeMounts:\n        - mountPath: /data\n          name: data\n      volumes:\n      - emptyDir: {}\n        name: data\n      serviceAccountName: manager\n";
        assert_eq!(text, expected);
        port_pod(&json!({}), &mut text);
        assert_eq!(text, expected);
    }

    #[test]
    fn adds_missing_fields() {
        let manifest = "  template:\n    metadata:\n      annotations:\n        a/default: manager\n      labels:\n        x: y\n    spec:\n      containers:\n      - name: manager\n        ports:\n        - containerPort: 1\n      serviceAccountName: manager\n      dnsPolicy: Default\n";
        let template = json!({
            "metadata": { "annotations": { "a/default": "other", "b/scrape": "true" } },
            "spec": {
                "containers": [{ "imagePullPolicy": "Always", "command": ["/manager"] }],
                "dnsPolicy": "None",
                "nodeSelector": { "disk": "ssd" },
                "terminationGracePeriodSeconds": 10,
            },
        });
        let mut text = format!("\n{manifest}");
        port_pod(&template, &mut text);
        let expected = "\n  template:\n    metadata:\n      annotations:\n        a/default: manager\n        b/scrape: \"true\"\n      labels:\n        x: y\n    spec:\n      containers:\n      - name: manager\n        imagePullPolicy: Always\n        ports:\n        - containerPort: 1\n      nodeSelector:\n        disk: ssd\n      serviceAccountName: manager\n      dnsPolicy: Default\n";
        assert_eq!(text, expected);
        port_pod(&template, &mut text);
        assert_eq!(text, expected);
    }
}
