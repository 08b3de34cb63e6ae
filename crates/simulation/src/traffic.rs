//! Requests made so far in a run, and pending perturbations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rbuilder_testing::fake::{Request, Verb};
use serde_json::Value;
use tokio::time::Instant;

use crate::history::Perturbation;
use crate::leases::Leases;
use crate::oracle::{Claims, Secrets, Violation};
use crate::timeline::Timeline;
use crate::world::ObjectName;

/// How much earlier than its interval a regular write may come, e.g. because the one before was
/// late.
const EARLY: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Request and ordinal, e.g. `create pods default/a #1`.
    pub(crate) name: String,
    /// Whether the request had any effect.
    pub(crate) changed: bool,
    pub(crate) is_external: bool,
    /// Whether the request created an object.
    pub(crate) creates: bool,
    pub(crate) step: usize,
}

impl Moment {
    /// Resource in the name, e.g. `pods` in `create pods default/a #1`.
    pub(crate) fn resource(&self) -> &str {
        self.name.split(' ').nth(1).unwrap_or_default()
    }

    /// Namespace in the name, or an empty string.
    pub(crate) fn namespace(&self) -> &str {
        let object = self.name.split(' ').nth(2).unwrap_or_default();
        object.split_once('/').map_or("", |(namespace, _)| namespace)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Deletion {
    pub(crate) name: ObjectName,
    /// Whether the object has an owner that isn't being deleted. Without owner references, any
    /// custom resource counts.
    pub(crate) owner_lives: bool,
    pub(crate) object: Arc<Value>,
}

#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) version: u64,
    /// `None` if all caches are stale.
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Traffic {
    counts: BTreeMap<String, usize>,
    pub(crate) waiting: Vec<Perturbation>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) made: BTreeSet<String>,
    pub(crate) deletions: Vec<Deletion>,
    /// Index of the first of `deletions` in the current step.
    pub(crate) first_deletion: usize,
    /// Claims that the operator created in the current step.
    pub(crate) new_claims: Vec<ObjectName>,
    /// Whether time passes in the current step, so that renewals are due.
    pub(crate) is_passing: bool,
    /// Last regular write by object, see [`Simulation::every`](crate::Simulation::every).
    beats: BTreeMap<String, Instant>,
    /// Number of changes by the operator in the current step, by request.
    pub(crate) changes: BTreeMap<String, usize>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) secrets: Secrets,
    pub(crate) leases: Leases,
    /// Writes that the server rejected as invalid, with the message. Removed if the same write is
    /// accepted later.
    pub(crate) invalid: BTreeMap<String, String>,
    /// Changes to objects that snapshots exclude, e.g. events.
    pub(crate) recorded: u64,
    /// Only tracked in undisturbed runs, since perturbations may leave a status outdated.
    pub(crate) claims: Option<Claims>,
    step: usize,
    pub(crate) step_version: u64,
    pub(crate) delayed: BTreeMap<String, Instant>,
    pub(crate) forbidden: Vec<(String, Instant)>,
    /// Whether the operator lists or watches with `resourceVersion=0`, which permits stale results.
    pub(crate) accepts_past: bool,
    pub(crate) asks_for_pods: bool,
    /// Initial cache state of the next process.
    pub(crate) past: Option<Past>,
    /// An object that was deleted behind the operator's back and is to be redeclared.
    pub(crate) to_redeclare: Option<ObjectName>,
    pub(crate) timeline: Timeline,
}

impl Traffic {
    pub(crate) fn new(perturbations: Vec<Perturbation>) -> Self {
        Self {
            claims: perturbations.is_empty().then(Claims::default),
            waiting: perturbations,
            ..Self::default()
        }
    }

    pub(crate) fn begin_step(&mut self, number: usize, version: u64, is_passing: bool) {
        self.step = number;
        self.step_version = version;
        self.is_passing = is_passing;
        self.first_deletion = self.deletions.len();
        self.new_claims.clear();
        self.changes.clear();
        if let Some(claims) = &mut self.claims {
            claims.forget();
        }
    }

    /// Numbers a request and takes the perturbations attached to it.
    pub(crate) fn next_moment(&mut self, kind: &str, is_external: bool) -> (Moment, Vec<Perturbation>) {
        let count = self.counts.entry(kind.to_owned()).or_default();
        *count += 1;
        let name = format!("{kind} #{count}");
        let (now, later) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|perturbation| perturbation.at == name);
        self.waiting = later;
        let moment = Moment {
            name,
            changed: false,
            is_external,
            creates: false,
            step: self.step,
        };
        (moment, now)
    }

    pub(crate) fn note_interest(&mut self, request: &Request) {
        let kind = (request.group.as_str(), request.resource.as_str());
        self.asks_for_pods |= matches!(kind, ("", "pods") | ("apps", "replicasets"));
        let is_list = matches!(request.verb, Verb::List | Verb::Watch);
        self.accepts_past |= is_list && request.parameter("resourceVersion") == "0";
    }

    /// Notes a write to an object with regular fields. Returns whether it only changes these, at
    /// the given interval, and comes no earlier than the interval allows.
    pub(crate) fn is_beat(&mut self, object: &ObjectName, interval: Option<Duration>) -> bool {
        let now = Instant::now();
        let before = self.beats.insert(object.to_string(), now);
        let passed = before.map(|before| now.duration_since(before) + EARLY);
        interval.is_some_and(|interval| passed.is_none_or(|passed| passed >= interval))
    }

    /// Records a violation, unless the run has it already.
    pub(crate) fn violate(&mut self, violation: Violation) {
        if !self.violations.iter().any(|known| known.is_same(&violation)) {
            self.violations.push(violation);
        }
    }

    pub(crate) fn is_forbidden(&self, kind: &str) -> bool {
        let now = Instant::now();
        let mut forbidden = self.forbidden.iter();
        forbidden.any(|(wanted, until)| wanted == kind && *until > now)
    }
}

/// Name of a request without its ordinal. Random parts become `*`, since names must be identical
/// across runs.
pub(crate) fn kind_of_request(request: &Request) -> String {
    let text = name_request(request);
    // Names of events contain a timestamp.
    match text.rsplit_once('.') {
        Some((start, _)) if request.resource == "events" && start.contains('/') => format!("{start}.*"),
        _ => text,
    }
}

fn name_request(request: &Request) -> String {
    let text = request.to_string();
    if request.verb != Verb::Create || request.name.is_some() {
        return text;
    }
    let metadata = &request.body["metadata"];
    let name = match (metadata["name"].as_str(), metadata["generateName"].as_str()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prefix)) => format!("{prefix}*"),
        (None, None) => return text,
    };
    match text.split_once(" in ") {
        Some((start, namespace)) => format!("{start} {namespace}/{name}"),
        None => format!("{text} {name}"),
    }
}
