//! One run of a history: the operator, the API server and the environment on one thread.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use rbuilder_testing::fake::ApiServer;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::context;
use crate::declaration::Declaration;
use crate::environment::{Behavior, Environment, World};
use crate::history::{History, Pace, Perturbation, Step};
use crate::network::{Connection, Moment, Network};
use crate::oracle::{Oracle, Violation, false_claims};
use crate::timeline::{Actor, Event};
use crate::world::{Difference, Mask, SEED, Snapshot, compare};

/// The state is settled if nothing has changed for this long.
const QUIET: Duration = Duration::from_secs(75);
/// How long the operator may take to reach the state without perturbations.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// The largest number of requests in a step: more are a loop.
const MOST_REQUESTS: usize = 2000;
/// The largest number of requests while nothing changes.
const MOST_IDLE_REQUESTS: usize = 300;
/// How long a crashed operator takes to start again.
const RESTART: Duration = Duration::from_secs(1);
/// How often the operator may end by itself because of a perturbation.
const MOST_ENDS: usize = 5;
/// Number of writes that a report about a loop names.
const LAST_WRITES: usize = 6;

/// Starts an operator with a client, in a namespace or in all. The future runs until it is dropped.
pub(crate) type Program =
    Arc<dyn Fn(Client, Option<&str>) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// A rule of the test about the whole state.
pub(crate) type Invariant = Arc<dyn Fn(&World) -> Result<(), String> + Send + Sync>;

/// What does not change between runs.
pub(crate) struct Setting {
    pub(crate) program: Program,
    /// The namespace that the operator watches; `None` for all.
    pub(crate) namespace: Option<String>,
    pub(crate) server: ApiServer,
    pub(crate) declarations: Vec<Declaration>,
    /// Oracles that report nothing.
    pub(crate) accepted: Vec<Oracle>,
    pub(crate) behaviors: Vec<Arc<dyn Behavior>>,
    pub(crate) invariants: Vec<Invariant>,
}

/// The states in which a history must settle. `None` where any state is right.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) steps: Vec<Option<Snapshot>>,
    pub(crate) mask: Mask,
    /// The oracle that reports a difference.
    pub(crate) oracle: Option<Oracle>,
}

/// What a run has shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) settled: Vec<Snapshot>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) events: Vec<Event>,
    pub(crate) violations: Vec<Violation>,
    /// Perturbations whose request the operator has not made.
    pub(crate) unreached: Vec<Perturbation>,
    /// Why the server rejects a declaration. The run ends there.
    pub(crate) rejected: Option<String>,
}

/// A running operator.
struct Process {
    connection: Connection,
    task: JoinHandle<Result<(), String>>,
}

/// Runs a history on a runtime of its own.
pub(crate) fn run(setting: &Setting, history: &History, expected: &Expected) -> Outcome {
    // Programs of kube-rs wait for signals, which need the I/O driver.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("the system permits an epoll instance");
    runtime.block_on(async { Run::start(setting, history, expected).finish().await })
}

struct Run<'r> {
    setting: &'r Setting,
    history: &'r History,
    expected: &'r Expected,
    network: Network,
    environment: Environment,
    notifications: watch::Receiver<u64>,
    process: Process,
    outcome: Outcome,
    ends: usize,
    /// The declared objects, which the user restores if someone deletes them unseen.
    declared: Vec<(usize, Value)>,
    _context: context::Entered,
}

/// The result of waiting for a step.
enum Settled {
    AsExpected,
    Otherwise(Vec<Difference>),
    Never,
}

