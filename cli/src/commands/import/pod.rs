//! Environment, volumes and mounts of the manager, which its code goes by.

use serde_json::Value;

use super::deployment::print_indented;

/// Variables that set a flag of the library whose values have another form in Go. The other flags are those of kubebuilder.
const FLAG_VARIABLES: [&str; 2] = ["LOG_FORMAT", "LOG_LEVEL"];

/// Adds the environment, volumes and mounts of a Pod to the manifest of the manager, beside those that it has.
pub(super) fn port_pod(pod: &Value, manifest: &mut String) {
    let container = &pod["containers"][0];
    let is_own = |entry: &Value| FLAG_VARIABLES.iter().any(|name| entry["name"] == *name);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut variables = list(&container["env"]);
    variables.retain(|entry| !is_own(entry));
    add_entries(manifest, "        env:\n", variables, "        ports:\n");
    let mounts = list(&container["volumeMounts"]);
    add_entries(manifest, "        volumeMounts:\n", mounts, ACCOUNT);
    add_entries(manifest, "      volumes:\n", list(&pod["volumes"]), ACCOUNT);
}

/// The line behind the containers.
const ACCOUNT: &str = "      serviceAccountName: ";

/// Adds entries to the list below a key, which is made before the line `before` if it is not there. Entries that the list has by
/// name are left out.
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
        port_pod(&pod, &mut text);
        let expected = "      containers:\n      - name: manager\n        env:\n        # A comment.\n        - name: A\n          value: x\n        - name: B\n          value: \"1\"\n        ports:\n        - containerPort: 1\n        volumeMounts:\n        - mountPath: /data\n          name: data\n      volumes:\n      - emptyDir: {}\n        name: data\n      serviceAccountName: manager\n";
        assert_eq!(text, expected);
        port_pod(&json!({}), &mut text);
        assert_eq!(text, expected);
    }
}
