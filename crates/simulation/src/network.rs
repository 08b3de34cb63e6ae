//! The connection between an operator's process and the API server: it records requests, and disturbs
//! them as the history says.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use rbuilder_testing::fake::{ApiServer, Request, ResponseBody, Verb};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::BoxError;

use crate::external::{Outage, SharedSystems, Systems, is_external};
use crate::history::{Disturbance, Perturbation};
use crate::oracle::{Claims, Violation, lost_claim, repeated_secret};
use crate::timeline::{Actor, Timeline};
use crate::world::{self, ObjectName, Snapshot};

/// How long a permission is taken.
const OUTAGE: Duration = Duration::from_secs(30);
/// How long the operator does not see that an object was deleted and declared again.
const UNSEEN: Duration = Duration::from_millis(500);
/// How long a slow call of an external system takes.
const SLOW_CALL: Duration = Duration::from_secs(60);
/// How late events are.
const DELAY: Duration = Duration::from_secs(2);

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

/// The state that all connections of a run share.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    counts: BTreeMap<String, usize>,
    /// Perturbations that have not happened yet.
    pub(crate) waiting: Vec<Perturbation>,
    pub(crate) moments: Vec<Moment>,
    deletions: Vec<Deletion>,
    /// Losses of data by the operator.
    pub(crate) losses: Vec<Violation>,
    /// Writes of the operator that the server finds invalid and has never accepted, and why.
    pub(crate) invalid: BTreeMap<String, String>,
    /// Number of changes to objects that no state contains, such as events.
    recorded: u64,
    /// What statuses claim. `None` in a run with perturbations, after which they may be outdated.
    pub(crate) claims: Option<Claims>,
    step: usize,
    delayed: BTreeMap<String, Instant>,
    forbidden: Vec<(String, Instant)>,
    /// The version that the caches of the next process begin with.
    past: Option<u64>,
    /// An object that the user has deleted and must declare again.
    pub(crate) to_redeclare: Option<ObjectName>,
    pub(crate) timeline: Timeline,
}

/// A network between operators and the server.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) server: ApiServer,
    pub(crate) systems: SharedSystems,
    traffic: Arc<Mutex<Traffic>>,
    /// Notified when a process has crashed.
    pub(crate) crashed: Arc<Notify>,
}

/// The connection of one process.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    network: Network,
    is_dead: Arc<AtomicBool>,
}

impl Network {
    pub(crate) fn new(server: ApiServer, perturbations: Vec<Perturbation>) -> Self {
        let traffic = Traffic {
            claims: perturbations.is_empty().then(Claims::default),
            waiting: perturbations,
            ..Traffic::default()
        };
        Self {
            server,
            systems: SharedSystems::default(),
            traffic: Arc::new(Mutex::new(traffic)),
            crashed: Arc::new(Notify::new()),
        }
    }

    pub(crate) fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of changes in the cluster, and of those in external systems. An event that is
    /// published again and again is none.
    pub(crate) fn version(&self) -> (u64, u64) {
        let recorded = self.traffic().recorded;
        (self.server.version() - recorded, self.systems.lock().version())
    }

