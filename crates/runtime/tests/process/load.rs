//! Replicas are started, stopped, killed and suspended while the objects keep changing. Compares
//! the record of the reconciles with the API server's audit log. No change may be lost, and no two
//! replicas may reconcile the same object concurrently.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::api::ListParams;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::*;
use crate::operator::{RECORD, ROUND, ROUND_DONE, Step, now};

pub(crate) const OBJECTS: u64 = 60;
/// Interval between changes.
pub(crate) const PACE: Duration = Duration::from_millis(25);
/// Time for the others to take over from a replica, in microseconds, with a margin for busy
/// machines.
const TAKEN_OVER: u128 = 30_000_000;

/// Time for a signal to reach all threads, in microseconds.
const DELIVERED: u128 = 100_000;

/// Logs all changes of ConfigMaps with their contents.
const AUDIT_POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [patch]
  resources: [{ group: "", resources: [configmaps] }]
- level: None
"#;

#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) at: u128,
    pub(crate) step: Step,
    pub(crate) process: String,
    pub(crate) name: String,
    round: u64,
}

impl Recorded {
    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, step, process, name, round] = words[..] else {
            panic!("{line}");
        };
        Self {
            at: at.parse().unwrap(),
            step: step.parse().unwrap(),
            process: process.to_owned(),
            name: name.to_owned(),
            round: round.parse().unwrap(),
        }
    }
}

/// A period during which a process was working on an object.
#[derive(Clone, Debug)]
struct Work {
    process: String,
    began: u128,
    ended: u128,
}

pub(crate) struct Load {
    pub(crate) place: Place,
    folder: TempDir,
    /// When each process was killed or suspended.
    gone: BTreeMap<String, u128>,
}

impl Load {
    /// Starts an API server with an audit log, and optionally a feature gate.
    pub(crate) async fn start(gate: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy.yaml");
        std::fs::write(&policy, AUDIT_POLICY).unwrap();
        std::fs::write(folder.path().join("record"), "").unwrap();
        let builder = Environment::builder()
            .apiserver_arg(format!("--audit-policy-file={}", policy.display()))
            .apiserver_arg(format!(
                "--audit-log-path={}",
                folder.path().join("audit").display()
            ));
        let builder = gate.into_iter().fold(builder, |builder, gate| {
            builder.apiserver_arg(format!("--feature-gates={gate}=true"))
        });
        Self {
            place: Place::at(builder.start().await.unwrap()).await,
            folder,
            gone: BTreeMap::new(),
        }
    }

    /// Starts a replica and waits until it owns some ranges. The port is for its metrics.
    async fn join(&self) -> (Program, ReservedPort) {
        let reserved = ReservedPort::reserve().unwrap();
        let metrics = format!("--metrics-bind-address=:{}", reserved.number());
        let flags = self.place.flags(&[
            "--shards=auto",
            "--health-probe-bind-address=0",
            "--metrics-secure=false",
            &metrics,
        ]);
        let variables = [(RECORD, self.record_path())];
        let program = Program::start_with(self.place.env.kubeconfig_path(), flags, variables);
        program.logs("shards of this replica").await;
        sleep(Duration::from_secs(3)).await;
        (program, reserved)
    }

    /// Kills or suspends a replica, and waits until the others have taken over its objects.
    async fn lose(&mut self, program: &Program, signal: &str) {
        program.signal(signal);
        self.gone.insert(program.id(), now());
        sleep(Duration::from_secs(22)).await;
    }

    /// Creates the objects in their first round.
    pub(crate) async fn create_objects(&self) {
        for number in 0..OBJECTS {
            self.place
                .create_with(&format!("object-{number}"), &[(ROUND, "0")])
                .await;
        }
    }

    pub(crate) fn record_path(&self) -> String {
        self.folder.path().join("record").display().to_string()
    }

    pub(crate) fn record(&self) -> Vec<Recorded> {
        let text = std::fs::read_to_string(self.record_path()).unwrap();
        let mut record: Vec<Recorded> = text.lines().map(Recorded::parse).collect();
        record.sort_by_key(|recorded| recorded.at);
        record
    }

