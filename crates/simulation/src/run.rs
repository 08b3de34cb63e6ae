//! A single run of a history. Operator, API server and environment share one thread.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rbuilder_testing::fake::ApiServer;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::answers::LONGEST_WATCH;
use crate::context;
use crate::declaration::Declaration;
use crate::environment::{self, Behavior, Environment, World};
use crate::history::{History, Pace, Perturbation, Step};
use crate::network::Network;
use crate::operator::Program;
use crate::oracle::{Oracle, Violation, false_claims, replaced_secret};
use crate::process::{Ended, Processes};
use crate::timeline::{Actor, Event};
use crate::traffic::Moment;
use crate::world::{Difference, Mask, SEED, Snapshot, compare};

/// Settled means no changes for this long.
const QUIET: Duration = Duration::from_secs(75);
/// Replicas keep renewing their leases, so use a shorter time that still exceeds the duration of a
/// partition.
const QUIET_REPLICAS: Duration = Duration::from_secs(45);
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// Request limit per step. Beyond that, the operator is assumed to be in a hot loop.
const MOST_REQUESTS: usize = 2000;
const MOST_PASSING_REQUESTS: usize = 1000;
const HOUR: Duration = Duration::from_secs(60 * 60);
const MOST_IDLE_REQUESTS: usize = 300;
const RESTART: Duration = Duration::from_secs(1);
/// Exceeds the default lease duration, so that the other replica takes over.
const REPLACEMENT: Duration = Duration::from_secs(20);
/// Number of exits to tolerate after perturbations, since a Pod would be restarted as well.
const MOST_ENDS: usize = 5;
const LAST_WRITES: usize = 6;

/// A predicate over the world that must hold at all times.
pub(crate) type Invariant = Arc<dyn Fn(&World) -> Result<(), String> + Send + Sync>;

pub(crate) struct Setting {
    pub(crate) program: Program,
    pub(crate) has_webhooks: bool,
    /// Whether to run some histories with two replicas.
    pub(crate) has_replicas: bool,
    /// `None` watches all namespaces.
    pub(crate) namespace: Option<String>,
    /// Directory with roles. `None` permits all requests.
    #[cfg_attr(not(feature = "envtest"), expect(dead_code))]
    pub(crate) roles: Option<PathBuf>,
    pub(crate) server: ApiServer,
    pub(crate) declarations: Vec<Declaration>,
    pub(crate) accepted: Vec<Oracle>,
    /// Behaviors added by the test.
    pub(crate) behaviors: Vec<Arc<dyn Behavior>>,
    pub(crate) has_pods: bool,
    pub(crate) invariants: Vec<Invariant>,
}

/// What to compare a history with. `None` accepts any state after that step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) steps: Vec<Option<Snapshot>>,
    pub(crate) mask: Mask,
    /// Fields of Secrets with generated values, which the operator must not overwrite.
    pub(crate) generated: BTreeSet<String>,
    pub(crate) oracle: Option<Oracle>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) settled: Vec<Snapshot>,
    pub(crate) moments: Vec<Moment>,
    pub(crate) events: Vec<Event>,
    pub(crate) violations: Vec<Violation>,
    /// Number of hours simulated when the operator exceeded the request limit, if it did.
    pub(crate) passed_hours: Option<u32>,
    pub(crate) made: BTreeSet<String>,
    pub(crate) replaced: BTreeSet<String>,
    /// Whether the operator accepts lists and watches from a stale cache.
    pub(crate) accepts_past: bool,
    pub(crate) asks_for_pods: bool,
    /// Perturbations that were never triggered, because the operator didn't send the request
    /// they're attached to.
    pub(crate) unreached: Vec<Perturbation>,
    /// Set if the server rejected a declaration, which ends the run.
    pub(crate) rejected: Option<String>,
}