impl<'r> Run<'r> {
    fn start(setting: &'r Setting, history: &'r History, expected: &'r Expected) -> Self {
        let wall = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * 365 * 60);
        let context = context::enter(wall, history.seed);
        let server = setting.server.copy().starting_at(wall);
        // Another seed must lead to other uids and resource versions.
        for _ in 0..history.seed % 7 {
            let _ = server.namespace(SEED.trim_end_matches('-'));
        }
        let network = Network::new(server, history.perturbations.clone());
        let notifications = network.server.notifications();
        let process = Process::start(setting, &network);
        Self {
            setting,
            history,
            expected,
            environment: Environment::new(setting.behaviors.clone(), history.environment),
            notifications,
            process,
            network,
            outcome: Outcome::default(),
            ends: 0,
            declared: Vec::new(),
            _context: context,
        }
    }

    async fn finish(mut self) -> Outcome {
        // The user declares objects when the operator is installed, not while it starts.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (number, step) in self.history.steps.iter().enumerate() {
            self.network.traffic().begin_step(number);
            self.take(step).await;
            if self.outcome.rejected.is_some() {
                break;
            }
            let expected = self.expected.steps.get(number).cloned().flatten();
            let settled = self.settle(expected.as_ref()).await;
            self.judge(number, step, settled);
            if !self.outcome.violations.is_empty() {
                break;
            }
        }
        self.process.stop();
        self.judge_run();
        let accepted = &self.setting.accepted;
        let is_reported = |violation: &Violation| !accepted.contains(&violation.oracle);
        self.outcome.violations.retain(is_reported);
        let mut traffic = self.network.traffic();
        self.outcome.moments = std::mem::take(&mut traffic.moments);
        self.outcome.events = std::mem::take(&mut traffic.timeline.events);
        self.outcome.unreached = std::mem::take(&mut traffic.waiting);
        drop(traffic);
        self.outcome
    }

    async fn take(&mut self, step: &Step) {
        if let Some(number) = step.declaration() {
            self.declared.retain(|(declared, _)| *declared != number);
        }
        let declarations = &self.setting.declarations;
        let (number, object) = match step {
            Step::Apply(number) => (*number, declarations[*number].object.clone()),
            Step::ApplyWith(number, changes) => (*number, declarations[*number].with(changes)),
            Step::Delete(number) => return self.network.undeclare(&declarations[*number].name).await,
            Step::DeleteForeground(number) => {
                return self
                    .network
                    .undeclare_in_foreground(&declarations[*number].name)
                    .await;
            }
            Step::FailEnvironment => {
                self.environment.fail();
                let text = "the environment fails from now on".to_owned();
                return self.network.traffic().timeline.note(Actor::Environment, text);
            }
        };
        self.declared.push((number, object));
        self.declare().await;
    }

    /// Applies all declared objects.
    async fn declare(&mut self) {
        for (number, object) in &self.declared {
            let request = self.setting.declarations[*number].apply(object, "");
            let (code, body) = self.network.send(Actor::User, request).await;
            if code >= 400 {
                let why = body["message"].as_str().unwrap_or_default();
                self.outcome.rejected = Some(why.to_owned());
            }
        }
    }

    /// Waits until nothing changes any more. If the state is not the expected one then, waits longer.
    async fn settle(&mut self, expected: Option<&Snapshot>) -> Settled {
        let begin = Instant::now();
        let (mut changed, mut version) = (begin, (0, 0));
        let first = self.network.traffic().moments.len();
        let mut idle_from = first;
        loop {
            self.environment.step(&self.network).await;
            self.restore_declared().await;
            let count = self.network.traffic().moments.len();
            if self.network.version() != version {
                version = self.network.version();
                (changed, idle_from) = (Instant::now(), count);
                self.check_invariants();
            }
            let now = Instant::now();
            if count - first > MOST_REQUESTS || now > begin + 2 * PATIENCE {
                return Settled::Never;
            }
            if now >= changed + QUIET {
                if count - idle_from > MOST_IDLE_REQUESTS {
                    return Settled::Never;
                }
                let state = self.network.snapshot();
                let differences = expected.map(|expected| compare(expected, &state, &self.expected.mask));
                match differences.filter(|differences| !differences.is_empty()) {
                    None => return Settled::AsExpected,
                    Some(differences) if now > begin + PATIENCE => return Settled::Otherwise(differences),
                    // The operator may have requested a later reconcile.
                    Some(_) => (changed, idle_from) = (now, count),
                }
            }
            self.wait(changed + QUIET).await;
        }
    }

    /// Waits until something happens.
    async fn wait(&mut self, until: Instant) {
        let due = [self.environment.next_due(), self.network.server.next_collection()];
        let until = due.into_iter().flatten().fold(until, Instant::min);
        let crashed = Arc::clone(&self.network.crashed);
        tokio::select! {
            biased;
            () = crashed.notified() => self.restart(RESTART).await,
            ended = &mut self.process.task => self.note_end(ended.ok()).await,
            _ = self.notifications.changed() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    async fn restart(&mut self, pause: Duration) {
        self.process.stop();
        tokio::time::sleep(pause).await;
        let started = "the operator starts again".to_owned();
        self.network.traffic().timeline.note(Actor::Operator, started);
        self.process = Process::start(self.setting, &self.network);
    }

    async fn note_end(&mut self, ended: Option<Result<(), String>>) {
        let why = match ended {
            Some(Ok(())) => "without an error".to_owned(),
            Some(Err(error)) => format!("with an error: {error}"),
            None => "with a panic".to_owned(),
        };
        let text = format!("the operator ends {why}");
        self.network
            .traffic()
            .timeline
            .note(Actor::Operator, text.clone());
        self.ends += 1;
        if self.history.perturbations.is_empty() || self.ends > MOST_ENDS {
            self.outcome.violations.push(Violation::new(Oracle::End, text));
        }
        self.restart(10 * RESTART).await;
    }

    /// Declares objects again that were deleted unseen.
    async fn restore_declared(&mut self) {
        let Some(name) = self.network.traffic().to_redeclare.clone() else {
            return;
        };
        if crate::world::find(&self.network.server, &name).is_none() {
            self.network.traffic().to_redeclare = None;
            self.declare().await;
            self.network.server.expire_watches();
        }
    }

    fn check_invariants(&mut self) {
        if self.setting.invariants.is_empty() {
            return;
        }
        let world = World::new(
            self.network.server.objects(),
            self.network.systems.lock().objects(),
        );
        for invariant in &self.setting.invariants {
            if let Err(why) = invariant(&world) {
                self.outcome
                    .violations
                    .push(Violation::new(Oracle::Invariant, why));
            }
        }
    }

    fn judge(&mut self, number: usize, step: &Step, settled: Settled) {
        let state = self.network.snapshot();
        match settled {
            Settled::AsExpected => {}
            Settled::Never => {
                let writes = self.last_writes();
                let violations = &mut self.outcome.violations;
                let message = format!("the operator does not become quiet{writes}");
                violations.push(Violation::new(Oracle::Quiet, message));
                let object = step
                    .declaration()
                    .map(|number| &self.setting.declarations[number].name);
                let left = object.filter(|name| crate::world::find(&self.network.server, name).is_some());
                if let Some(name) = left.filter(|_| step.deletes()) {
                    let message = format!("the deletion of {name} does not end{writes}");
                    violations.push(Violation::new(Oracle::Deletion, message));
                }
            }
            Settled::Otherwise(differences) => {
                let oracle = match step {
                    step if step.deletes() => Oracle::Deletion,
                    _ => self.expected.oracle.unwrap_or(Oracle::EndState),
                };
                let lines: Vec<String> = differences
                    .iter()
                    .take(6)
                    .map(|one| format!("\n    {one}"))
                    .collect();
                let message = format!(
                    "after step {}, the state is another:{}",
                    number + 1,
                    lines.concat()
                );
                self.outcome.violations.push(Violation::new(oracle, message));
            }
        }
        let claims = false_claims(&self.network.server.objects());
        self.outcome.violations.extend(claims);
        self.outcome.settled.push(state);
    }

    /// Names the last changes, or the last requests if these change nothing.
    fn last_writes(&self) -> String {
        let traffic = self.network.traffic();
        let now = traffic
            .timeline
            .events
            .last()
            .map_or(Duration::ZERO, |last| last.at);
        let acts = traffic.timeline.events.iter().rev();
        let acts = acts.filter(|event| event.actor != Actor::Fault);
        let recent = acts.clone().take_while(|event| event.at + QUIET > now);
        let changes: Vec<_> = recent.filter(|event| event.changed).take(LAST_WRITES).collect();
        let shown = match changes.is_empty() {
            true => acts.take(LAST_WRITES).collect(),
            false => changes,
        };
        let mut lines: Vec<String> = shown.iter().map(|event| format!("\n    {event}")).collect();
        lines.reverse();
        lines.concat()
    }

    /// Judges what concerns the whole run.
    fn judge_run(&mut self) {
        let violations = &mut self.outcome.violations;
        let mut traffic = self.network.traffic();
        violations.append(&mut traffic.losses);
        if self.history.is_plain()
            && let Some((write, why)) = traffic.invalid.first_key_value()
        {
            let message = format!("the server never accepts `{write}`: {why}");
            violations.push(Violation::new(Oracle::Invalid, message));
        }
        let claims = traffic.claims.as_mut();
        if let Some(claims) = claims.filter(|_| self.history.environment != Pace::Failing) {
            violations.append(&mut claims.violations);
        }
        drop(traffic);
        let panics = context::panics();
        if let Some(first) = panics.first() {
            violations.push(Violation::new(Oracle::Panic, first.clone()));
        }
        if let Some(missing) = self.network.server.missing_permissions().first() {
            let message = format!("the role lacks a permission: {missing}\n    {}", missing.marker());
            violations.push(Violation::new(Oracle::Role, message));
        }
    }
}

impl Process {
    fn start(setting: &Setting, network: &Network) -> Self {
        let connection = network.connect();
        context::connect(&connection);
        let task = tokio::spawn((setting.program)(
            connection.client(),
            setting.namespace.as_deref(),
        ));
        Self { connection, task }
    }

    fn stop(&self) {
        self.connection.kill();
        self.task.abort();
    }
}
