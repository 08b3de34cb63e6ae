//! Simulated network between the operator's processes and the API server.
//!
//! Every request passes through here to be recorded and, if the history demands it, disturbed.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use rbuilder_testing::fake::{ApiServer, Request, ResponseBody, Verb};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::BoxError;

use crate::answers::{LONGEST_WATCH, message_of_invalid, read_message, refusal};
use crate::environment::World;
use crate::external::{Outage, SharedSystems, Systems};
use crate::history::{Disturbance, History, Pace, Perturbation, Step};
use crate::leases::{ProcessId, is_election};
use crate::oracle::{Oracle, Violation, is_claim, repeated_secret, useless_owner};
use crate::run::{Invariant, Setting};
use crate::timeline::Actor;
use crate::tolerance::Tolerance;
use crate::traffic::{Deletion, Moment, Past, Traffic, kind_of_request};
use crate::world::{self, ObjectName, Snapshot};

/// How long the server takes to handle a request.
const LATENCY: Duration = Duration::from_millis(1);
/// The same in a slow environment. Times in statuses have no fractions, so a loop that writes the
/// time only goes on if a reconcile takes a second.
const SLOW_LATENCY: Duration = Duration::from_secs(1);
const SLOW_CALL: Duration = Duration::from_secs(60);
/// How long caches stay stale after [`CrashIntoPast`](crate::Disturbance::CrashIntoPast) and
/// [`CrashBehind`](crate::Disturbance::CrashBehind).
const BEHIND: Duration = Duration::from_secs(2);
/// How late events and lists are after [`DelayEvents`](crate::Disturbance::DelayEvents).
pub(crate) const DELAY: Duration = Duration::from_secs(2);
/// Duration of a partition: twice the default lease duration, so that the other replica takes over.
const CUT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) server: ApiServer,
    pub(crate) systems: SharedSystems,
    traffic: Arc<Mutex<Traffic>>,
    pub(crate) crashed: Arc<Notify>,
    rules: Rules,
}

/// What the test says about all runs.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    invariants: Arc<[Invariant]>,
    tolerance: Arc<Tolerance>,
    has_slow_server: bool,
}

impl Rules {
    fn latency(&self) -> Duration {
        match self.has_slow_server {
            true => SLOW_LATENCY,
            false => LATENCY,
        }
    }

    pub(crate) fn of(setting: &Setting, history: &History) -> Self {
        // The author of an invariant only knows the declared objects, not their copies.
        let has_copies = history.steps.iter().any(Step::is_elsewhere);
        let invariants = setting.invariants.iter().filter(|_| !has_copies);
        Self {
            invariants: invariants.cloned().collect(),
            tolerance: Arc::clone(&setting.tolerance),
            has_slow_server: history.environment == Pace::Slow,
        }
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules")
            .field("tolerance", &self.tolerance)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) network: Network,
    process: ProcessId,
    pub(crate) actor: Actor,
    is_dead: Arc<AtomicBool>,
    /// End of the current partition, if any.
    cut_until: Arc<Mutex<Option<Instant>>>,
}

impl Network {
    pub(crate) fn new(server: ApiServer, perturbations: Vec<Perturbation>, rules: Rules) -> Self {
        Self {
            server,
            rules,
            systems: SharedSystems::default(),
            traffic: Arc::new(Mutex::new(Traffic::new(perturbations))),
            crashed: Arc::new(Notify::new()),
        }
    }