    /// Returns the operator's writes that were accepted: object, process and round.
    fn audited(&self) -> Vec<(String, String, u64)> {
        let text = std::fs::read_to_string(self.folder.path().join("audit")).unwrap();
        let events = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let accepted = events.filter(|event| event["responseStatus"]["code"] == 200);
        let writes = accepted.filter_map(|event| {
            let done = event["requestObject"]["metadata"]["annotations"][ROUND_DONE].as_str()?;
            let (process, round) = done.split_once(' ').unwrap();
            let name = event["objectRef"]["name"].as_str().unwrap();
            Some((name.to_owned(), process.to_owned(), round.parse().unwrap()))
        });
        writes.collect()
    }

    /// Returns the periods during which each object was being worked on, in order. They end when
    /// the process is killed or suspended, at the latest.
    fn work(&self) -> BTreeMap<String, Vec<Work>> {
        let mut all: BTreeMap<String, Vec<Work>> = BTreeMap::new();
        for recorded in self.record() {
            let gone = self.gone.get(&recorded.process).copied().unwrap_or(u128::MAX);
            let of_object = all.entry(recorded.name.clone()).or_default();
            match recorded.step {
                Step::Began => {
                    assert!(
                        recorded.at <= gone.saturating_add(DELIVERED),
                        "{recorded:?} began after it was suspended"
                    );
                    of_object.push(Work {
                        process: recorded.process,
                        began: recorded.at,
                        ended: gone,
                    });
                }
                Step::Wrote => {}
                Step::Ended => {
                    let mut own = of_object.iter_mut().rev();
                    let work = own.find(|work| work.process == recorded.process).unwrap();
                    work.ended = recorded.at.min(gone);
                }
            }
        }
        all
    }

    /// Waits until the last round of each object is reconciled. Returns the rounds.
    async fn settled(&self) -> BTreeMap<String, u64> {
        self.settled_or(String::new).await
    }

    /// Like [`settled`](Self::settled), with more information on failure.
    pub(crate) async fn settled_or(&self, describe: impl Fn() -> String) -> BTreeMap<String, u64> {
        eventually(SOON, || async {
            let maps = self.place.maps().list(&ListParams::default()).await.unwrap();
            let rounds = maps.items.iter().filter_map(|map| {
                let round = map.data.as_ref()?.get(ROUND)?;
                Some((
                    map.name_any(),
                    round.clone(),
                    map.annotations().get(ROUND_DONE).cloned(),
                ))
            });
            let rounds: Vec<_> = rounds.collect();
            let is_done = |round: &String, done: &Option<String>| {
                done.as_ref()
                    .and_then(|done| done.split_once(' '))
                    .map(|(_, done)| done)
                    == Some(round)
            };
            match rounds.iter().find(|(_, round, done)| !is_done(round, done)) {
                Some(missing) => Err(format!("not reconciled: {missing:?}\n{}", describe())),
                None => Ok(rounds
                    .into_iter()
                    .map(|(name, round, _)| (name, round.parse().unwrap()))
                    .collect()),
            }
        })
        .await
    }

    /// Asserts that no two replicas worked on the same object concurrently.
    fn check_work(&self) {
        for (name, work) in self.work() {
            for pair in work.windows(2) {
                let [before, after] = pair else { unreachable!() };
                assert!(
                    before.process == after.process || before.ended <= after.began,
                    "two replicas worked on {name}: {before:?} and {after:?}"
                );
            }
        }
    }

    /// Asserts that no object had to wait for too long. (They change all the time.)
    fn check_gaps(&self) {
        let mut last: BTreeMap<String, u128> = BTreeMap::new();
        for recorded in self.record() {
            let before = last
                .insert(recorded.name.clone(), recorded.at)
                .unwrap_or(recorded.at);
            let waited = recorded.at - before;
            assert!(waited < TAKEN_OVER, "{recorded:?} after {waited} µs");
        }
    }

