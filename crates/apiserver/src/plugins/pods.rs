//! Priorities and tolerations of Pods.

use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::kinds::{ResourceId, string_at};
use super::super::store::State;
use super::super::write::Writer;
use super::refuse;

/// Classes that exist in every cluster. Tests shouldn't see them among their own objects, so they
/// aren't stored.
const SYSTEM_CLASSES: &[(&str, i64)] = &[
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

const PREEMPTS: &str = "PreemptLowerPriority";

struct Priority {
    class: String,
    value: i64,
    policy: String,
}

impl State {
    pub(super) fn set_priority(&self, writer: Writer<'_>, pod: &mut Value) -> Result<(), Failure> {
        let priority = self.find_priority(string_at(pod, "/spec/priorityClassName"));
        let priority = priority.map_err(|why| refuse(writer, pod, &why))?;
        let spec = &pod["spec"];
        if let Some(given) = spec["priority"].as_i64().filter(|given| *given != priority.value) {
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
                 controller computed {} from the given PriorityClass name",
                priority.value
            );
            return Err(refuse(writer, pod, &why));
        }
        if let Some(given) = spec["preemptionPolicy"]
            .as_str()
            .filter(|given| *given != priority.policy)
        {
            let why = format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
                 controller computed {} from the given PriorityClass name",
                priority.policy
            );
            return Err(refuse(writer, pod, &why));
        }
        let spec = &mut pod["spec"];
        if !priority.class.is_empty() {
            spec["priorityClassName"] = priority.class.into();
        }
        spec["priority"] = priority.value.into();
        spec["preemptionPolicy"] = priority.policy.into();
        Ok(())
    }

    fn find_priority(&self, class: &str) -> Result<Priority, String> {
        let id = ResourceId::new("scheduling.k8s.io", "priorityclasses");
        let of_class = |class: &Value| Priority {
            class: string_at(class, "/metadata/name").to_owned(),
            value: class["value"].as_i64().unwrap_or_default(),
            policy: class["preemptionPolicy"].as_str().unwrap_or(PREEMPTS).to_owned(),
        };
        let of_system = |(name, value): &(&str, i64)| Priority {
            class: (*name).to_owned(),
            value: *value,
            policy: PREEMPTS.to_owned(),
        };
        if class.is_empty() {
            let defaults = self
                .objects(&id)
                .filter(|(_, class)| class["globalDefault"] == true);
            let lowest = defaults
                .map(|(_, class)| of_class(class))
                .min_by_key(|class| class.value);
            return Ok(lowest.unwrap_or_else(|| of_system(&("", 0))));
        }
        let stored = self.get(&id, &(String::new(), class.to_owned()));
        let system = || SYSTEM_CLASSES.iter().find(|(name, _)| *name == class);
        stored
            .map(|stored| of_class(stored))
            .or_else(|| system().map(of_system))
            .ok_or_else(|| format!("no PriorityClass with name {class} was found"))
    }
}

/// Clients that replace a Pod needn't know what the plugin has set.
pub(super) fn keep_priority(old: &Value, pod: &mut Value) {
    for name in ["priority", "preemptionPolicy"] {
        if pod["spec"][name].is_null() && !old["spec"][name].is_null() {
            pod["spec"][name] = old["spec"][name].clone();
        }
    }
}

/// Pods stay for five minutes on a node that fails.
pub(super) fn add_tolerations(pod: &mut Value) {
    if !pod["spec"].is_object() {
        return;
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let known = pod["spec"]["tolerations"].as_array();
        let tolerates = |toleration: &Value| {
            let effect = string_at(toleration, "/effect");
            let tolerated = string_at(toleration, "/key");
            (tolerated == key || tolerated.is_empty()) && matches!(effect, "" | "NoExecute")
        };
        if known.is_some_and(|known| known.iter().any(tolerates)) {
            continue;
        }
        if known.is_none() {
            pod["spec"]["tolerations"] = json!([]);
        }
        if let Some(tolerations) = pod["spec"]["tolerations"].as_array_mut() {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}
