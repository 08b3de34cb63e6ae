//! What components in `config/` patch in the manager's Deployment.

use serde_json::{Map, Value, json};

use super::config::{Condition, Object};
use rbuilder_project::overlay::{self, merge_key};

pub(super) type Entry = (Vec<Condition>, Value);

#[derive(Default)]
pub(super) struct Lists {
    pub(super) variables: Vec<Entry>,
    pub(super) ports: Vec<Entry>,
    pub(super) mounts: Vec<Entry>,
    pub(super) volumes: Vec<Entry>,
    /// Fields of the container that only patches have, e.g. `lifecycle`.
    pub(super) fields: Vec<(Vec<Condition>, String, Value)>,
}

impl Lists {
    /// Reads the lists of a container and its pod, and applies patches to them. Warns about patches
    /// that also change something else.
    pub(super) fn of(
        object: &Object,
        container: &Map<String, Value>,
        warnings: &mut Vec<(String, String)>,
    ) -> Lists {
        let items = |list: Option<&Value>| -> Vec<Entry> {
            let items = list.and_then(Value::as_array).into_iter().flatten();
            items.map(|item| (Vec::new(), item.clone())).collect()
        };
        let mut lists = Lists {
            variables: items(container.get("env")),
            ports: items(container.get("ports")),
            mounts: items(container.get("volumeMounts")),
            volumes: items(object.value["spec"]["template"]["spec"].get("volumes")),
            fields: Vec::new(),
        };
        for (conditions, patch) in &object.patches {
            for field in lists.patch(conditions, patch, container) {
                warnings.push((
                    format!("`{field}` in a patch of the component of `{}` is not part of the chart", conditions.last().map_or("", |condition| condition.value)),
                    "set it in config/manager/manager.yaml for all cases, or in the template of the chart: later changes are merged with yours".to_owned(),
                ));
            }
        }
        lists
    }

    /// Applies a conditional patch to a container, and returns the patch's fields that are not part
    /// of the chart.
    fn patch(
        &mut self,
        conditions: &[Condition],
        patch: &Value,
        patched: &Map<String, Value>,
    ) -> Vec<String> {
        let mut unknown = Vec::new();
        let empty = Map::new();
        let map = |value: &Value| value.as_object().cloned().unwrap_or_else(|| empty.clone());
        let mut descend = |value: &Value, allowed: &[&str]| {
            let other = |key: &&String| !allowed.contains(&key.as_str());
            unknown.extend(map(value).keys().filter(other).cloned());
        };
        let spec = &patch["spec"]["template"]["spec"];
        descend(patch, &["apiVersion", "kind", "metadata", "spec"]);
        descend(&patch["metadata"], &["name", "namespace"]);
        descend(&patch["spec"], &["template"]);
        descend(&patch["spec"]["template"], &["spec"]);
        descend(spec, &["containers", "volumes"]);
        for container in spec["containers"].as_array().into_iter().flatten() {
            if container.get("name") != patched.get("name") {
                descend(&json!({ "containers": [] }), &[]);
                continue;
            }
            let mut known = vec!["name", "env", "ports", "volumeMounts"];
            for (field, value) in container.as_object().into_iter().flatten() {
                if !known.contains(&field.as_str()) && !patched.contains_key(field) {
                    known.push(field);
                    self.fields
                        .push((conditions.to_vec(), field.clone(), value.clone()));
                }
            }
            descend(container, &known);
            for (list, field) in [
                (&mut self.variables, "env"),
                (&mut self.ports, "ports"),
                (&mut self.mounts, "volumeMounts"),
            ] {
                patch_list(list, field, &container[field], conditions);
            }
        }
        patch_list(&mut self.volumes, "volumes", &spec["volumes"], conditions);
        unknown
    }
}

fn patch_list(list: &mut Vec<Entry>, field: &str, items: &Value, conditions: &[Condition]) {
    let key = merge_key(field).unwrap_or("name");
    let items = items.as_array().map_or(&[][..], Vec::as_slice);
    let is_replaced = items.iter().any(|item| item["$patch"] == "replace");
    // Keep the entries that the patch replaces or deletes, for when the condition doesn't hold.
    let hide = |known: &mut Vec<Condition>| known.extend(conditions.last().map(|last| last.inverse()));
    if is_replaced {
        list.iter_mut().for_each(|(known, _)| hide(known));
    }
    for item in items {
        let mut merged = json!({});
        let is_same = |value: &Value| !is_replaced && value[key] == item[key];
        for (known, value) in list.iter_mut().filter(|(_, value)| is_same(value)) {
            merged = value.clone();
            hide(known);
        }
        if item["$patch"].is_null() {
            overlay::merge(&mut merged, item);
            list.push((conditions.to_vec(), merged));
        }
    }
}
