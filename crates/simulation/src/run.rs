//! A single run of a history. Operator, API server and environment share one thread.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use rbuilder_testing::fake::ApiServer;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::answers::LONGEST_WATCH;
use crate::context;
use crate::declaration::Declaration;
use crate::environment::{self, Behavior, Environment, World};
use crate::history::{Disturbance, ELSEWHERE, History, Pace, Perturbation, Step};
use crate::network::{Network, Rules};
use crate::operator::Program;
use crate::oracle::{
    Follower, Oracle, Violation, false_claims, is_claim, lost_claim, not_rolled_out, replaced_secret,
};
use crate::process::{Ended, Processes};
use crate::timeline::{Actor, Event};
use crate::tolerance::Tolerance;
use crate::traffic::Moment;
use crate::world::{Difference, GIVEN, Mask, ObjectName, SEED, Snapshot, compare, find, is_evicted};

/// Settled means no changes for this long.
const QUIET: Duration = Duration::from_secs(75);
/// Replicas keep renewing their leases, so use a shorter time that still exceeds the duration of a
/// partition.
const QUIET_REPLICAS: Duration = Duration::from_secs(45);
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// Request limit per step. Beyond that, the operator is assumed to be in a hot loop.
const MOST_REQUESTS: usize = 2000;
/// How often the operator may change the same object in a step. Beyond that, it's in a hot loop.
const MOST_CHANGES: usize = 150;
const MOST_PASSING_REQUESTS: usize = 1000;
const HOUR: Duration = Duration::from_secs(60 * 60);
const MOST_IDLE_REQUESTS: usize = 300;
const RESTART: Duration = Duration::from_secs(1);
/// Exceeds the default lease duration, so that the other replica takes over.
const REPLACEMENT: Duration = Duration::from_secs(20);
/// Start of the histories with seed 0.
const START: SignedDuration = SignedDuration::from_hours(24 * 365 * 60);
/// How much later the histories of each further seed start: in another year, at another time of
/// day. Fields that depend on the time then differ between seeds.
const LATER: SignedDuration = SignedDuration::from_secs(((365 + 131) * 24 * 60 + 13 * 60 + 37) * 60 + 11);
/// Keeps the start within the range of timestamps.
const MOST_LATER: u64 = 16;
/// Number of exits to tolerate after perturbations, since a Pod would be restarted as well.
const MOST_ENDS: usize = 5;
const LAST_WRITES: usize = 6;
/// So many changes of an object in a step are part of a loop.
const FEWEST_REPEATED: usize = 10;
const MOST_DIFFERENCES: usize = 6;

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
    /// Whether to declare copies of the objects in another namespace in some histories.
    pub(crate) has_copies: bool,
    pub(crate) invariants: Vec<Invariant>,
    /// Whether workloads must get another template when their configuration changes.
    pub(crate) rolls_out_config: bool,
    pub(crate) tolerance: Arc<Tolerance>,
}

impl Setting {
    /// Names of the declared objects.
    pub(crate) fn declared(&self) -> Vec<String> {
        let declarations = self.declarations.iter();
        declarations
            .map(|declaration| declaration.name.to_string())
            .collect()
    }
}

/// What to compare a history with. `None` accepts any state after that step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) steps: Vec<Option<Snapshot>>,
    pub(crate) mask: Mask,
    /// Fields of Secrets with generated values, which the operator must not overwrite.
    pub(crate) generated: BTreeSet<String>,
    pub(crate) oracle: Option<Oracle>,
    /// Fields that must change with a Secret.
    pub(crate) followers: Vec<Follower>,
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
    /// Objects that existed before the first declaration.
    pub(crate) before: BTreeSet<String>,
    pub(crate) replaced: BTreeSet<String>,
    /// For each step, whether a reconcile still fails at its end. Of programs without the library's
    /// controllers, only writes are known that the server finds invalid.
    pub(crate) failing: Vec<bool>,
    /// Indices of steps whose expected state can't be reached, because the server refuses it.
    pub(crate) irreversible: Vec<usize>,
    /// Whether the operator accepts lists and watches from a stale cache.
    pub(crate) accepts_past: bool,
    pub(crate) asks_for_pods: bool,
    /// Perturbations that were never triggered, because the operator didn't send the request
    /// they're attached to.
    pub(crate) unreached: Vec<Perturbation>,
    /// Set if the server rejected a declaration, which ends the run.
    pub(crate) rejected: Option<String>,
}

