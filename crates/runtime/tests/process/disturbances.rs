//! Random disturbances of a sharded operator whose objects keep changing: replicas are killed,
//! stopped, suspended and partitioned, their responses are late, the claims are edited, restored and
//! stripped of their label, the API server is restarted, and the operator is rolled back to leader
//! election and forth. No two processes may work on an object concurrently, and no change may be
//! lost.
//!
//! A process that is suspended in the middle of a reconcile can't do anything about it, so its work
//! counts as ended by then.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rbuilder::envtest::Server;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::*;
use crate::fencing::write_kubeconfig;
use crate::load::{Load, OBJECTS, PACE};
use crate::lot::Lot;
use crate::operator::{RECORD, ROUND, Step, now};
use crate::proxy::{Fault, Proxy};

/// Duration of the test in seconds. Defaults to 20.
const SECONDS: &str = "RBUILDER_DISTURBANCE_SECONDS";
/// Repeats the order of the disturbances. By default, every run has a new seed.
const SEED: &str = "RBUILDER_DISTURBANCE_SEED";

const REPLICAS: usize = 3;
const CLAIMS: &str = "rbuilder.dev/shard-claims";

/// What the replicas of the Deployment have in their flags.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Shards,
    Leader,
}

impl Mode {
    fn flag(self) -> &'static str {
        match self {
            Self::Shards => "--shards=auto",
            Self::Leader => "--leader-elect",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Disturbance {
    Kill,
    Stop,
    Suspend,
    Partition,
    LateAnswers,
    RemoveLabel,
    EditClaims,
    RestoreClaims,
    RestartServer,
    PauseServer,
    Switch,
}

const ALL: [Disturbance; 11] = [
    Disturbance::Kill,
    Disturbance::Stop,
    Disturbance::Suspend,
    Disturbance::Partition,
    Disturbance::LateAnswers,
    Disturbance::RemoveLabel,
    Disturbance::EditClaims,
    Disturbance::RestoreClaims,
    Disturbance::RestartServer,
    Disturbance::PauseServer,
    Disturbance::Switch,
];

struct Replica {
    program: Program,
    proxy: Proxy,
    mode: Mode,
    _folder: TempDir,
}

/// When a process was suspended or killed.
#[derive(Default)]
struct Absences(BTreeMap<String, Vec<u128>>);

impl Absences {
    fn note(&mut self, process: String) {
        self.0.entry(process).or_default().push(now());
    }

    /// Returns when work ended that began at a time, and went on until another one.
    fn end(&self, process: &str, began: u128, ended: u128) -> u128 {
        let absences = self.0.get(process).into_iter().flatten();
        let within = absences.filter(|at| (began..=ended).contains(*at));
        within.min().copied().unwrap_or(ended)
    }
}

struct Scene {
    load: Load,
    lot: Lot,
    mode: Mode,
    replicas: Vec<Replica>,
    /// Replicas that were asked to stop.
    stopping: Vec<Replica>,
    absences: Absences,
    /// All claims seen so far.
    backups: Vec<String>,
    counts: BTreeMap<Disturbance, usize>,
    started: usize,
    /// Number of processes that have exited on their own.
    exits: usize,
}

impl Scene {
    async fn start(&mut self) {
        let proxy = Proxy::start(self.load.place.env.client(), self.started as u64).await;
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig: PathBuf = write_kubeconfig(&folder, &proxy.url());
        let flags = self
            .load
            .place
            .flags(&[self.mode.flag(), "--health-probe-bind-address=0"]);
        let program = Program::start_with(&kubeconfig, flags, [(RECORD, self.load.record_path())]);
        self.started += 1;
        self.replicas.push(Replica {
            program,
            proxy,
            mode: self.mode,
            _folder: folder,
        });
    }

    /// Restarts what has exited, like a Deployment.
    async fn maintain(&mut self) {
        let before = self.replicas.len();
        self.replicas.retain_mut(|replica| replica.program.is_running());
        self.exits += before - self.replicas.len();
        self.stopping.retain_mut(|replica| replica.program.is_running());
        while self
            .replicas
            .iter()
            .filter(|replica| replica.mode == self.mode)
            .count()
            < REPLICAS
        {
            self.start().await;
        }
        if let Some(claims) = self.claims().await
            && self.backups.last() != Some(&claims)
        {
            self.backups.push(claims);
        }
    }

    fn any(&mut self) -> usize {
        self.lot.below(self.replicas.len() as u64) as usize
    }

    fn claims_name() -> String {
        format!("{LEASE}-shards")
    }

    async fn claims(&self) -> Option<String> {
        let lease = self.load.place.leases().get(&Self::claims_name()).await.ok()?;
        lease.annotations().get(CLAIMS).cloned()
    }

    /// Writes the claims unconditionally.
    async fn write_claims(&self, claims: &str) {
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { CLAIMS: claims } } }));
        let leases = self.load.place.leases();
        let _ = leases
            .patch(&Self::claims_name(), &PatchParams::default(), &patch)
            .await;
    }

    async fn disturb(&mut self, disturbance: Disturbance) {
        *self.counts.entry(disturbance).or_default() += 1;
        let index = self.any();
        match disturbance {
            Disturbance::Kill => {
                let replica = self.replicas.remove(index);
                replica.program.signal("KILL");
                self.absences.note(replica.program.id());
            }
            Disturbance::Stop => self.stop(index),
            Disturbance::Suspend => {
                let seconds = 1 + self.lot.below(25);
                let program = &self.replicas[index].program;
                self.absences.note(program.id());
                program.signal("STOP");
                sleep(Duration::from_secs(seconds)).await;
                self.replicas[index].program.signal("CONT");
            }
            Disturbance::Partition => {
                let seconds = 1 + self.lot.below(20);
                let proxy = &self.replicas[index].proxy;
                proxy.fall_silent();
                sleep(Duration::from_secs(seconds)).await;
                match self.lot.falls(0.5) {
                    // Delivers the delayed requests.
                    true => self.replicas[index].proxy.restore(),
                    false => {
                        self.replicas[index].proxy.heal();
                        self.replicas[index].proxy.reset_all();
                    }
                }
            }
            Disturbance::LateAnswers => {
                let delay = Fault::Delay(Duration::from_millis(500 + self.lot.below(4000)));
                self.replicas[index]
                    .proxy
                    .inject([(0.5, delay), (0.1, Fault::LoseAnswer)]);
                sleep(Duration::from_secs(5)).await;
                self.replicas[index].proxy.heal();
            }
            Disturbance::RemoveLabel => {
                let patch =
                    Patch::Merge(json!({ "metadata": { "labels": { "rbuilder.dev/shards": null } } }));
                let leases = self.load.place.leases();
                let _ = leases
                    .patch(&Self::claims_name(), &PatchParams::default(), &patch)
                    .await;
            }
            Disturbance::EditClaims => self.edit_claims().await,
            Disturbance::RestoreClaims => {
                if let Some(backup) = self.lot.pick(&self.backups).cloned() {
                    self.write_claims(&backup).await;
                }
            }
            Disturbance::RestartServer => {
                let env = &self.load.place.env;
                env.kill(Server::ApiServer).unwrap();
                sleep(Duration::from_secs(2)).await;
                env.restart(Server::ApiServer).await.unwrap();
            }
            Disturbance::PauseServer => {
                let env = &self.load.place.env;
                env.pause(Server::ApiServer).unwrap();
                sleep(Duration::from_millis(9700)).await;
                env.resume(Server::ApiServer).unwrap();
            }
            Disturbance::Switch => self.switch().await,
        }
    }

    fn stop(&mut self, index: usize) {
        let replica = self.replicas.remove(index);
        replica.program.signal("TERM");
        self.stopping.push(replica);
    }

    /// Gives the ranges of one owner to another one, as with `kubectl edit`.
    async fn edit_claims(&mut self) {
        let Some(text) = self.claims().await else { return };
        let mut claims: Value = serde_json::from_str(&text).unwrap();
        let arcs = claims["claims"].as_array_mut().unwrap();
        let holders: Vec<Value> = arcs.iter().map(|arc| arc["holder"].clone()).collect();
        let from = self.lot.pick(&holders).cloned();
        let to = self.lot.pick(&holders).cloned();
        for arc in arcs.iter_mut() {
            if Some(&arc["holder"]) == from.as_ref() {
                arc["holder"] = to.clone().unwrap();
            }
        }
        if self.lot.falls(0.5) {
            claims["generation"] = json!(claims["generation"].as_u64().unwrap() + 1);
        }
        self.write_claims(&claims.to_string()).await;
    }

    /// Updates the replicas one by one, as a Deployment with `RollingUpdate` does.
    async fn switch(&mut self) {
        self.mode = match self.mode {
            Mode::Shards => Mode::Leader,
            Mode::Leader => Mode::Shards,
        };
        while let Some(old) = self.replicas.iter().position(|replica| replica.mode != self.mode) {
            self.start().await;
            sleep(Duration::from_millis(500 + self.lot.below(1500))).await;
            self.stop(old);
        }
    }

    /// Returns the overlaps, and the number of reconciles.
    fn overlaps(&self) -> (Vec<String>, usize) {
        struct Work {
            process: String,
            began: u128,
            ended: Option<u128>,
        }
        let mut all: BTreeMap<String, Vec<Work>> = BTreeMap::new();
        for recorded in self.load.record() {
            let of_object = all.entry(recorded.name).or_default();
            match recorded.step {
                Step::Began => of_object.push(Work {
                    process: recorded.process,
                    began: recorded.at,
                    ended: None,
                }),
                Step::Wrote => {}
                Step::Ended => {
                    let mut own = of_object.iter_mut().rev();
                    own.find(|work| work.process == recorded.process).unwrap().ended = Some(recorded.at);
                }
            }
        }
        let reconciles = all.values().map(Vec::len).sum();
        let mut overlaps = Vec::new();
        for (name, work) in &all {
            for (index, before) in work.iter().enumerate() {
                let ended = before.ended.unwrap_or(u128::MAX);
                let ended = self.absences.end(&before.process, before.began, ended);
                for after in &work[index + 1..] {
                    if after.process != before.process && after.began < ended {
                        overlaps.push(format!(
                            "{name}: {} from {} to {ended}, {} at {}",
                            before.process, before.began, after.process, after.began
                        ));
                    }
                }
            }
        }
        (overlaps, reconciles)
    }
}

