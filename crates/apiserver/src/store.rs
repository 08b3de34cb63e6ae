//! The stored state: kinds, objects, and the history of changes with their resource versions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rbuilder_catalogue::Minor;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::builtin::builtin_definitions;
use super::collect::Collector;
use super::failure::Failure;
use super::fault::Fault;
use super::identity::TokenKey;
use super::kinds::{Definition, ResourceId};
use super::past::Past;
use super::request::Request;
use super::results::Results;
use super::roles::Roles;
use super::watch::BOOKMARK_INTERVAL;
use super::webhooks::WebhookHandler;

/// Namespace and name of an object. Cluster-scoped objects have an empty namespace.
pub(super) type Key = (String, String);

pub(super) type Objects = BTreeMap<Key, Arc<Value>>;

#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) id: ResourceId,
    pub(super) key: Key,
    pub(super) before: Option<Arc<Value>>,
    pub(super) after: Option<Arc<Value>>,
    /// The object as sent to watches. For a deletion: the last state, but with the resource version
    /// of the deletion.
    pub(super) object: Arc<Value>,
}

/// The server's state, protected by a single lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) minor: Minor,
    kinds: BTreeMap<ResourceId, Arc<Definition>>,
    objects: BTreeMap<ResourceId, Objects>,
    changes: Vec<Change>,
    version: u64,
    /// Changes up to this version were compacted.
    compacted: u64,
    /// Incremented to close all watches opened in earlier epochs.
    pub(super) epoch: u64,
    pub(super) faults: Vec<Fault>,
    pub(super) requests: Requests,
    pub(super) roles: Roles,
    pub(super) collector: Option<Collector>,
    /// Simulated stale cache, for reads that accept any version.
    pub(super) past: Option<Past>,
    /// `None` disables webhooks.
    pub(super) webhooks: Option<WebhookHandler>,
    /// If set, repeated writes reuse earlier results.
    pub(super) results: Option<Results>,
    pub(super) bookmark_interval: Duration,
    /// Whether lists and watches apply the shard selector.
    pub(super) sharding: bool,
    pub(super) names: u64,
    /// Signs tokens, and authorizes requests by the roles in the store. `None` in tests.
    pub(super) token_key: Option<TokenKey>,
    /// How many changes are kept for watches and older lists. `None` keeps all.
    pub(super) most_changes: Option<usize>,
    clock: Clock,
    taken: Taken,
}

/// The time and generated names used by a request. A request that waits for webhooks is processed
/// several times and must see the same values each time.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// `None` outside of requests.
    now: Option<Timestamp>,
    names: Vec<u64>,
    /// Number of `names` consumed by the current attempt.
    used: usize,
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    /// With the status codes of the responses, 0 without a response.
    noted: Vec<(Arc<Request>, u16)>,
    forgotten: usize,
    /// Whether no requests are noted.
    pub(super) is_off: bool,
}

impl Requests {
    pub(super) fn note(&mut self, request: Arc<Request>) -> usize {
        let number = self.forgotten + self.noted.len();
        if !self.is_off {
            self.noted.push((request, 0));
        }
        number
    }

    pub(super) fn answered(&mut self, number: usize, code: u16) {
        // `forget_requests` may have been called meanwhile.
        let position = number.checked_sub(self.forgotten);
        if let Some((_, noted)) = position.and_then(|position| self.noted.get_mut(position)) {
            *noted = code;
        }
    }

    pub(super) fn forget(&mut self) {
        self.forgotten += self.noted.len();
        self.noted.clear();
    }

    pub(super) fn all(&self) -> Vec<Request> {
        let noted = self.noted.iter();
        noted
            .map(|(request, code)| Request {
                code: *code,
                ..Request::clone(request)
            })
            .collect()
    }
}

#[derive(Debug)]
struct Clock {
    wall: Timestamp,
    start: Instant,
}

impl Clock {
    fn now(&self) -> Timestamp {
        let passed = self.start.elapsed();
        self.wall
            .checked_add(jiff::SignedDuration::try_from(passed).unwrap_or_default())
            .unwrap_or(self.wall)
    }
}

