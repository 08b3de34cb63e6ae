//! Operators that can't stop in time, e.g. because they are suspended, or because a reconcile is
//! blocking its thread. There must never be two active operators. On the other hand, an operator
//! should not lose its lease without reason.

use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::operator::{BLOCK, WRITTEN};
use crate::proxy::Proxy;

/// Time for another process to acquire the lease: the lease duration (15 s), a retry period with
/// jitter, and a margin.
const TAKEN_OVER: Duration = Duration::from_secs(30);
/// Time for a process to exit after losing its lease. The actual limit is one second, but the
/// machine may be busy.
const GONE: Duration = Duration::from_secs(5);
/// Time within which a writer observes that it has to wait.
const QUIET: Duration = Duration::from_secs(1);

const FLAGS: [&str; 2] = ["--leader-elect", "--health-probe-bind-address=0"];

/// A process of the operator, with a proxy that records its writes.
struct Replica {
    program: Program,
    proxy: Proxy,
    _folder: TempDir,
}

impl Replica {
    async fn start(place: &Place, threads: usize) -> Self {
        let proxy = Proxy::start(place.env.client(), 0).await;
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = write_kubeconfig(&folder, &proxy.url());
        let program = Program::start_on(threads, &kubeconfig, place.flags(&FLAGS));
        Self {
            program,
            proxy,
            _folder: folder,
        }
    }

    async fn has_written(&self, count: usize) {
        let before = self.proxy.writes().len();
        eventually(TAKEN_OVER, || async {
            let now = self.proxy.writes().len();
            match now >= before + count {
                true => Ok(()),
                false => Err(format!("{before} writes, then {now}\n{}", self.program.log())),
            }
        })
        .await;
    }
}

pub(crate) fn write_kubeconfig(folder: &TempDir, server: &str) -> PathBuf {
    let path = folder.path().join("kubeconfig");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
        "clusters": [{ "name": "proxy", "cluster": { "server": server } }],
        "users": [{ "name": "nobody", "user": {} }],
        "contexts": [{ "name": "proxy", "context": { "cluster": "proxy", "user": "nobody" } }],
    });
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

/// A leader and a standby. The leader has a reconcile that keeps writing and never yields.
struct Pair {
    place: Place,
    leader: Replica,
    standby: Replica,
}

impl Pair {
    async fn new() -> Self {
        let place = Place::new().await;
        place.create_with("writer", &[(BLOCK, "write")]).await;
        let leader = Replica::start(&place, 2).await;
        place.marked_by("writer", WRITTEN, &leader.program).await;
        let standby = Replica::start(&place, 2).await;
        standby.program.logs("lease is held by another process").await;
        Self {
            place,
            leader,
            standby,
        }
    }

    /// Asserts that the standby writes something, and that the old leader writes nothing after
    /// that.
    async fn assert_handed_over(&mut self) {
        self.standby.has_written(20).await;
        let ended = self.leader.program.ended(GONE).await;
        assert_eq!(ended, Ended::with(1), "{}", self.leader.program.log());
        self.leader.program.logs("still running").await;
        self.standby.has_written(20).await;
        self.leader.proxy.assert_handed_over_to(&self.standby.proxy);
    }
}

/// There's a single worker thread, as with `cpu: 500m`, or no thread besides `main`.
#[rbuilder::envtest::test]
async fn blocked_thread_does_not_lose_the_lease() {
    tokio::join!(keeps_its_lease(0), keeps_its_lease(1));
}

async fn keeps_its_lease(threads: usize) {
    let place = Place::new().await;
    // Longer than the lease duration and the time until the next attempt (15 + 4.4 s).
    place.create_with("blocking", &[(BLOCK, "22")]).await;
    let kubeconfig = place.env.kubeconfig_path();
    let mut leader = Program::start_on(threads, kubeconfig, place.flags(&FLAGS));
    place.marked_by("blocking", STARTED, &leader).await;
    let holder = place.holder().await;
    let standby = place.start(&FLAGS);
    standby.logs("lease is held by another process").await;

    place.marked_by("blocking", ENDED, &leader).await;
    assert_eq!(place.holder().await, holder, "{}", standby.log());
    leader.signal("TERM");
    assert_eq!(leader.ended(SOON).await, Ended::with(0), "{}", leader.log());
}

/// The process must exit even if a thread is blocked forever: one or all threads of the runtime, or
/// one of the blocking pool, for which `main` would wait.
#[rbuilder::envtest::test]
async fn process_that_cannot_stop_exits_a_second_after_losing_its_lease() {
    tokio::join!(
        is_gone(0, "3600"),
        is_gone(1, "3600"),
        is_gone(2, "3600"),
        is_gone(2, "pool")
    );
}

async fn is_gone(threads: usize, block: &str) {
    let place = Place::new().await;
    place.create_with("blocking", &[(BLOCK, block)]).await;
    let mut leader = Program::start_on(threads, place.env.kubeconfig_path(), place.flags(&FLAGS));
    place.marked_by("blocking", STARTED, &leader).await;
    place.steal_lease().await;
    leader.logs("leader election lost").await;
    assert_eq!(leader.ended(GONE).await, Ended::with(1), "{}", leader.log());
    leader
        .logs("leader election lost and still running after 1s, exiting")
        .await;
}

#[rbuilder::envtest::test]
async fn unstoppable_reconcile_writes_nothing_after_the_lease_is_taken() {
    let mut pair = Pair::new().await;
    pair.place.steal_lease().await;
    pair.assert_handed_over().await;
}

#[rbuilder::envtest::test]
async fn unstoppable_reconcile_writes_nothing_after_a_partition() {
    let mut pair = Pair::new().await;
    pair.leader.proxy.fall_silent();
    pair.assert_handed_over().await;
}

/// The leader is suspended for longer than the lease duration. When it resumes, it may be about to
/// write something.
#[rbuilder::envtest::test]
async fn leader_suspended_beyond_its_lease_writes_nothing_after_resuming() {
    let mut pair = Pair::new().await;
    // Make it wait, because the signal must not arrive between the check and the write.
    pair.place.hold("writer").await;
    eventually(SOON, || async {
        let before = pair.leader.proxy.writes().len();
        tokio::time::sleep(QUIET).await;
        pair.leader.proxy.writes().len() == before
    })
    .await;
    pair.leader.program.signal("STOP");
    pair.place
        .marked_by("writer", STARTED, &pair.standby.program)
        .await;
    pair.place.release("writer").await;
    pair.standby.has_written(20).await;
    pair.leader.program.signal("CONT");
    pair.assert_handed_over().await;
}