/// Modifies objects until told to stop. Returns the number of changes.
fn change(maps: Api<ConfigMap>, is_on: Arc<AtomicBool>) -> JoinHandle<u64> {
    tokio::spawn(async move {
        let mut round = 0;
        while is_on.load(Ordering::Relaxed) {
            round += 1;
            let name = format!("object-{}", round % OBJECTS);
            let patch = Patch::Merge(json!({ "data": { ROUND: round.to_string() } }));
            // Repeated until it succeeds, because the API server is down at times.
            while maps.patch(&name, &PatchParams::default(), &patch).await.is_err() {
                sleep(Duration::from_millis(200)).await;
            }
            sleep(PACE).await;
        }
        round
    })
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is `{text}`: write a number")),
    )
}

#[rbuilder::envtest::test]
async fn disturbed_replicas_lose_and_double_nothing() {
    let seed = variable(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    let time = Duration::from_secs(variable(SECONDS).unwrap_or(20));
    let mut scene = Scene {
        load: Load::start(None).await,
        lot: Lot::new(seed),
        mode: Mode::Shards,
        replicas: Vec::new(),
        stopping: Vec::new(),
        absences: Absences::default(),
        backups: Vec::new(),
        counts: BTreeMap::new(),
        started: 0,
        exits: 0,
    };
    scene.load.create_objects().await;
    // The others need not wait for a lease duration.
    scene.start().await;
    scene.replicas[0].program.logs("shards of this replica").await;
    scene.maintain().await;
    let is_on = Arc::new(AtomicBool::new(true));
    let changing = change(scene.load.place.maps(), Arc::clone(&is_on));
    let started = Instant::now();
    // Each disturbance at least once, if there's enough time.
    let mut left = ALL.to_vec();
    while started.elapsed() < time {
        if left.is_empty() {
            left = ALL.to_vec();
        }
        let disturbance = left.remove(scene.lot.below(left.len() as u64) as usize);
        scene.disturb(disturbance).await;
        let pause = 500 + scene.lot.below(3000);
        sleep(Duration::from_millis(pause)).await;
        scene.maintain().await;
    }
    is_on.store(false, Ordering::Relaxed);
    let changes = changing.await.unwrap();
    for _ in 0..60 {
        sleep(Duration::from_secs(1)).await;
        scene.maintain().await;
    }
    let log = |scene: &Scene| {
        let logs = scene.replicas.iter().map(|replica| replica.program.log());
        logs.collect::<Vec<_>>().join("\n")
    };
    let rounds = scene.load.settled_or(|| log(&scene)).await;
    let (overlaps, reconciles) = scene.overlaps();
    #[allow(clippy::disallowed_macros)] // for people who run it for longer
    {
        println!(
            "{SEED}={seed} {SECONDS}={}: {changes} changes, {reconciles} reconciles, {} processes, {} exited, {:?}",
            time.as_secs(),
            scene.started,
            scene.exits,
            scene.counts
        );
    }
    assert!(overlaps.is_empty(), "seed {seed}: {overlaps:#?}");
    assert_eq!(rounds.values().max(), Some(&changes), "seed {seed}");
}