impl State {
    pub(super) fn new(minor: Minor) -> Self {
        let kinds = builtin_definitions(minor).into_iter();
        let kinds = kinds.map(|kind| (kind.id.clone(), kind));
        let mut state = Self {
            minor,
            kinds: kinds.collect(),
            objects: BTreeMap::new(),
            changes: Vec::new(),
            version: 1,
            compacted: 1,
            epoch: 0,
            faults: Vec::new(),
            requests: Requests::default(),
            roles: Roles::default(),
            collector: None,
            past: None,
            webhooks: None,
            results: None,
            bookmark_interval: BOOKMARK_INTERVAL,
            sharding: false,
            names: 0,
            token_key: None,
            most_changes: None,
            clock: Clock {
                wall: Timestamp::now(),
                start: Instant::now(),
            },
            taken: Taken::default(),
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {
                    "name": name, "uid": state.uid(), "creationTimestamp": state.now(),
                    "labels": { "kubernetes.io/metadata.name": name },
                },
                "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" },
            });
            state.put(
                &ResourceId::namespaces(),
                (String::new(), name.to_owned()),
                namespace,
            );
        }
        state
    }

    pub(super) fn copy(&self) -> Self {
        Self {
            minor: self.minor,
            kinds: self.kinds.clone(),
            objects: self.objects.clone(),
            changes: self.changes.clone(),
            version: self.version,
            compacted: self.compacted,
            epoch: self.epoch,
            faults: Vec::new(),
            requests: Requests::default(),
            roles: self.roles.clone(),
            collector: self.collector.is_some().then(Collector::default),
            past: None,
            webhooks: self.webhooks.clone(),
            results: self.results.clone(),
            bookmark_interval: self.bookmark_interval,
            sharding: self.sharding,
            names: self.names,
            token_key: self.token_key.clone(),
            most_changes: self.most_changes,
            clock: Clock {
                wall: self.clock.now(),
                start: Instant::now(),
            },
            taken: Taken::default(),
        }
    }

    pub(super) fn start_clock(&mut self, wall: Timestamp) {
        let start = Instant::now();
        self.clock = Clock { wall, start };
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.kinds.values()
    }

    pub(super) fn kind(&self, id: &ResourceId) -> Option<&Arc<Definition>> {
        self.kinds.get(id)
    }

    /// Whether a group has built-in kinds. Its paths have a handler of their own.
    pub(super) fn is_builtin_group(&self, group: &str) -> bool {
        self.kinds().any(|kind| !kind.custom && kind.id.group == group)
    }

    // The new kind may contain owners of existing objects, so wake the collector.
    pub(super) fn serve(&mut self, mut definition: Definition) {
        self.collector = self.collector.take().map(Collector::looking_again);
        definition.since = self.version;
        self.kinds.insert(definition.id.clone(), Arc::new(definition));
    }

    pub(super) fn forget(&mut self, id: &ResourceId) {
        self.kinds.remove(id);
        self.objects.remove(id);
        self.changes.retain(|change| &change.id != id);
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, id: &ResourceId, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(id)?.get(key)
    }

    pub(super) fn objects(&self, id: &ResourceId) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.get(id).into_iter().flatten()
    }

    pub(super) fn everything(&self) -> impl Iterator<Item = (&ResourceId, &Key, &Arc<Value>)> {
        let kinds = self.objects.iter();
        kinds.flat_map(|(id, objects)| objects.iter().map(move |(key, object)| (id, key, object)))
    }

    pub(super) fn at(&self, id: &ResourceId, version: u64) -> Result<Objects, Failure> {
        if version > self.version {
            return Err(Failure::too_large_version(version, self.version));
        }
        if version < self.compacted {
            let message = "The provided continue parameter is too old to display a consistent list result. \
                           You must start a new list without the continue parameter.";
            return Err(Failure::of_code(410, message));
        }
        let mut objects = self.objects.get(id).cloned().unwrap_or_default();
        let later = self.since(version).filter(|change| &change.id == id);
        // Only the latest state is stored, so undo all later changes.
        for change in later.collect::<Vec<_>>().into_iter().rev() {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), before.clone()),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
    }

    pub(super) fn check_age(&self, version: u64) -> Result<(), Failure> {
        if version < self.compacted {
            let message = format!("too old resource version: {version} ({})", self.compacted);
            return Err(Failure::of_code(410, message));
        }
        Ok(())
    }

    pub(super) fn since(&self, version: u64) -> impl Iterator<Item = &Change> {
        // Changes are sorted by version.
        let start = self.changes.partition_point(|change| change.version <= version);
        self.changes[start..].iter()
    }

    pub(super) fn put(&mut self, id: &ResourceId, key: Key, mut object: Value) -> Arc<Value> {
        object["metadata"]["resourceVersion"] = (self.version + 1).to_string().into();
        self.put_shared(id, key, Arc::new(object))
    }

    /// Like [`put`](Self::put), for an object that already has the next resource version.
    pub(super) fn put_shared(&mut self, id: &ResourceId, key: Key, object: Arc<Value>) -> Arc<Value> {
        self.version += 1;
        let objects = self.objects.entry(id.clone()).or_default();
        let before = objects.insert(key.clone(), object.clone());
        self.changes.push(Change {
            version: self.version,
            id: id.clone(),
            key,
            before,
            after: Some(object.clone()),
            object: object.clone(),
        });
        self.trim_history();
        object
    }

    /// Removes an object. Watches receive its last state, but with the resource version of the
    /// deletion.
    pub(super) fn remove(&mut self, id: &ResourceId, key: &Key) {
        let Some(before) = self.objects.get_mut(id).and_then(|objects| objects.remove(key)) else {
            return;
        };
        self.version += 1;
        let mut last = Value::clone(&before);
        last["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.changes.push(Change {
            version: self.version,
            id: id.clone(),
            key: key.clone(),
            before: Some(before),
            after: None,
            object: Arc::new(last),
        });
        self.trim_history();
    }

    /// Forgets the oldest changes once there are twice as many as wanted, so that each is moved once
    /// on average.
    fn trim_history(&mut self) {
        let Some(most) = self
            .most_changes
            .filter(|most| self.changes.len() >= most.saturating_mul(2))
        else {
            return;
        };
        let mut forgotten = self.changes.drain(..self.changes.len() - most);
        let last = forgotten.next_back();
        self.compacted = last.map_or(self.compacted, |change| change.version);
    }

    pub(super) fn compact(&mut self) {
        // Bump the version, so that even up-to-date clients must relist.
        self.version += 1;
        self.compacted = self.version;
        self.changes.clear();
    }

    /// The current time in the metadata format, i.e. without fractional seconds.
    pub(super) fn now(&self) -> String {
        let now = self.taken.now.unwrap_or_else(|| self.clock.now());
        now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The current time in seconds since 1970.
    pub(super) fn seconds(&self) -> i64 {
        self.taken.now.unwrap_or_else(|| self.clock.now()).as_second()
    }

    /// The time in some seconds, in the metadata format.
    pub(super) fn now_after(&self, seconds: i64) -> String {
        let now = self.taken.now.unwrap_or_else(|| self.clock.now());
        let later = now
            .checked_add(jiff::SignedDuration::from_secs(seconds))
            .unwrap_or(now);
        later.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Generates a uid that looks like a UUID but is the same in every run.
    pub(super) fn uid(&mut self) -> String {
        let name = self.take_name();
        // The last digits barely affect the shard hash, so that all objects would be in one range. Mix
        // the leading digits as well, since real UIDs are random.
        let spread = name.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!(
            "{:08x}-{:04x}-4000-8000-{name:012x}",
            spread >> 32,
            (spread >> 16) & 0xffff
        )
    }

    fn take_name(&mut self) -> u64 {
        // Already taken by an earlier attempt at the same request.
        if let Some(name) = self.taken.names.get(self.taken.used) {
            self.taken.used += 1;
            return *name;
        }
        self.names += 1;
        // No need to remember names outside of requests.
        if self.taken.now.is_some() {
            self.taken.names.push(self.names);
            self.taken.used += 1;
        }
        self.names
    }

    pub(super) fn begin(&mut self, mut taken: Taken) {
        taken.now.get_or_insert_with(|| self.clock.now());
        taken.used = 0;
        self.taken = taken;
    }

    pub(super) fn end(&mut self) -> Taken {
        std::mem::take(&mut self.taken)
    }

    /// Generates a suffix for `generateName`, reproducible across runs.
    pub(super) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        // The factor is coprime to 27⁵, so all values occur in scattered order before one repeats.
        let mut number = self.take_name().wrapping_mul(7_654_321) % 27u64.pow(5);
        let mut suffix = String::new();
        for _ in 0..5 {
            suffix.push(char::from(LETTERS[(number % 27) as usize]));
            number /= 27;
        }
        suffix
    }
}