pub(crate) fn run(setting: &Setting, history: &History, expected: &Expected) -> Outcome {
    // Programs based on kube-rs install signal handlers, which require the I/O driver.
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
    /// Version last seen by the environment.
    seen: Option<(u64, u64)>,
    notifications: watch::Receiver<u64>,
    processes: Processes<'r>,
    outcome: Outcome,
    start: Instant,
    ends: usize,
    /// Objects as last declared, with the index of the declaration. They are redeclared if deleted
    /// behind the operator's back.
    declared: Vec<(usize, Value)>,
    /// An object that still failed to reconcile after the last declaration, with the error.
    failing: Option<(String, String)>,
    _context: context::Entered,
}

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
        server.bookmark_every(LONGEST_WATCH);
        // Burn a few UIDs and resource versions to make them depend on the seed.
        for _ in 0..history.seed % 7 {
            let _ = server.namespace(SEED.trim_end_matches('-'));
        }
        let network = Network::new(server, history.perturbations.clone());
        let notifications = network.server.notifications();
        let processes = Processes::start(setting, &network, history.replicated);
        let mut behaviors = environment::of_cluster(setting.has_pods);
        behaviors.extend(setting.behaviors.iter().cloned());
        Self {
            setting,
            history,
            expected,
            environment: Environment::new(behaviors, history.environment),
            seen: None,
            notifications,
            processes,
            network,
            outcome: Outcome::default(),
            start: Instant::now(),
            ends: 0,
            failing: None,
            declared: Vec::new(),
            _context: context,
        }
    }

    async fn finish(mut self) -> Outcome {
        // Let the operator start up first; in practice, users don't declare objects at the same
        // instant.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (number, step) in self.history.steps.iter().enumerate() {
            self.network
                .traffic()
                .begin_step(number, self.network.server.version());
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
        self.processes.stop();
        self.judge_run();
        let accepted = &self.setting.accepted;
        let is_reported = |violation: &Violation| !accepted.contains(&violation.oracle);
        self.outcome.violations.retain(is_reported);
        let mut traffic = self.network.traffic();
        self.outcome.moments = std::mem::take(&mut traffic.moments);
        self.outcome.events = std::mem::take(&mut traffic.timeline.events);
        self.outcome.unreached = std::mem::take(&mut traffic.waiting);
        self.outcome.accepts_past = traffic.accepts_past;
        self.outcome.asks_for_pods = traffic.asks_for_pods;
        self.outcome.made = std::mem::take(&mut traffic.made);
        self.outcome.replaced = std::mem::take(&mut traffic.secrets.replaced);
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
            Step::PassUntil(hour) => return self.pass_until(*hour).await,
            Step::FailEnvironment => {
                self.environment.fail();
                self.seen = None;
                let text = "the environment fails from now on".to_owned();
                return self.network.traffic().timeline.note(Actor::Environment, text);
            }
        };
        self.declared.push((number, object));
        self.declare().await;
    }

    /// Advances the clock to the given hour, or less if the operator exceeds the request limit.
    ///
    /// The hour is relative to the start of the run rather than the current time; otherwise
    /// histories whose earlier steps took longer couldn't be compared with the undisturbed one.
    async fn pass_until(&mut self, hour: u32) {
        let text = format!("time passes until hour {hour}");
        self.network.traffic().timeline.note(Actor::Environment, text);
        let until = self.start + HOUR * hour;
        let first = self.network.traffic().moments.len();
        let mut version = self.network.version();
        while Instant::now() < until {
            self.step_environment().await;
            if self.network.version() != version {
                version = self.network.version();
                self.check_invariants();
            }
            if self.network.traffic().moments.len() - first > MOST_PASSING_REQUESTS {
                let passed = self.start.elapsed().as_secs() / HOUR.as_secs();
                self.outcome.passed_hours = Some(u32::try_from(passed).unwrap_or(hour));
                return;
            }
            self.network.server.forget_requests();
            self.wait(until).await;
        }
    }

    async fn declare(&mut self) {
        for (number, object) in &self.declared {
            let request = self.setting.declarations[*number].apply(object, "");
            if let Err(why) = self.network.send(Actor::User, request).await {
                self.outcome.rejected = Some(why);
            }
        }
    }

    /// Waits until nothing changes any longer. If the state is not the expected one, keeps waiting
    /// for up to [`PATIENCE`].
    async fn settle(&mut self, expected: Option<&Snapshot>) -> Settled {
        let begin = Instant::now();
        let quiet = match self.history.replicated {
            true => QUIET_REPLICAS,
            false => QUIET,
        };
        let (mut changed, mut version) = (begin, (0, 0));
        let first = self.network.traffic().moments.len();
        let mut idle_from = first;
        loop {
            self.step_environment().await;
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
            if now >= changed + quiet {
                if count - idle_from > MOST_IDLE_REQUESTS {
                    return Settled::Never;
                }
                let state = self.network.snapshot();
                let differences = expected.map(|expected| compare(expected, &state, &self.expected.mask));
                match differences.filter(|differences| !differences.is_empty()) {
                    None => return Settled::AsExpected,
                    Some(differences) if now > begin + PATIENCE => return Settled::Otherwise(differences),
                    // Might just be waiting for a delayed requeue.
                    Some(_) => (changed, idle_from) = (now, count),
                }
            }
            self.wait(changed + quiet).await;
        }
    }

    /// Lets the environment act if the world has changed or an act is due.
    async fn step_environment(&mut self) {
        let (now, version) = (Instant::now(), self.network.version());
        let due = [self.environment.next_due(), self.network.server.next_collection()];
        let is_due = due.into_iter().flatten().any(|due| due <= now);
        if is_due || self.seen != Some(version) {
            self.seen = Some(version);
            self.environment.step(&self.network).await;
        }
    }

    /// Waits for any activity, but no longer than `until`.
    async fn wait(&mut self, until: Instant) {
        let due = [
            self.environment.next_due(),
            self.network.server.next_collection(),
            self.processes.next_start(),
        ];
        let until = due.into_iter().flatten().fold(until, Instant::min);
        let crashed = Arc::clone(&self.network.crashed);
        tokio::select! {
            biased;
            () = crashed.notified() => self.replace_dead().await,
            (actor, ended) = self.processes.ended() => self.note_end(actor, ended).await,
            _ = self.notifications.changed() => {}
            () = tokio::time::sleep_until(until) => {}
        }
        self.processes.start_due();
    }

    /// Schedules replacements for crashed processes.
    async fn replace_dead(&mut self) {
        match self.history.replicated {
            true => self.processes.replace_dead(REPLACEMENT),
            false => self.restart(RESTART).await,
        }
    }

    /// Restarts the operator after it exited. The rest of the world is frozen during the pause.
    async fn restart(&mut self, pause: Duration) {
        self.processes.replace_dead(pause);
        tokio::time::sleep(pause).await;
        self.processes.start_due();
    }

    async fn note_end(&mut self, actor: Actor, ended: Ended) {
        let why = match ended {
            Some(Ok(())) => "without an error".to_owned(),
            Some(Err(error)) => format!("with an error: {error}"),
            None => "with a panic".to_owned(),
        };
        let text = format!("the operator ends {why}");
        self.network.traffic().timeline.note(actor, text.clone());
        self.ends += 1;
        if self.history.perturbations.is_empty() || self.ends > MOST_ENDS {
            self.outcome.violations.push(Violation::new(Oracle::End, text));
        }
        match self.history.replicated {
            true => self.processes.replace_dead(10 * RESTART),
            false => self.restart(10 * RESTART).await,
        }
    }

    /// Redeclares objects that were deleted behind the operator's back.
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
        if self.has_all_declared(number) {
            self.failing = context::failing().pop_first();
        }
        self.outcome.settled.push(state);
    }

    /// Returns whether this step completes the declarations. Until then, a reconcile may be waiting
    /// for an object that a later step declares.
    fn has_all_declared(&self, number: usize) -> bool {
        let is_apply = |step: &Step| matches!(step, Step::Apply(_));
        let (step, later) = (&self.history.steps[number], &self.history.steps[number + 1..]);
        is_apply(step) && !later.iter().any(is_apply)
    }

    /// Formats the most recent writes, or the most recent requests if there were no writes.
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

    /// Runs the oracles that need the complete run.
    fn judge_run(&mut self) {
        let violations = &mut self.outcome.violations;
        let mut traffic = self.network.traffic();
        violations.append(&mut traffic.violations);
        let replaced = traffic.secrets.replaced.intersection(&self.expected.generated);
        violations.extend(replaced.map(|field| replaced_secret(field)));
        if self.history.is_plain()
            && let Some((write, why)) = traffic.invalid.first_key_value()
        {
            let message = format!("the server never accepts `{write}`: {why}");
            violations.push(Violation::new(Oracle::Invalid, message));
        }
        if let Some((object, error)) = self.failing.take()
            && self.history.is_plain()
            && violations.is_empty()
        {
            let message = format!("the reconcile of {object} keeps failing: {error}");
            violations.push(Violation::new(Oracle::Error, message));
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