    /// Asserts that the record is consistent with the audit log, and that no round was reconciled
    /// twice.
    fn check_audit(&self) {
        let audited = self.audited();
        let distinct: BTreeSet<_> = audited.iter().cloned().collect();
        assert_eq!(distinct.len(), audited.len(), "a replica wrote a round twice");
        let written = self
            .record()
            .into_iter()
            .filter(|recorded| recorded.step == Step::Wrote);
        let written: BTreeSet<_> = written
            .map(|recorded| (recorded.name, recorded.process, recorded.round))
            .collect();
        assert!(
            written.is_subset(&distinct),
            "{:?}",
            written.difference(&distinct)
        );
        // A killed process may not have recorded its last writes.
        let unrecorded = distinct.difference(&written);
        let others: Vec<_> = unrecorded
            .filter(|(_, process, _)| !self.gone.contains_key(process))
            .collect();
        assert!(others.is_empty(), "{others:?}");
        let mut rounds: BTreeMap<(&str, u64), Vec<&str>> = BTreeMap::new();
        for (name, process, round) in &distinct {
            rounds.entry((name, *round)).or_default().push(process);
        }
        let doubled: Vec<_> = rounds
            .iter()
            .filter(|(_, processes)| processes.len() > 1)
            .collect();
        assert!(doubled.is_empty(), "reconciled by two replicas: {doubled:?}");
    }
}

/// Modifies objects sequentially until told to stop. Returns the number of changes.
fn change(maps: Api<ConfigMap>, is_on: Arc<AtomicBool>) -> JoinHandle<u64> {
    tokio::spawn(async move {
        let mut round = 0;
        while is_on.load(Ordering::Relaxed) {
            round += 1;
            let name = format!("object-{}", round % OBJECTS);
            let patch = Patch::Merge(json!({ "data": { ROUND: round.to_string() } }));
            maps.patch(&name, &PatchParams::default(), &patch).await.unwrap();
            sleep(PACE).await;
        }
        round
    })
}

/// Returns how many objects a replica has received that belong to other replicas.
async fn foreign(program: &Program, port: &ReservedPort) -> f64 {
    let scraped = program.get(port.number(), "/metrics").await.unwrap();
    let lines = scraped.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        series
            .starts_with("rbuilder_shard_filtered_objects_total")
            .then(|| value.parse::<f64>().unwrap())
    });
    lines.sum()
}

/// Starts and stops replicas. Returns the remaining ones, and the port of the most recently started
/// replica.
async fn come_and_go(load: &mut Load) -> (Program, Program, ReservedPort) {
    let (mut first, _) = load.join().await;
    let (second, _) = load.join().await;
    let (mut third, _) = load.join().await;
    let (fourth, _) = load.join().await;
    load.lose(&second, "KILL").await;
    load.lose(&third, "STOP").await;
    third.signal("CONT");
    assert_eq!(third.ended(SOON).await, Ended::with(1), "{}", third.log());
    let (last, port) = load.join().await;
    first.signal("TERM");
    assert_eq!(first.ended(SOON).await, Ended::with(0), "{}", first.log());
    sleep(Duration::from_secs(5)).await;
    (fourth, last, port)
}

async fn lose_and_double_nothing(gate: Option<&str>) {
    let mut load = Load::start(gate).await;
    load.create_objects().await;
    let is_on = Arc::new(AtomicBool::new(true));
    let changing = change(load.place.maps(), Arc::clone(&is_on));
    let (_other, last, port) = come_and_go(&mut load).await;
    is_on.store(false, Ordering::Relaxed);
    let changes = changing.await.unwrap();
    let rounds = load.settled().await;
    assert_eq!(rounds.values().max(), Some(&changes), "{rounds:?}");
    load.check_work();
    load.check_gaps();
    load.check_audit();
    let foreign = foreign(&last, &port).await;
    assert_eq!(
        gate.is_none(),
        foreign > 0.0,
        "{foreign} objects of other replicas"
    );
}

#[rbuilder::envtest::test]
async fn replicas_lose_and_double_nothing_under_load() {
    lose_and_double_nothing(None).await;
}

#[rbuilder::envtest::test]
async fn replicas_lose_and_double_nothing_with_shards_of_the_server() {
    lose_and_double_nothing(Some("ShardedListAndWatch")).await;
}