impl Outcome {
    /// The state after a step, unless a reconcile still fails there: an operator that can't do what
    /// is declared, e.g. because a reference dangles, may leave everything as it is.
    pub(crate) fn achieved(&self, step: usize) -> Option<&Snapshot> {
        let is_done = self.failing.get(step) == Some(&false);
        self.settled.get(step).filter(|_| is_done)
    }
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
    /// Objects that the operator made for itself, before anything was declared.
    before: BTreeSet<String>,
    _context: context::Entered,
}

/// The namespace of copies.
fn elsewhere() -> ObjectName {
    ObjectName {
        plural: "namespaces".to_owned(),
        version: "v1".to_owned(),
        name: ELSEWHERE.to_owned(),
        ..ObjectName::default()
    }
}

/// How a step ends, with the state in which it does.
enum Settled {
    AsExpected(Snapshot),
    Otherwise(Vec<Difference>, Snapshot),
    Never,
}

impl<'r> Run<'r> {
    fn start(setting: &'r Setting, history: &'r History, expected: &'r Expected) -> Self {
        let later = i32::try_from(history.seed.min(MOST_LATER)).unwrap_or_default();
        let wall = Timestamp::UNIX_EPOCH + START + LATER * later;
        let context = context::enter(wall, history.seed);
        let server = setting.server.copy().starting_at(wall);
        server.bookmark_every(LONGEST_WATCH);
        // Burn a few UIDs and resource versions to make them depend on the seed.
        for _ in 0..history.seed % 7 {
            let _ = server.namespace(SEED.trim_end_matches('-'));
        }
        let network = Network::new(server, history.perturbations.clone(), Rules::of(setting, history));
        let notifications = network.server.notifications();
        let processes = Processes::start(setting, &network, history.replicated);
        let mut behaviors = environment::of_cluster(setting.has_pods, history.fills_quota());
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
            before: BTreeSet::new(),
            declared: Vec::new(),
            _context: context,
        }
    }

    async fn finish(mut self) -> Outcome {
        // Let the operator start up first; in practice, users don't declare objects at the same
        // instant.
        let version = self.network.version();
        tokio::time::sleep(Duration::from_secs(1)).await;
        if self.network.version() != version {
            self.before = self.network.snapshot().objects.into_keys().collect();
        }
        for (number, step) in self.history.steps.iter().enumerate() {
            self.network.traffic().begin_step(
                number,
                self.network.server.version(),
                matches!(step, Step::PassUntil(_)),
            );
            self.take(step).await;
            if self.outcome.rejected.is_some() {
                break;
            }
            let expected: &'r Expected = self.expected;
            let expected = expected.steps.get(number).and_then(Option::as_ref);
            let settled = self.settle(expected).await;
            let is_over = matches!(settled, Settled::Never);
            self.judge(number, step, settled).await;
            let violations = &self.outcome.violations;
            if is_over || violations.iter().any(|violation| violation.oracle.is_of_state()) {
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
        self.outcome.before = std::mem::take(&mut self.before);
        self.outcome.replaced = std::mem::take(&mut traffic.secrets.replaced);
        drop(traffic);
        self.outcome
    }

    async fn take(&mut self, step: &Step) {
        let is_same = |(declared, _): &mut (usize, Value)| Some(*declared) == step.declaration();
        let former = self.declared.extract_if(.., is_same).next();
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
            Step::PassUntil(hour) => {
                self.pass_until(*hour).await;
                // Many changes in a long time are no loop.
                self.network.traffic().changes.clear();
                return;
            }
            Step::ApplyElsewhere(number) => return self.declare_elsewhere(*number).await,
            Step::DeleteElsewhere(number) => {
                return self
                    .network
                    .undeclare(&declarations[*number].elsewhere().name)
                    .await;
            }
            Step::EndElsewhere => return self.network.undeclare(&elsewhere()).await,
            Step::FailEnvironment => {
                self.environment.fail();
                self.seen = None;
                let text = "the environment fails from now on".to_owned();
                return self.network.traffic().timeline.note(Actor::Environment, text);
            }
        };
        self.declared.push((number, object.clone()));
        self.declare().await;
        if let Some((_, former)) = former.filter(|_| self.outcome.rejected.is_some()) {
            self.declare_by_patch(number, &former, &object).await;
        }
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
                self.network.check_invariants(Actor::Environment);
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

    async fn declare_elsewhere(&mut self, number: usize) {
        if find(&self.network.server, &elsewhere()).is_none() {
            let metadata = json!({ "name": ELSEWHERE, "annotations": { GIVEN: "" } });
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
            self.network.create(Actor::User, &elsewhere(), &namespace).await;
        }
        let declaration = self.setting.declarations[number].elsewhere();
        let request = declaration.apply(&declaration.object, "");
        if let Err(why) = self.network.send(Actor::User, request).await {
            self.outcome.rejected = Some(why);
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

    /// Changes a declared object as `kubectl apply` does without `--server-side`, and applies it then.
    ///
    /// A server-side apply without the last field of a struct sets the struct to `null`, which CRDs
    /// mostly refuse.
    async fn declare_by_patch(&mut self, number: usize, former: &Value, object: &Value) {
        let declaration = &self.setting.declarations[number];
        let patched = self.network.send(Actor::User, declaration.patch(former, object));
        if patched.await.is_ok() {
            self.outcome.rejected = None;
            // The user owns the rest by an apply, as before. This is refused again if the value that
            // was removed is the default.
            let _ = self
                .network
                .send(Actor::User, declaration.apply(object, ""))
                .await;
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
                self.network.check_invariants(Actor::Environment);
            }
            let now = Instant::now();
            let changes = self.network.traffic().changes.values().copied().max();
            let is_loop = count - first > MOST_REQUESTS || changes > Some(MOST_CHANGES);
            if is_loop || now > begin + 2 * PATIENCE {
                return Settled::Never;
            }
            if now >= changed + quiet {
                if count - idle_from > MOST_IDLE_REQUESTS {
                    return Settled::Never;
                }
                let state = self.network.snapshot();
                let differences = expected.map(|expected| self.compare(expected, &state));
                match differences.filter(|differences| !differences.is_empty()) {
                    None => return Settled::AsExpected(state),
                    Some(differences) if now > begin + PATIENCE => {
                        return Settled::Otherwise(differences, state);
                    }
                    // Might just be waiting for a delayed requeue.
                    Some(_) => (changed, idle_from) = (now, count),
                }
            }
            self.wait(changed + quiet).await;
        }
    }

    fn compare(&self, expected: &Snapshot, state: &Snapshot) -> Vec<Difference> {
        let mut differences = compare(expected, state, &self.expected.mask);
        // The operator's own objects aren't made for any declared object.
        differences.retain(|difference| difference.extra().is_none_or(|name| !self.before.contains(name)));
        if self.step().is_some_and(|step| !step.deletes()) {
            // Like a ReplicaSet, an operator may leave a failed Pod beside the new one.
            let is_left = |name: &str| state.objects.get(name).is_some_and(is_evicted);
            differences.retain(|difference| !difference.extra().is_some_and(is_left));
        }
        if self.history.steps.iter().any(Step::is_elsewhere) {
            let inside = format!(" {ELSEWHERE}/");
            let has_copies = matches!(self.step(), Some(Step::ApplyElsewhere(_)));
            differences.retain(|difference| match difference {
                Difference::Missing(_) => true,
                // Operators may take all objects into account.
                _ if has_copies => false,
                Difference::Extra(name) => !name.contains(&inside),
                Difference::Field(..) => true,
            });
        }
        differences
    }

    /// The current step.
    fn step(&self) -> Option<&Step> {
        self.history.steps.get(self.outcome.settled.len())
    }

    /// Lets the environment act if the world has changed or an act is due.
    async fn step_environment(&mut self) {
        let (now, version) = (Instant::now(), self.network.version());
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        if self.seen != Some(version) || is_due(self.network.server.next_collection()) {
            self.seen = Some(version);
            self.environment.plan(&self.network);
        }
        if is_due(self.environment.next_due()) {
            self.environment.act(&self.network).await;
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
            self.outcome
                .violations
                .push(Violation::new(Oracle::End, "", text));
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
        // The user waits for room in a quota, too.
        if find(&self.network.server, &name).is_none() && !self.network.has_no_room_for(&name) {
            self.network.traffic().to_redeclare = None;
            self.declare().await;
            self.network.server.expire_watches();
        }
    }

    async fn judge(&mut self, number: usize, step: &Step, settled: Settled) {
        let known = self.outcome.violations.len();
        let state = match settled {
            Settled::AsExpected(state) => state,
            Settled::Never => {
                self.judge_loop(step);
                self.network.snapshot()
            }
            Settled::Otherwise(differences, state) => {
                match self.is_irreversible(number, step, &differences).await {
                    true => self.outcome.irreversible.push(number),
                    false => self.judge_state(number, step, &differences, &state),
                }
                state
            }
        };
        let claims = false_claims(&self.network.server.objects());
        self.outcome.violations.extend(claims);
        let stale = self.expected.followers.iter();
        let stale = stale.filter_map(|follower| follower.check(&state));
        self.outcome.violations.extend(stale);
        let before = self
            .outcome
            .settled
            .last()
            .filter(|_| self.setting.rolls_out_config);
        let kept = before.map_or_else(Vec::new, |before| not_rolled_out(before, &state));
        self.outcome.violations.extend(kept);
        let lost = self.lost_claim(number, step);
        self.outcome.violations.extend(lost);
        if *step == Step::EndElsewhere && find(&self.network.server, &elsewhere()).is_some() {
            let name = elsewhere().to_string();
            let message = format!("the namespace {ELSEWHERE} does not end");
            self.outcome
                .violations
                .push(Violation::new(Oracle::Deletion, name, message));
        }
        let mut traffic = self.network.traffic();
        self.outcome.violations.append(&mut traffic.violations);
        drop(traffic);
        for violation in &mut self.outcome.violations[known..] {
            violation.step = Some(number);
        }
        if self.has_all_declared(number) {
            self.failing = context::failing().pop_first();
        }
        let has_invalid = !self.network.traffic().invalid.is_empty();
        self.outcome.failing.push(context::is_failing() || has_invalid);
        self.outcome.settled.push(state);
    }

    fn judge_loop(&mut self, step: &Step) {
        let writes = self.last_writes();
        let violations = &mut self.outcome.violations;
        let traffic = self.network.traffic();
        let most = traffic.changes.iter().max_by_key(|(_, count)| **count);
        let most = most.filter(|(_, count)| **count >= FEWEST_REPEATED);
        let what = most.map_or(String::new(), |(object, count)| {
            format!(": it has changed {object} {count} times")
        });
        drop(traffic);
        let message = format!("the operator does not become quiet{what}{writes}");
        violations.push(Violation::new(Oracle::Quiet, "", message));
        let object = step
            .declaration()
            .map(|number| &self.setting.declarations[number].name);
        let left = object.filter(|name| find(&self.network.server, name).is_some());
        if let Some(name) = left.filter(|_| step.deletes()) {
            let message = format!("the deletion of {name} does not end{writes}");
            violations.push(Violation::new(Oracle::Deletion, name.to_string(), message));
        }
    }

    fn judge_state(&mut self, number: usize, step: &Step, differences: &[Difference], state: &Snapshot) {
        let oracle = match step {
            step if step.deletes() => Oracle::Deletion,
            _ => self.expected.oracle.unwrap_or(Oracle::EndState),
        };
        let traffic = self.network.traffic();
        // The run to compare with may be the one in which something goes wrong.
        let lacking = |name: &str| match oracle {
            Oracle::EndState if !step.is_elsewhere() && traffic.made.contains(name) => {
                Some("the run without perturbations")
            }
            Oracle::Path if traffic.changes.contains_key(name) => Some("a fresh declaration"),
            _ => None,
        };
        let mut message = format!("after step {}, the state is another:", number + 1);
        for difference in differences.iter().take(MOST_DIFFERENCES) {
            let made = difference.extra().and_then(|name| Some((name, lacking(name)?)));
            let _ = match made {
                Some((name, other)) => write!(message, "\n    {name} is made only here: {other} lacks it"),
                None => write!(message, "\n    {difference}"),
            };
        }
        drop(traffic);
        let may_be_kept = matches!(oracle, Oracle::Path | Oracle::Deletion);
        let extra = differences.iter().find_map(Difference::extra);
        let kind = extra.and_then(|name| state.objects.get(name)?["kind"].as_str());
        if let Some(kind) = kind.filter(|_| may_be_kept) {
            let _ = write!(
                message,
                "\n    help: if it stays on purpose, add `.keeps::<{kind}>()`"
            );
        }
        if step.is_elsewhere() {
            let declared = self.setting.declarations.iter();
            let mut namespaces = declared.map(|declaration| &*declaration.name.namespace);
            let namespace = namespaces.find(|name| !name.is_empty()).unwrap_or_default();
            let _ = write!(
                message,
                "\n    help: if the operator only serves one namespace, add `.watch_namespace(\"{namespace}\")`; if objects of \
                 the same name can't be in two namespaces, add `.without_copies()`"
            );
        }
        let subject = differences.first().map(Difference::subject).unwrap_or_default();
        self.outcome
            .violations
            .push(Violation::new(oracle, subject, message));
    }

    /// Returns whether the server refuses what is expected after a change of the declaration, so
    /// that no operator can reach it.
    ///
    /// That's the case for claims, which can't shrink, and must not be recreated either. And what
    /// the operator could change in one direction, it may be unable to revert.
    async fn is_irreversible(&self, number: usize, step: &Step, differences: &[Difference]) -> bool {
        // The copy may claim what only one object can have, such as a port.
        if matches!(step, Step::ApplyElsewhere(_)) && !self.network.traffic().invalid.is_empty() {
            return true;
        }
        if self.expected.oracle != Some(Oracle::Path) || step.deletes() {
            return false;
        }
        let returns = matches!(step, Step::Apply(_))
            && self.history.steps[..number]
                .iter()
                .any(|earlier| earlier.declaration() == step.declaration());
        if returns && !self.network.traffic().invalid.is_empty() {
            return true;
        }
        for difference in differences {
            if let Difference::Field(name, path, expected, _) = difference
                && let Some(claim) = ObjectName::parse(name)
                && is_claim(&claim)
                && self.refuses(&claim, path, expected).await
            {
                return true;
            }
        }
        false
    }

    /// Returns whether the server rejects a value in an object as invalid.
    async fn refuses(&self, name: &ObjectName, path: &str, value: &Value) -> bool {
        let mut patch = value.clone();
        for field in path.split('.').skip(1).collect::<Vec<_>>().into_iter().rev() {
            patch = json!({ field: patch });
        }
        let request = http::Request::patch(format!("{}?dryRun=All", name.path()));
        let request = request.header(CONTENT_TYPE, "application/merge-patch+json");
        let request = request.body(Body::from(patch.to_string().into_bytes()));
        let response = self
            .network
            .server
            .call(request.expect("a path of names is a URI"), true)
            .await;
        response.is_ok_and(|response| response.status() == http::StatusCode::UNPROCESSABLE_ENTITY)
    }

    fn lost_claim(&self, number: usize, step: &Step) -> Option<Violation> {
        let traffic = self.network.traffic();
        let is_restored = |claim: &ObjectName| {
            let name = claim.to_string();
            let mut perturbations = self.history.perturbations.iter();
            perturbations.any(|perturbation| match &perturbation.action {
                Disturbance::Remove(removed) | Disturbance::RemoveLater(removed) => *removed == name,
                _ => false,
            })
        };
        let replacements = traffic.new_claims.iter().filter(|claim| !is_restored(claim));
        let replacements: Vec<ObjectName> = replacements.cloned().collect();
        let is_changed = match step {
            Step::Apply(_) => number > 0,
            Step::PassUntil(_) | Step::FailEnvironment => false,
            _ => true,
        };
        lost_claim(
            &traffic.deletions[traffic.first_deletion..],
            &replacements,
            is_changed,
        )
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
            violations.push(Violation::new(Oracle::Invalid, write, message));
        }
        if let Some((object, error)) = self.failing.take()
            && self.history.is_plain()
            && violations.is_empty()
        {
            let message = format!("the reconcile of {object} keeps failing: {error}");
            violations.push(Violation::new(Oracle::Error, object, message));
        }
        let claims = traffic.claims.as_mut();
        if let Some(claims) = claims.filter(|_| self.history.environment != Pace::Failing) {
            violations.append(&mut claims.violations);
        }
        drop(traffic);
        let panics = context::panics();
        if let Some(first) = panics.first() {
            // The first line names the place.
            let place = first.lines().next().unwrap_or_default();
            violations.push(Violation::new(Oracle::Panic, place, first.clone()));
        }
        if let Some(missing) = self.network.server.missing_permissions().first() {
            let message = format!("the role lacks a permission: {missing}\n    {}", missing.marker());
            violations.push(Violation::new(Oracle::Role, missing.to_string(), message));
        }
    }
}
