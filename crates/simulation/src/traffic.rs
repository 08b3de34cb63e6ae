//! What passes between the operator and the API server in a run, and what the history still has to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rbuilder_testing::fake::{Request, Verb};
use serde_json::Value;
use tokio::time::Instant;

use crate::history::Perturbation;
use crate::leases::Leases;
use crate::oracle::{Claims, Secrets, Violation};
use crate::timeline::Timeline;
use crate::world::ObjectName;

/// A request of the operator, as perturbations name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The request and its number, such as `create pods default/a #1`.
    pub(crate) name: String,
    /// Whether the server has changed something.
    pub(crate) changed: bool,
    /// Whether it is a call of an external system.
    pub(crate) is_external: bool,
    /// Number of the step of the history.
    pub(crate) step: usize,
}

/// A deletion by the operator.
#[derive(Clone, Debug)]
pub(crate) struct Deletion {
    pub(crate) name: ObjectName,
    /// Whether an owner of the object exists and is not being deleted. If the object has no owners, any
    /// custom resource counts.
    pub(crate) owner_lives: bool,
    /// The deleted object.
    pub(crate) object: Arc<Value>,
}

/// A former state of the cluster, with which caches begin.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    pub(crate) version: u64,
    /// The only kind whose cache is behind, such as `widgets.example.com`; `None` for all.
    pub(crate) kind: Option<String>,
}

/// The state that all connections of a run share.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    counts: BTreeMap<String, usize>,
    /// Perturbations that have not happened yet.
    pub(crate) waiting: Vec<Perturbation>,
    pub(crate) moments: Vec<Moment>,
    /// Names of objects that the operator has written.
    pub(crate) made: BTreeSet<String>,
    pub(crate) deletions: Vec<Deletion>,
    /// What requests of the operator have violated.
    pub(crate) violations: Vec<Violation>,
    /// Values in Secrets that the operator has made.
    pub(crate) secrets: Secrets,
    /// Who leads.
    pub(crate) leases: Leases,
    /// Writes of the operator that the server finds invalid and has never accepted, and why.
    pub(crate) invalid: BTreeMap<String, String>,
    /// Number of changes to objects that no state contains, such as events.
    pub(crate) recorded: u64,
    /// What statuses claim. `None` in a run with perturbations, after which they may be outdated.
    pub(crate) claims: Option<Claims>,
    step: usize,
    /// The version of the cluster when the step began.
    pub(crate) step_version: u64,
    pub(crate) delayed: BTreeMap<String, Instant>,
    pub(crate) forbidden: Vec<(String, Instant)>,
    /// Whether the operator has accepted any resource version in a list or watch, which may be a past one.
    pub(crate) accepts_past: bool,
    /// Whether the operator has asked for Pods or ReplicaSets.
    pub(crate) asks_for_pods: bool,
    /// What the caches of the next process begin with.
    pub(crate) past: Option<Past>,
    /// An object that the user has deleted and must declare again.
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

    /// Begins a step of the history.
    pub(crate) fn begin_step(&mut self, number: usize, version: u64) {
        self.step = number;
        self.step_version = version;
        if let Some(claims) = &mut self.claims {
            claims.forget();
        }
    }

    /// Counts a request. Returns it, and what the history says about it.
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
            step: self.step,
        };
        (moment, now)
    }

    /// Notes what a request of the operator shows about what it reads: whether it accepts what the server
    /// has in memory, and whether it looks at Pods.
    pub(crate) fn note_interest(&mut self, request: &Request) {
        let kind = (request.group.as_str(), request.resource.as_str());
        self.asks_for_pods |= matches!(kind, ("", "pods") | ("apps", "replicasets"));
        let is_list = matches!(request.verb, Verb::List | Verb::Watch);
        self.accepts_past |= is_list && request.parameter("resourceVersion") == "0";
    }

    pub(crate) fn is_forbidden(&self, kind: &str) -> bool {
        let now = Instant::now();
        let mut forbidden = self.forbidden.iter();
        forbidden.any(|(wanted, until)| wanted == kind && *until > now)
    }
}

/// Returns the name of the request without its number. Created objects are named by their body, with
/// `*` in place of the generated part of a name.
pub(crate) fn kind_of_request(request: &Request) -> String {
    let text = name_request(request);
    // Clients name events after the time.
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
