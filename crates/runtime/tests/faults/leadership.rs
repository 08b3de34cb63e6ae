//! A leader and a standby, with faults of the lease or of the connection to it. They must not
//! reconcile an object concurrently.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch, PatchParams};
use rbuilder::envtest::{Environment, eventually};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::operator::{LEASE, Operator, held_by};
use super::proxy::{Fault, Proxy};
use super::scene::Scene;

const SOON: Duration = Duration::from_secs(30);
/// Maximum time for which a leader may continue without renewing the lease. The lease lasts for 15
/// s; this includes a margin for busy machines.
const RENEW_DEADLINE: Duration = Duration::from_secs(14);
/// Time for the standby to acquire the lease: the lease duration (15 s), a retry period with
/// jitter, and a margin.
const TAKEN_OVER: Duration = Duration::from_secs(30);

/// Two processes, each with its own proxy. The objects are in the desired state.
struct Pair {
    scene: Scene,
    leader: (Proxy, Operator),
    standby: (Proxy, Operator),
}

impl Pair {
    async fn new(env: Environment, seed: u64) -> Self {
        let scene = Scene::new(env, seed).await;
        let proxy = scene.proxy().await;
        let leader = (scene.candidate(&proxy, "the leader"), proxy);
        eventually(SOON, || async { holder(&scene).await.is_some() }).await;
        scene.begin().await;
        let proxy = scene.proxy().await;
        let standby = (scene.candidate(&proxy, "the standby"), proxy);
        // The standby only reads the lease once its caches have synced.
        eventually(SOON, || async { standby.1.requests() > 4 }).await;
        sleep(Duration::from_secs(3)).await;
        let [leader, standby] = [leader, standby].map(|(operator, proxy)| (proxy, operator));
        Self {
            scene,
            leader,
            standby,
        }
    }

    /// Asserts that the leader exits because it lost the lease, and that the other process
    /// completes everything.
    async fn assert_handed_over(self, before: &str) {
        let ended = timeout(RENEW_DEADLINE, self.leader.1.ended).await;
        let error = ended.expect("the leader ends").unwrap().unwrap_err().to_string();
        assert!(error.starts_with("leader election lost: "), "{error}");
        eventually(TAKEN_OVER, || async {
            match holder(&self.scene).await {
                Some(now) if now != before && now != "thief" => Ok(()),
                now => Err(format!("{now:?} holds the lease")),
            }
        })
        .await;
        self.scene.create("after", "it is over").await;
        self.scene.converges().await;
        self.standby.1.stop().await.unwrap();
        self.leader.0.assert_handed_over_to(&self.standby.0);
        assert_eq!(holder(&self.scene).await, None, "given up at the end");
    }

    async fn stays_undisturbed(self, holder_before: &str) {
        self.scene.create("after", "it is over").await;
        self.scene.converges().await;
        assert_eq!(holder(&self.scene).await.as_deref(), Some(holder_before));
        let by_standby = self.standby.0.writes();
        assert!(by_standby.is_empty(), "{by_standby:?}");
        for (_, operator) in [self.leader, self.standby] {
            assert!(!operator.ended.is_finished());
            operator.stop().await.unwrap();
        }
        assert_eq!(self.scene.watchman.twice(), Vec::<String>::new());
    }
}

async fn holder(scene: &Scene) -> Option<String> {
    let lease = scene.api::<Lease>().get_opt(LEASE).await.unwrap()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

/// Objects keep changing while the leader is partitioned.
async fn a_partition_of_the_leader(env: Environment) {
    let pair = Pair::new(env, 20).await;
    let before = holder(&pair.scene).await.unwrap();
    let people = pair.scene.busy();
    pair.leader.0.fall_silent();
    sleep(Duration::from_secs(5)).await;
    people.rest().await;
    pair.assert_handed_over(&before).await;
}

/// The leader is stopped while it's partitioned. A running reconcile must not outlast the lease.
async fn a_partition_of_a_leader_that_stops(env: Environment) {
    let pair = Pair::new(env, 21).await;
    let before = holder(&pair.scene).await.unwrap();
    let Pair {
        scene,
        leader,
        standby,
    } = pair;
    scene.create("long", &held_by("the leader")).await;
    eventually(SOON, || async { scene.watchman.is_in_work("long") }).await;
    leader.0.fall_silent();
    let stopping = Instant::now();
    // The grace period is 30 s.
    let error = leader.1.stop().await.unwrap_err().to_string();
    assert!(stopping.elapsed() < RENEW_DEADLINE, "{:?}", stopping.elapsed());
    assert!(error.starts_with("leader election lost: "), "{error}");
    eventually(TAKEN_OVER, || async {
        holder(&scene).await.is_some_and(|now| now != before)
    })
    .await;
    scene.converges().await;
    standby.1.stop().await.unwrap();
    leader.0.assert_handed_over_to(&standby.0);
}

/// The holder of the lease is replaced by one that never renews it.
async fn a_theft_of_the_lease(env: Environment) {
    let pair = Pair::new(env, 22).await;
    let before = holder(&pair.scene).await.unwrap();
    let thief = Patch::Merge(json!({ "spec": { "holderIdentity": "thief" } }));
    let people = pair.scene.busy();
    let leases = pair.scene.api::<Lease>();
    leases
        .patch(LEASE, &PatchParams::default(), &thief)
        .await
        .unwrap();
    sleep(Duration::from_secs(3)).await;
    people.rest().await;
    pair.assert_handed_over(&before).await;
}

/// The leader must recreate the lease before the standby acquires it.
async fn a_deletion_of_the_lease(env: Environment) {
    let pair = Pair::new(env, 23).await;
    let before = holder(&pair.scene).await.unwrap();
    let people = pair.scene.busy();
    for _ in 0..5 {
        let leases = pair.scene.api::<Lease>();
        leases.delete(LEASE, &DeleteParams::default()).await.unwrap();
        eventually(SOON, || async { holder(&pair.scene).await.is_some() }).await;
        assert_eq!(holder(&pair.scene).await.unwrap(), before);
    }
    people.rest().await;
    pair.stays_undisturbed(&before).await;
}

/// There's no new leader if the fault ends before the renew deadline.
async fn faults_that_are_over_before_the_deadline(env: Environment) {
    let pair = Pair::new(env, 24).await;
    let before = holder(&pair.scene).await.unwrap();
    let people = pair.scene.busy();
    for fault in [
        Fault::Refuse(http::StatusCode::INTERNAL_SERVER_ERROR),
        Fault::LoseAnswer,
        Fault::Reset,
    ] {
        pair.leader.0.inject([(1.0, fault)]);
        sleep(Duration::from_secs(4)).await;
        pair.leader.0.heal();
        sleep(Duration::from_secs(4)).await;
    }
    pair.leader.0.reset_all();
    people.rest().await;
    pair.stays_undisturbed(&before).await;
}

/// The scenarios run concurrently, since they spend most of the time waiting.
#[rbuilder::envtest::test]
async fn only_one_replica_leads(env: Environment) {
    tokio::join!(
        a_partition_of_the_leader(env.clone()),
        a_partition_of_a_leader_that_stops(env.clone()),
        a_theft_of_the_lease(env.clone()),
        a_deletion_of_the_lease(env.clone()),
        faults_that_are_over_before_the_deadline(env),
    );
}