    pub(crate) fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of changes in the cluster and in external systems, respectively.
    ///
    /// Repeats of the same event don't count, otherwise operators that emit events would never
    /// become idle.
    pub(crate) fn version(&self) -> (u64, u64) {
        let recorded = self.traffic().recorded;
        (self.server.version() - recorded, self.systems.lock().version())
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.server, &self.systems.lock(), &self.rules.tolerance)
    }

    /// Checks the user's invariants after a change. `actor` made the change.
    pub(crate) fn check_invariants(&self, actor: Actor) {
        if self.rules.invariants.is_empty() {
            return;
        }
        let world = World::new(self.server.objects(), self.systems.lock().objects());
        for (number, invariant) in self.rules.invariants.iter().enumerate() {
            if let Err(why) = invariant(&world) {
                let mut traffic = self.traffic();
                let violation = Violation::new(Oracle::Invariant, number.to_string(), why);
                if !traffic.violations.iter().any(|known| known.is_same(&violation)) {
                    let note = format!("breaks an invariant: {}", violation.message);
                    traffic.timeline.note(actor, note);
                    traffic.violations.push(violation);
                }
            }
        }
    }

    /// Connects a process. Its requests are attributed to `actor`.
    pub(crate) fn connect(&self, process: ProcessId, actor: Actor) -> Connection {
        match self.traffic().past.take() {
            Some(Past { version, kind: None }) => self.server.serve_past(version, BEHIND),
            Some(Past {
                version,
                kind: Some(kind),
            }) => {
                let (plural, group) = kind.split_once('.').unwrap_or((&kind, ""));
                self.server.serve_past_of(group, plural, version, BEHIND);
            }
            None => {}
        }
        Connection {
            network: self.clone(),
            process,
            actor,
            is_dead: Arc::default(),
            cut_until: Arc::default(),
        }
    }

    /// Sends a request on behalf of an actor other than the operator. The error is the server's
    /// message.
    pub(crate) async fn send(&self, actor: Actor, request: http::Request<String>) -> Result<(), String> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let request = request.map(|body| Body::from(body.into_bytes()));
        let before = self.server.version();
        let (code, result) = match self.server.call(request, true).await {
            Ok(response) if response.status().is_success() => (response.status().as_u16(), Ok(())),
            Ok(response) => {
                let code = response.status().as_u16();
                let (_, message) = read_message(response).await;
                (code, Err(message))
            }
            Err(_) => (0, Ok(())),
        };
        let changed = self.server.version() != before;
        let name = Request::parse(&method, &path, "");
        let name = name.map_or(path, |request| request.to_string());
        self.traffic().timeline.request(actor, name, code, changed);
        if changed {
            self.check_invariants(actor);
        }
        result
    }

    /// Deletes an object and, in the background, its dependents. Unlike the server's default, this
    /// includes the Pods of a Job, as in `kubectl delete`.
    pub(crate) async fn delete(&self, actor: Actor, object: &ObjectName) {
        self.delete_with(actor, object, "Background").await;
    }

    async fn delete_with(&self, actor: Actor, object: &ObjectName, policy: &str) {
        let options = json!({ "propagationPolicy": policy });
        let request = http::Request::delete(object.path()).body(options.to_string());
        // Rejections show up in the timeline.
        let _ = self.send(actor, request.expect("a path of names is a URI")).await;
    }

    pub(crate) async fn undeclare_in_foreground(&self, object: &ObjectName) {
        self.delete_with(Actor::User, object, "Foreground").await;
    }

    pub(crate) async fn undeclare(&self, object: &ObjectName) {
        self.delete(Actor::User, object).await;
    }

    /// Creates an object. Only the kind and namespace of `name` are used.
    pub(crate) async fn create(&self, actor: Actor, name: &ObjectName, object: &Value) {
        let request = http::Request::post(name.collection()).body(object.to_string());
        // Rejections show up in the timeline.
        let _ = self.send(actor, request.expect("a path of names is a URI")).await;
    }

    /// Applies a merge patch to an object or to a subresource, e.g. `/status`.
    pub(crate) async fn merge(&self, actor: Actor, object: &ObjectName, part: &str, patch: &Value) {
        let path = format!("{}{part}", object.path());
        let request = http::Request::patch(path).header(CONTENT_TYPE, "application/merge-patch+json");
        let request = request.body(patch.to_string());
        // Rejections show up in the timeline.
        let _ = self.send(actor, request.expect("a path of names is a URI")).await;
    }
}