    /// Returns the state of the cluster and of external systems.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.server, &self.systems.lock())
    }

    /// Returns the connection of a new process.
    pub(crate) fn connect(&self) -> Connection {
        let past = self.traffic().past.take();
        self.server.serve_past(past);
        Connection {
            network: self.clone(),
            is_dead: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Sends a request of another actor and records it. Returns the answer's status and body.
    pub(crate) async fn send(&self, actor: Actor, request: http::Request<String>) -> (u16, Value) {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let request = request.map(|body| Body::from(body.into_bytes()));
        let before = self.server.version();
        let (code, body) = match self.server.call(request, true).await {
            Ok(response) => {
                let code = response.status().as_u16();
                let bytes = response
                    .into_body()
                    .collect()
                    .await
                    .map(http_body_util::Collected::to_bytes);
                let bytes = bytes.unwrap_or_default();
                (code, serde_json::from_slice(&bytes).unwrap_or_default())
            }
            Err(_) => (0, Value::Null),
        };
        let changed = self.server.version() != before;
        let name = Request::parse(&method, &path, "");
        let name = name.map_or(path, |request| request.to_string());
        self.traffic().timeline.request(actor, name, code, changed);
        (code, body)
    }

    async fn delete(&self, actor: Actor, object: &ObjectName, options: &Value) {
        let request = http::Request::delete(object.path()).body(options.to_string());
        self.send(actor, request.expect("a path of names is a URI")).await;
    }

    /// Deletes a declared object, which stays until its dependents are gone.
    pub(crate) async fn undeclare_in_foreground(&self, object: &ObjectName) {
        let options = json!({ "propagationPolicy": "Foreground" });
        self.delete(Actor::User, object, &options).await;
    }

    /// Deletes a declared object.
    pub(crate) async fn undeclare(&self, object: &ObjectName) {
        self.delete(Actor::User, object, &json!({})).await;
    }

    /// Changes an object, or a part such as `/status`, by a merge patch.
    pub(crate) async fn merge(&self, actor: Actor, object: &ObjectName, part: &str, patch: &Value) {
        let path = format!("{}{part}", object.path());
        let request = http::Request::patch(path).header(CONTENT_TYPE, "application/merge-patch+json");
        let request = request.body(patch.to_string());
        self.send(actor, request.expect("a path of names is a URI")).await;
    }
}

impl Connection {
    /// Returns the client of the process.
    pub(crate) fn client(&self) -> Client {
        let connection = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let connection = connection.clone();
            async move { connection.respond(request).await }
        });
        Client::new(service, "default")
    }

    /// Ends all requests and watches of the process: none of them returns.
    pub(crate) fn kill(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
    }

    fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    async fn respond(&self, request: http::Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        self.check_alive().await;
        let (parts, body) = request.into_parts();
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let parsed = Request::parse(&parts.method, path, query);
        let bytes = body.collect_bytes().await?;
        let rebuilt = http::Request::from_parts(parts, Body::from(bytes.to_vec()));
        match parsed {
            Some(request) if request.verb == Verb::Watch => self.watch(&request, rebuilt).await,
            Some(mut request) => {
                request.body = serde_json::from_slice(&bytes).unwrap_or_default();
                self.answer(&request, rebuilt).await
            }
            // Discovery.
            None => self.network.server.call(rebuilt, false).await,
        }
    }

    /// Never returns if the process is dead.
    async fn check_alive(&self) {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Opens a watch whose events can be late.
    async fn watch(
        &self,
        request: &Request,
        http: http::Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let response = self.network.server.call(http, false).await?;
        let (parts, body) = response.into_parts();
        let kind = world::resource_of(&request.group, &request.resource);
        let connection = self.clone();
        let frames = futures::stream::unfold(body, move |mut body| {
            let (connection, kind) = (connection.clone(), kind.clone());
            async move {
                let frame = body.frame().await?;
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
        request: &Request,
        http: http::Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let kind = kind_of_request(request);
        let (moment, actions) = self.network.traffic().next_moment(&kind, false);
        let name = moment.name.clone();
        if let Some(code) = self.disturb_before(&actions, &kind, &moment).await {
            return Ok(refusal(code));
        }
        let before = self.network.server.version();
        let target = ObjectName::of_request(request);
        let old = (request.verb == Verb::Delete).then(|| world::find(&self.network.server, &target));
        let response = self.network.server.call(http, false).await?;
        let code = response.status().as_u16();
        let (response, why) = message_of_invalid(response).await;
        let changed = self.network.server.version() != before;
        {
            let mut traffic = self.network.traffic();
            match why {
                Some(why) if is_write(request.verb) => traffic.invalid.insert(kind, why),
                _ => traffic.invalid.remove(&kind),
            };
            if world::is_record(&target) {
                traffic.recorded += self.network.server.version() - before;
            }
            traffic.timeline.request(Actor::Operator, name, code, changed);
            if let Some(claims) = traffic.claims.as_mut().filter(|_| changed) {
                claims.observe(&self.network.server.objects(), &target);
            }
            let deleted = old.flatten().filter(|_| changed);
            let deletion = deleted.map(|object| Deletion {
                owner_lives: world::owner_lives(&self.network.server, &object),
                name: target.clone(),
                object,
            });
            let loss = match &deletion {
                Some(deletion) => lost_claim(deletion),
                None if changed => {
                    let written = || world::find(&self.network.server, &target);
                    repeated_secret(&target, &traffic.deletions, written)
                }
                None => None,
            };
            traffic.losses.extend(loss);
            traffic.deletions.extend(deletion);
            traffic.moments.push(Moment { changed, ..moment });
        }
        self.disturb_after(&actions, before).await?;
        self.check_alive().await;
        Ok(response)
    }

    /// Lets external systems handle a call.
    pub(crate) async fn call_external<T>(
        &self,
        call: &str,
        handle: impl FnOnce(&mut Systems) -> T,
    ) -> Result<T, Outage> {
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
            traffic.timeline.call(Actor::Operator, name, 200, changed);
            traffic.moments.push(Moment { changed, ..moment });
        }
        let answer = self.disturb_after(&actions, past).await;
        answer.map_err(|_| Outage::AnswerLost)?;
        self.check_alive().await;
        Ok(result)
    }

    /// Does what the history says before a request. Returns the status code of the answer if the request
    /// does not reach its destination.
    async fn disturb_before(&self, actions: &[Perturbation], kind: &str, moment: &Moment) -> Option<u16> {
        for perturbation in actions {
            self.network.note(perturbation);
            match &perturbation.action {
                Disturbance::CrashBefore => {
                    self.crash();
                    self.check_alive().await;
                }
                Disturbance::Refuse(code) => {
                    self.network.record(moment, *code);
                    return Some(*code);
                }
                Disturbance::Forbid => {
                    let until = Instant::now() + OUTAGE;
                    self.network.traffic().forbidden.push((kind.to_owned(), until));
                }
                Disturbance::Slow => tokio::time::sleep(SLOW_CALL).await,
                Disturbance::DelayEvents(kind) => {
                    let until = Instant::now() + DELAY;
                    self.network.traffic().delayed.insert(kind.clone(), until);
                }
                _ => {}
            }
        }
        if self.network.traffic().is_forbidden(kind) {
            self.network.record(moment, 403);
            return Some(403);
        }
        None
    }

    /// Does what the history says after a request.
    async fn disturb_after(&self, actions: &[Perturbation], before: u64) -> Result<(), BoxError> {
        let network = &self.network;
        for perturbation in actions {
            match &perturbation.action {
                Disturbance::CrashAfter => self.crash(),
                Disturbance::CrashIntoPast => {
                    network.traffic().past = Some(before);
                    self.crash();
                }
                Disturbance::LoseAnswer => return Err("the simulation lost the answer".into()),
                Disturbance::EndWatches => network.server.drop_watches(),
                Disturbance::ExpireWatches => network.server.expire_watches(),
                Disturbance::Remove(object) if is_external(object) => network.remove_external(object),
                Disturbance::Remove(object) => {
                    if let Some(object) = ObjectName::parse(object) {
                        network.delete(Actor::Other, &object, &json!({})).await;
                    }
                }
                Disturbance::Edit(object) => {
                    if let Some(object) = ObjectName::parse(object) {
                        network.edit(&object).await;
                    }
                }
                Disturbance::Redeclare(object) => {
                    if let Some(object) = ObjectName::parse(object) {
                        let kind = object.resource();
                        let until = Instant::now() + UNSEEN;
                        network.traffic().delayed.insert(kind, until);
                        network.undeclare(&object).await;
                        network.traffic().to_redeclare = Some(object);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The process dies now.
    fn crash(&self) {
        self.kill();
        self.network.crashed.notify_one();
    }
}

impl Network {
    fn note(&self, perturbation: &Perturbation) {
        let mut traffic = self.traffic();
        traffic.timeline.note(Actor::Fault, perturbation.to_string());
    }

    fn record(&self, moment: &Moment, code: u16) {
        let mut traffic = self.traffic();
        let name = moment.name.clone();
        match moment.is_external {
            true => traffic.timeline.call(Actor::Operator, name, code, false),
            false => traffic.timeline.request(Actor::Operator, name, code, false),
        }
        traffic.moments.push(moment.clone());
    }

    /// Deletes an object of an external system, as another actor.
    fn remove_external(&self, object: &str) {
        if self.systems.lock().remove(object) {
            let text = format!("delete {object}");
            self.traffic().timeline.call(Actor::Other, text, 200, true);
        }
    }

    /// Changes a field that the operator has set, as another actor. Does nothing if there is none.
    async fn edit(&self, name: &ObjectName) {
        let Some(object) = world::find(&self.server, name) else {
            return;
        };
        if let Some(patch) = world::foreign_change(&object) {
            self.merge(Actor::Other, name, "", &patch).await;
        }
    }
}

impl Traffic {
    /// Begins a step of the history.
    pub(crate) fn begin_step(&mut self, number: usize) {
        self.step = number;
        if let Some(claims) = &mut self.claims {
            claims.forget();
        }
    }

    /// Counts a request. Returns it, and what the history says about it.
    fn next_moment(&mut self, kind: &str, is_external: bool) -> (Moment, Vec<Perturbation>) {
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

    fn is_forbidden(&self, kind: &str) -> bool {
        let now = Instant::now();
        let mut forbidden = self.forbidden.iter();
        forbidden.any(|(wanted, until)| wanted == kind && *until > now)
    }
}

/// Returns the name of the request without its number. Created objects are named by their body, with
/// `*` in place of the generated part of a name.
fn kind_of_request(request: &Request) -> String {
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

/// Returns the answer of a server that fails or refuses.
fn refusal(code: u16) -> Response<ResponseBody> {
    let message = match code {
        403 => "the simulation took this permission",
        _ => "the simulation asked for a failure",
    };
    let mut response = ApiServer::refusal(code, message);
    if code == 429 {
        let second = http::HeaderValue::from_static("1");
        response.headers_mut().insert(http::header::RETRY_AFTER, second);
    }
    response
}

/// Reads the message of an answer to an invalid request.
async fn message_of_invalid(response: Response<ResponseBody>) -> (Response<ResponseBody>, Option<String>) {
    if !matches!(response.status().as_u16(), 400 | 405 | 413 | 415 | 422) {
        return (response, None);
    }
    let (parts, body) = response.into_parts();
    let bytes = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(never) => match never {},
    };
    let status: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let message = status["message"].as_str().unwrap_or_default().to_owned();
    let body = Full::new(bytes).boxed_unsync();
    (Response::from_parts(parts, body), Some(message))
}

fn is_write(verb: Verb) -> bool {
    !matches!(verb, Verb::Get | Verb::List | Verb::Watch)
}
