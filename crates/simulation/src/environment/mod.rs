//! The parts of a cluster that operators depend on: controllers for workloads, volumes and
//! addresses.

#[cfg(test)]
mod cluster;
mod pods;
mod quotas;
mod rollouts;
mod storage;
mod workloads;

use rbuilder_kubernetes::gvk;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rbuilder_testing::fake::StoredObject;
use serde_json::Value;
use tokio::time::Instant;

use crate::history::Pace;
use crate::network::Network;
use crate::timeline::Actor;
use crate::world::ObjectName;

const SLOW: Duration = Duration::from_secs(20);
/// Longer than a request takes, so that an operator can write several objects in between.
const PROMPT: Duration = Duration::from_millis(10);

/// All objects in the cluster and in external systems, as seen by a [`Behavior`] or an invariant.
#[derive(Debug)]
pub struct World {
    objects: Vec<StoredObject>,
    externals: BTreeMap<String, Value>,
}

impl World {
    pub(crate) fn new(objects: Vec<StoredObject>, externals: BTreeMap<String, Value>) -> Self {
        Self { objects, externals }
    }

    /// All objects sorted by kind and name, except those that exist in every cluster.
    #[must_use]
    pub fn objects(&self) -> &[StoredObject] {
        &self.objects
    }

    /// Objects of external systems. Keys combine the system and the object name, e.g.
    /// `dns: a.example.com`.
    ///
    /// Duplicate names are numbered, as in `dns: a.example.com <2>`.
    #[must_use]
    pub fn externals(&self) -> &BTreeMap<String, Value> {
        &self.externals
    }

    /// All objects of a resource, e.g. `deployments` in the group `apps`.
    pub fn of<'w>(&'w self, group: &'w str, plural: &'w str) -> impl Iterator<Item = &'w StoredObject> {
        let objects = self.objects.iter();
        objects.filter(move |stored| stored.group == group && stored.resource == plural)
    }
}

/// A change made by a [`Behavior`].
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    object: ObjectName,
    change: Change,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    /// A merge patch for the object or one of its subresources, e.g. `/status`.
    Merge(&'static str, Value),
    Create(Value),
    Delete,
}

impl Act {
    /// Merges `status` into the status of an object, e.g. `{"phase": "Bound"}`.
    #[must_use]
    pub fn status(stored: &StoredObject, status: Value) -> Self {
        Self {
            object: ObjectName::of(stored),
            change: Change::Merge("/status", serde_json::json!({ "status": status })),
        }
    }

    /// Applies a merge patch to an object.
    #[must_use]
    pub fn merge(stored: &StoredObject, patch: Value) -> Self {
        Self {
            object: ObjectName::of(stored),
            change: Change::Merge("", patch),
        }
    }

