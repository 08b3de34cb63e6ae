//! The subresources `binding` and `eviction` of Pods. Evictions honour disruption budgets.
//!
//! Follows `pkg/registry/core/pod/storage/` of Kubernetes.

use std::sync::Arc;

use rbuilder_kubernetes::selector::selects;
use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::failure::Failure;
use super::kinds::{ResourceId, string_at};
use super::read::key_of;
use super::store::{Key, State};
use super::write::Writer;

/// Evictions that the disruption controller hasn't confirmed.
const MOST_DISRUPTED: usize = 2000;
const TOO_MANY: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

fn budgets() -> ResourceId {
    ResourceId::new("policy", "poddisruptionbudgets")
}

/// A budget that permits the eviction. `spent` is its next state, or `None` if the Pod doesn't
/// count.
#[derive(Default)]
struct Permit {
    spent: Option<(Key, Value)>,
}

impl State {
    /// Assigns a Pod to a node, as the scheduler does.
    pub(super) fn bind(&mut self, writer: Writer<'_>) -> Result<Value, Failure> {
        let pod = self.named(writer.request)?;
        let (name, node) = (
            string_at(&pod, "/metadata/name"),
            string_at(&pod, "/spec/nodeName"),
        );
        let refuse = |why: String| {
            let id = ResourceId::new("", "pods/binding");
            Err(Failure::conflict(&id, name, &why))
        };
        if pod["metadata"].get("deletionTimestamp").is_some() {
            return refuse(format!(
                "pod {name} is being deleted, cannot be assigned to a host"
            ));
        }
        if !node.is_empty() {
            return refuse(format!("pod {name} is already assigned to node \"{node}\""));
        }
        let mut bound = Value::clone(&pod);
        bound["spec"]["nodeName"] = writer.request.body["target"]["name"].clone();
        let condition = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": self.now(),
        });
        set_condition(&mut bound["status"], &condition);
        if !writer.is_dry_run() {
            let key = key_of(writer.request, name);
            self.put(writer.id(), key, bound);
        }
        Ok(success())
    }

    /// Evicts a Pod. Returns the status of the response.
    pub(super) fn evict(&mut self, writer: Writer<'_>) -> Result<Value, Failure> {
        let eviction = &writer.request.body;
        if writer.request.name.as_deref() != eviction["metadata"]["name"].as_str() {
            let message = "name in URL does not match name in Eviction object";
            return Err(Failure::bad_request(message));
        }
        let mut options = DeleteOptions::parse(&eviction["deleteOptions"])?;
        options.is_dry_run |= writer.is_dry_run();
        let pod = self.named(writer.request)?;
        let ends_anyway = matches!(
            string_at(&pod, "/status/phase"),
            "Succeeded" | "Failed" | "Pending"
        ) || pod["metadata"].get("deletionTimestamp").is_some();
        let permit = match ends_anyway {
            true => Permit::default(),
            false => self.find_permit(writer, &pod)?,
        };
        if !options.is_dry_run {
            if let Some((key, budget)) = permit.spent {
                self.put(&budgets(), key, budget);
            }
            self.note_eviction(writer, &pod);
        }
        self.delete_named(writer, &options)?;
        Ok(success())
    }

    fn note_eviction(&mut self, writer: Writer<'_>, pod: &Arc<Value>) {
        let mut pod = Value::clone(pod);
        let now = self.now();
        set_condition(
            &mut pod["status"],
            &json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
            }),
        );
        let key = key_of(writer.request, string_at(&pod, "/metadata/name"));
        self.put(writer.id(), key, pod);
    }

    fn find_permit(&self, writer: Writer<'_>, pod: &Value) -> Result<Permit, Failure> {
        let namespace = writer.request.namespace.as_deref().unwrap_or_default();
        let ids = budgets();
        let mut matching = self.objects(&ids).filter(|(key, budget)| {
            key.0 == namespace && selects(&budget["spec"]["selector"], &pod["metadata"]["labels"])
        });
        let Some((key, budget)) = matching.next() else {
            return Ok(Permit::default());
        };
        if matching.next().is_some() {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
                           not support.";
            return Err(Failure::new(500, "", message));
        }
        if !is_ready(pod) && permits_unready(budget) {
            return Ok(Permit::default());
        }
        let name = string_at(pod, "/metadata/name");
        let spent = spend(budget, name, &self.now())?;
        Ok(Permit {
            spent: Some((key.clone(), spent)),
        })
    }
}

fn success() -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 })
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn permits_unready(budget: &Value) -> bool {
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || healthy >= desired && desired > 0
}

fn count(budget: &Value, name: &str) -> i64 {
    budget["status"][name].as_i64().unwrap_or_default()
}

/// Returns a budget after one more disruption.
fn spend(budget: &Value, pod: &str, now: &str) -> Result<Value, Failure> {
    let name = string_at(budget, "/metadata/name");
    let generation = budget["metadata"]["generation"].as_i64().unwrap_or_default();
    if count(budget, "observedGeneration") < generation {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Failure::disruption(429, TOO_MANY, &cause, Some(10)));
    }
    let allowed = count(budget, "disruptionsAllowed");
    let disrupted = budget["status"]["disruptedPods"].as_object();
    let refuse = |why: &str, cause: &str| {
        let message = format!("poddisruptionbudget.policy \"{name}\" is forbidden: {why}");
        let cause = format!("The disruption budget {name} does not allow evicting pods currently: {cause}");
        Err(Failure::disruption(403, &message, &cause, None).about("poddisruptionbudget", "policy", name))
    };
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return refuse(why, why);
    }
    if disrupted.is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        return refuse(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "too many pending evictions not confirmed by PDB controller",
        );
    }
    if allowed == 0 {
        return Err(Failure::disruption(
            429,
            TOO_MANY,
            &why_none_is_allowed(budget),
            None,
        ));
    }
    let mut spent = budget.clone();
    let status = &mut spent["status"];
    status["disruptionsAllowed"] = (allowed - 1).into();
    status["disruptedPods"][pod] = now.into();
    if allowed == 1 {
        let condition = json!({
            "type": DISRUPTION_ALLOWED, "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": status["observedGeneration"], "lastTransitionTime": now,
        });
        set_condition(status, &condition);
    }
    Ok(spent)
}

fn why_none_is_allowed(budget: &Value) -> String {
    let name = string_at(budget, "/metadata/name");
    let conditions = budget["status"]["conditions"].as_array();
    let condition = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == DISRUPTION_ALLOWED && condition["status"] == "False");
    let (reason, message) = condition.map_or(("", ""), |condition| {
        (string_at(condition, "/reason"), string_at(condition, "/message"))
    });
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    match (message, reason) {
        (message, "SyncFailed") if !message.is_empty() => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if healthy <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        }
        ("", _) => format!("The disruption budget {name} does not allow evicting pods currently"),
        (message, reason) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        ),
    }
}

/// Replaces the condition of the same type, or adds one.
fn set_condition(status: &mut Value, condition: &Value) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    match conditions
        .iter_mut()
        .find(|known| known["type"] == condition["type"])
    {
        Some(known) => *known = condition.clone(),
        None => conditions.push(condition.clone()),
    }
}
