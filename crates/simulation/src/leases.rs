//! Tracks which process holds or has lost each leader election lease.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_testing::fake::{Request, Verb};
use serde_json::Value;

/// Process number within a run. Restarted operators get a new one.
pub(crate) type ProcessId = usize;

#[derive(Clone, Debug, Default)]
pub(crate) struct Leases {
    /// Holder identity and process, keyed by namespace and name of the lease.
    held: BTreeMap<String, (String, ProcessId)>,
    /// Processes that lost a lease to another process.
    former: BTreeSet<ProcessId>,
}

impl Leases {
    pub(crate) fn observe(&mut self, process: ProcessId, lease: &Value) -> Option<String> {
        let text = |pointer: &str| lease.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
        let holder = text("/spec/holderIdentity").to_owned();
        if holder.is_empty() {
            // Released. The previous holder can't conflict with a new one until the lease is
            // acquired again.
            return None;
        }
        let before = self.held.insert(name.clone(), (holder.clone(), process));
        // Renewals don't change the leader.
        match before {
            Some((known, _)) if known == holder => None,
            Some((_, former)) => {
                self.former.insert(former);
                Some(name)
            }
            None => Some(name),
        }
    }

    pub(crate) fn has_lost(&self, process: ProcessId) -> bool {
        self.former.contains(&process)
    }
}

/// Returns whether a request is part of leader election. Leases without a holder don't count, since
/// operators may use them for other purposes.
pub(crate) fn is_election(request: &Request, stored: impl FnOnce() -> Option<Value>) -> bool {
    if request.resource != "leases" || request.group != "coordination.k8s.io" || request.verb == Verb::Delete
    {
        return false;
    }
    let has_holder = |lease: &Value| lease["spec"]["holderIdentity"].is_string();
    has_holder(&request.body) || stored().is_some_and(|lease| has_holder(&lease))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(holder: &str) -> Value {
        json!({
            "metadata": { "namespace": "default", "name": "operator" },
            "spec": { "holderIdentity": holder },
        })
    }

    #[test]
    fn process_has_lost_its_lease_once_another_has_taken_it() {
        let mut leases = Leases::default();
        let name = Some("default/operator".to_owned());
        assert_eq!(leases.observe(0, &lease("a")), name);
        assert_eq!(leases.observe(0, &lease("a")), None, "a renewal");
        assert_eq!(leases.observe(0, &lease("")), None, "a release");
        assert!(!leases.has_lost(0));
        assert_eq!(leases.observe(1, &lease("b")), name);
        assert!(leases.has_lost(0) && !leases.has_lost(1));
    }
}