impl Connection {
    pub(crate) fn client(&self) -> Client {
        let connection = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let connection = connection.clone();
            async move { connection.respond(request).await }
        });
        Client::new(service, "default")
    }

    /// Kills the process; its pending requests and watches never complete.
    pub(crate) fn kill(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    async fn respond(&self, request: http::Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        self.check_alive().await;
        let (parts, body) = request.into_parts();
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let Some(mut request) = Request::parse(&parts.method, path, query) else {
            // Discovery requests aren't part of a history.
            let request = http::Request::from_parts(parts, body);
            return self.network.server.call(request, false).await;
        };
        self.network.traffic().note_interest(&request);
        let bytes = body.collect_bytes().await?;
        if request.verb == Verb::Watch {
            return self.watch(request, &parts.headers, bytes).await;
        }
        // The body is only needed for what the path doesn't tell: names of new objects, and lease
        // holders.
        if request.name.is_none() || request.resource == "leases" {
            request.body = serde_json::from_slice(&bytes).unwrap_or_default();
        }
        self.answer(request, &parts.headers, bytes).await
    }

    /// Waits for a partition to heal. Never returns if the process is dead.
    pub(crate) async fn check_alive(&self) {
        loop {
            if self.is_dead() {
                std::future::pending::<()>().await;
            }
            let cut = *self.cut_until.lock().unwrap_or_else(PoisonError::into_inner);
            match cut.filter(|until| *until > Instant::now()) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => return,
            }
        }
    }

    pub(crate) fn cut_off(&self) {
        let mut cut = self.cut_until.lock().unwrap_or_else(PoisonError::into_inner);
        *cut = Some(Instant::now() + CUT);
    }

    async fn watch(
        &self,
        mut request: Request,
        headers: &HeaderMap,
        bytes: Bytes,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let kind = world::resource_of(&request.group, &request.resource);
        // kube requests a timeout of a few minutes, which would flood long histories with watches.
        let timeout = LONGEST_WATCH.as_secs().to_string();
        request.parameters.insert("timeoutSeconds".to_owned(), timeout);
        let response = self.network.server.respond(request, headers, bytes).await?;
        let (parts, body) = response.into_parts();
        let connection = self.clone();
        let frames = futures::stream::unfold(body, move |mut body| {
            let (connection, kind) = (connection.clone(), kind.clone());
            async move {
                let frame = body.frame().await?;
                // Check both before and after the delay, since the process may die or be
                // partitioned meanwhile.
                connection.check_alive().await;
                connection.await_delay(&kind).await;
                connection.check_alive().await;
                Some((frame, body))
            }
        });
        let frames = frames.map(|frame: Result<Frame<Bytes>, Infallible>| frame);
        Ok(Response::from_parts(
            parts,
            StreamBody::new(frames).boxed_unsync(),
        ))
    }

    async fn await_delay(&self, kind: &str) {
        loop {
            let until = self.network.traffic().delayed.get(kind).copied();
            match until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                _ => return,
            }
        }
    }

    async fn answer(
        &self,
        request: Request,
        headers: &HeaderMap,
        bytes: Bytes,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let target = ObjectName::of_request(&request);
        let stored = || world::find(&self.network.server, &target).map(|lease| (*lease).clone());
        if is_election(&request, stored) {
            return self.elect(&target, request, headers, bytes).await;
        }
        let verb = request.verb;
        tokio::time::sleep(self.network.rules.latency()).await;
        self.check_alive().await;
        let kind = kind_of_request(&request);
        let (moment, actions) = self.network.traffic().next_moment(&kind, false);
        if let Some(code) = self.disturb_before(&actions, &kind, &moment).await {
            return Ok(refusal(code));
        }
        let before = self.network.server.version();
        // Looking up an object has a cost; only do so for oracles that need the old state.
        let resource = target.resource();
        let is_compared = verb == Verb::Delete
            || is_write(verb)
                && (request.resource == "secrets" || self.network.rules.tolerance.has_regular(&resource));
        let old = is_compared.then(|| world::find(&self.network.server, &target));
        let response = self.network.server.respond(request, headers, bytes).await?;
        let code = response.status().as_u16();
        let (response, why) = message_of_invalid(response).await;
        let change = Change {
            code,
            versions: self.network.server.version() - before,
            old: old.flatten(),
        };
        {
            let mut traffic = self.network.traffic();
            match why {
                Some(why) if is_write(verb) => traffic.invalid.insert(kind, why),
                _ => traffic.invalid.remove(&kind),
            };
            self.record_answer(&mut traffic, verb, &target, moment, &change);
        }
        if change.versions > 0 {
            self.network.check_invariants(self.actor);
        }
        // Must come after the call: the server handles the request even if the process dies before
        // the response arrives.
        self.disturb_after(&actions, before).await?;
        if verb == Verb::List && self.is_delayed(&resource) {
            // Otherwise, a cache whose watch has expired would catch up at once.
            tokio::time::sleep(DELAY).await;
        }
        self.check_alive().await;
        Ok(response)
    }

    fn is_delayed(&self, kind: &str) -> bool {
        let until = self.network.traffic().delayed.get(kind).copied();
        until.is_some_and(|until| until > Instant::now())
    }

    fn record_answer(
        &self,
        traffic: &mut Traffic,
        verb: Verb,
        target: &ObjectName,
        moment: Moment,
        change: &Change,
    ) {
        let changed = change.versions > 0;
        if world::is_record(target) {
            traffic.recorded += change.versions;
        }
        let name = moment.name.clone();
        let objects = match changed {
            true => self.network.server.objects(),
            false => Vec::new(),
        };
        let written = world::find_among(&objects, target);
        let is_beat = self.is_beat(traffic, target, change, written.as_deref());
        if is_beat {
            traffic.recorded += change.versions;
        }
        traffic.timeline.request(self.actor, name, change.code, changed);
        traffic.moments.push(Moment {
            changed: changed && !is_beat,
            creates: change.code == CREATED && !world::is_record(target),
            ..moment
        });
        if !changed {
            return;
        }
        if !is_beat && !world::is_record(target) {
            *traffic.changes.entry(target.to_string()).or_default() += 1;
        }
        if let Some(claims) = traffic.claims.as_mut()
            && let Some(note) = claims.observe(&objects, target)
        {
            traffic.timeline.note(self.actor, note);
        }
        self.judge_leader(traffic, target);
        let deleted = change.old.clone().filter(|_| verb == Verb::Delete);
        let deletion = deleted.map(|object| Deletion {
            owner_lives: world::owner_lives(&self.network.server, &object),
            name: target.clone(),
            object,
        });
        if let Some(deletion) = deletion {
            traffic.deletions.push(deletion);
            return;
        }
        traffic.made.insert(target.to_string());
        if change.code == CREATED && is_claim(target) {
            traffic.new_claims.push(target.clone());
        }
        let Some(written) = written else { return };
        if let Some(violation) = useless_owner(target, &written, &objects) {
            traffic.violate(violation);
        }
        if target.resource() != "secrets" {
            return;
        }
        let repeated = repeated_secret(target, &traffic.deletions, &written);
        // Renewals are due when time passes.
        if let Some(violation) = repeated.filter(|_| !traffic.is_passing) {
            traffic.violate(violation);
        }
        traffic.secrets.observe(target, change.old.as_deref(), &written);
    }

    /// Returns whether a write only changes fields that change regularly, and is due.
    fn is_beat(
        &self,
        traffic: &mut Traffic,
        target: &ObjectName,
        change: &Change,
        written: Option<&Value>,
    ) -> bool {
        let (Some(before), Some(after)) = (&change.old, written) else {
            return false;
        };
        let tolerance = &self.network.rules.tolerance;
        let resource = target.resource();
        if !tolerance.has_regular(&resource) {
            return false;
        }
        traffic.is_beat(target, tolerance.interval_of(&resource, before, after))
    }

    fn judge_leader(&self, traffic: &mut Traffic, target: &ObjectName) {
        if traffic.leases.has_lost(self.process) && !world::is_record(target) {
            let message =
                format!("a former leader writes {target} after another replica has taken its lease");
            traffic.violate(Violation::new(Oracle::Leader, target.to_string(), message));
        }
    }

    /// Handles a leader election request.
    ///
    /// Lease renewals are frequent and excluded from snapshots, so only changes of the leader are
    /// recorded.
    async fn elect(
        &self,
        lease: &ObjectName,
        request: Request,
        headers: &HeaderMap,
        bytes: Bytes,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let before = self.network.server.version();
        let response = self.network.server.respond(request, headers, bytes).await?;
        let versions = self.network.server.version() - before;
        let written = world::find(&self.network.server, lease).filter(|_| versions > 0);
        if let Some(written) = written {
            let mut traffic = self.network.traffic();
            traffic.recorded += versions;
            if let Some(name) = traffic.leases.observe(self.process, &written) {
                let text = format!("takes the lease {name}");
                traffic.timeline.note(self.actor, text);
            }
        }
        self.check_alive().await;
        Ok(response)
    }

    pub(crate) async fn call_external<T>(
        &self,
        call: &str,
        handle: impl FnOnce(&mut Systems) -> T,
    ) -> Result<T, Outage> {
        self.check_alive().await;
        tokio::time::sleep(self.network.rules.latency()).await;
        self.check_alive().await;
        let (moment, actions) = self.network.traffic().next_moment(call, true);
        if let Some(code) = self.disturb_before(&actions, call, &moment).await {
            return Err(Outage::Refused(code));
        }
        let past = self.network.server.version();
        let before = self.network.version();
        let result = handle(&mut self.network.systems.lock());
        let changed = self.network.version() != before;
        {
            let mut traffic = self.network.traffic();
            let name = moment.name.clone();
            traffic.timeline.call(self.actor, name, 200, changed);
            traffic.moments.push(Moment { changed, ..moment });
        }
        if changed {
            self.network.check_invariants(self.actor);
        }
        if actions.iter().any(|one| one.action == Disturbance::Slow) {
            // The system completes the call even if the operator times out first.
            tokio::time::sleep(SLOW_CALL).await;
        }
        let answer = self.disturb_after(&actions, past).await;
        answer.map_err(|_| Outage::AnswerLost)?;
        self.check_alive().await;
        Ok(result)
    }
}

/// The status code for new objects.
const CREATED: u16 = 201;

struct Change {
    code: u16,
    versions: u64,
    /// Only set for oracles that need it.
    old: Option<Arc<Value>>,
}

fn is_write(verb: Verb) -> bool {
    !matches!(verb, Verb::Get | Verb::List | Verb::Watch)
}