    /// Creates an object of the given resource, e.g. `pods` with an empty `group`. Either `name` or
    /// `generateName` must be set.
    #[must_use]
    pub fn create(group: &str, plural: &str, object: Value) -> Self {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let api_version = text("/apiVersion");
        let (_, version) = gvk::split(&api_version);
        let object_name = ObjectName {
            group: group.to_owned(),
            plural: plural.to_owned(),
            version: version.to_owned(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        };
        Self {
            object: object_name,
            change: Change::Create(object),
        }
    }

    /// Deletes an object.
    #[must_use]
    pub fn delete(stored: &StoredObject) -> Self {
        Self {
            object: ObjectName::of(stored),
            change: Change::Delete,
        }
    }

    async fn take(&self, network: &Network) {
        let Self { object, change } = self;
        match change {
            Change::Merge(part, patch) => network.merge(Actor::Environment, object, part, patch).await,
            Change::Create(body) => network.create(Actor::Environment, object, body).await,
            Change::Delete => network.delete(Actor::Environment, object).await,
        }
    }
}

/// A controller of the simulated cluster.
///
/// Behaviors are level-triggered: after each change, they observe the complete state of the cluster
/// and return their next acts.
///
/// ```
/// use rbuilder_simulation::{Act, Behavior, Pace, World};
/// use serde_json::json;
///
/// /// Issues certificates, or never does.
/// struct Issuer;
///
/// impl Behavior for Issuer {
///     fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
///         let certificates = world.of("cert-manager.io", "certificates");
///         let pending = certificates.filter(|certificate| certificate.value()["status"]["revision"].is_null());
///         match pace {
///             Pace::Failing => Vec::new(),
///             _ => pending.map(|certificate| Act::status(certificate, json!({ "revision": 1 }))).collect(),
///         }
///     }
/// }
/// ```
pub trait Behavior: Send + Sync {
    /// Returns the controller's next changes, given the current state.
    ///
    /// Don't return no-op acts, or the simulation will never settle.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act>;
}

/// The active behaviors and their planned acts.
pub(crate) struct Environment {
    behaviors: Vec<Arc<dyn Behavior>>,
    pace: Pace,
    planned: Vec<(Act, Instant)>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}

/// Behaviors that exist in every cluster. With `has_pods`, workloads create ReplicaSets and Pods,
/// which only matters to operators that read them. `has_quotas` is for histories that fill quotas.
pub(crate) fn of_cluster(has_pods: bool, has_quotas: bool) -> Vec<Arc<dyn Behavior>> {
    let mut behaviors: Vec<Arc<dyn Behavior>> = vec![
        Arc::new(workloads::Workloads { has_pods }),
        Arc::new(workloads::Jobs),
        Arc::new(pods::JobPods),
        Arc::new(workloads::Pods),
        Arc::new(storage::Volumes),
        Arc::new(storage::LoadBalancers),
        Arc::new(workloads::Autoscalers),
    ];
    if has_pods {
        behaviors.push(Arc::new(rollouts::Rollouts));
        behaviors.push(Arc::new(pods::Replicas));
    } else {
        behaviors.push(Arc::new(workloads::Deployments));
    }
    if has_quotas {
        behaviors.push(Arc::new(quotas::Quotas));
    }
    behaviors
}

impl Environment {
    pub(crate) fn new(behaviors: Vec<Arc<dyn Behavior>>, pace: Pace) -> Self {
        Self {
            behaviors,
            pace,
            planned: Vec::new(),
        }
    }

    pub(crate) fn fail(&mut self) {
        self.pace = Pace::Failing;
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.planned.iter().map(|(_, due)| *due).min()
    }

    /// Asks the behaviors for their next acts. Necessary only after the world has changed.
    pub(crate) fn plan(&mut self, network: &Network) {
        let world = World::new(network.server.objects(), network.systems.lock().objects());
        let delay = if self.pace == Pace::Slow { SLOW } else { PROMPT };
        let now = Instant::now();
        let known = std::mem::take(&mut self.planned);
        for behavior in &self.behaviors {
            for act in behavior.next(&world, self.pace) {
                // Keep the due time of acts that are still desired, or any unrelated change would
                // postpone them.
                let due = known.iter().find(|(planned, _)| *planned == act);
                let due = due.map_or(now + delay, |(_, due)| *due);
                self.planned.push((act, due));
            }
        }
    }

    /// Executes the planned acts that are due.
    pub(crate) async fn act(&mut self, network: &Network) {
        let now = Instant::now();
        let due = self.planned.extract_if(.., |(_, due)| *due <= now);
        for (act, _) in due.collect::<Vec<_>>() {
            act.take(network).await;
        }
    }
}

pub(crate) fn contains(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(fields), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| contains(fields.get(name).unwrap_or(&Value::Null), wanted)),
        _ => value == wanted,
    }
}

/// Returns an act that updates the status, or `None` if it's already up to date.
fn status_act(stored: &StoredObject, wanted: Value) -> Option<Act> {
    (!contains(&stored.value()["status"], &wanted)).then(|| Act::status(stored, wanted))
}

fn is_going(stored: &StoredObject) -> bool {
    !stored.metadata("deletionTimestamp").is_empty()
}
