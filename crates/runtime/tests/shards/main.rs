//! A sharded operator whose replicas share an API server. The clock is paused.

mod contracts;
mod divided;
mod fleet;
mod histories;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch, PatchParams};
use rbuilder::{Error, Manager, ManagerArgs, Sharding, Task};
use serde_json::json;
use tokio::time::{Instant, sleep};

use fleet::Fleet;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn replicas_share_the_objects() {
    for sharding in [true, false] {
        let fleet = Fleet::of(3, sharding).await;
        fleet.create_many(60).await;
        fleet.reconciled().await;
        fleet.check();
        let shares = fleet.shares();
        assert_eq!(
            shares.iter().sum::<usize>(),
            60,
            "each object has one replica: {shares:?}"
        );
        assert!(shares.iter().all(|share| *share > 5), "{shares:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_child_is_restored_by_the_replica_of_its_owner() {
    for sharding in [true, false] {
        let fleet = Fleet::of(2, sharding).await;
        let names = fleet.create_many(20).await;
        fleet.reconciled().await;
        sleep(SECOND).await;
        let owners = std::mem::take(&mut fleet.record.lock().unwrap().last);
        for name in &names {
            fleet
                .secrets(name)
                .delete(name, &DeleteParams::default())
                .await
                .unwrap();
        }
        sleep(5 * SECOND).await;
        let again = fleet.record.lock().unwrap().last.clone();
        assert_eq!(again, owners);
        assert_eq!(fleet.children().await.len(), 20);
        fleet.check();
    }
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_crashed_replica_are_reconciled_within_20_seconds() {
    for sharding in [true, false] {
        let mut fleet = Fleet::of(3, sharding).await;
        let names = fleet.create_many(30).await;
        fleet.reconciled().await;
        fleet.crash(1);
        for name in &names {
            fleet.write(name, "changed").await;
        }
        let waited = fleet.reconciled().await;
        assert!(waited >= 12 * SECOND && waited <= 20 * SECOND, "{waited:?}");
        fleet.check();
    }
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_stopped_replica_are_reconciled_within_five_seconds() {
    for sharding in [true, false] {
        let mut fleet = Fleet::of(3, sharding).await;
        let names = fleet.create_many(30).await;
        fleet.reconciled().await;
        let stopped = fleet.stop(1);
        for name in &names {
            fleet.write(name, "changed").await;
        }
        let waited = fleet.reconciled().await;
        assert!(waited < 5 * SECOND, "{waited:?}");
        stopped.running.await.unwrap().unwrap();
        fleet.check();
    }
}

/// The replica can't tell whether others have taken over, so it must stop before they may.
#[tokio::test(start_paused = true)]
async fn replica_without_responses_stops_before_others_take_over() {
    let mut fleet = Fleet::of(2, true).await;
    let names = fleet.create_many(20).await;
    fleet.reconciled().await;
    fleet.cut_off(0, true);
    for name in &names {
        fleet.write(name, "changed").await;
    }
    // Without a change of their children, these reconciles need no request.
    fleet.reconciled().await;
    sleep(30 * SECOND).await;
    for name in &names {
        fleet.write(name, "changed again").await;
    }
    fleet.reconciled().await;
    fleet.check();
    let is_running = !fleet.replicas[0].running.is_finished();
    assert!(is_running, "its webhooks and everything else go on");
    fleet.cut_off(0, false);
    let ended = fleet.replicas.remove(0).running.await.unwrap().unwrap_err();
    assert_eq!(
        ended.to_string(),
        "shards lost: another replica has taken a range of this one"
    );
    fleet.check();
}

/// E.g. while the API server is restarted. The reconciles in progress are cancelled and repeated.
#[tokio::test(start_paused = true)]
async fn replicas_without_responses_continue_if_nobody_took_over() {
    for outage in [12 * SECOND, 60 * SECOND] {
        let mut fleet = Fleet::new(true);
        fleet.work = 4 * SECOND;
        fleet.start_many(3).await;
        let names = fleet.create_many(20).await;
        fleet.reconciled().await;
        sleep(10 * SECOND).await;
        let before = fleet.record.lock().unwrap().last.clone();
        for name in &names {
            fleet.write(name, "changed").await;
        }
        (0..3).for_each(|index| fleet.cut_off(index, true));
        sleep(outage).await;
        (0..3).for_each(|index| fleet.cut_off(index, false));
        fleet.reconciled().await;
        fleet.check();
        let replicas = &fleet.replicas;
        assert!(replicas.iter().all(|replica| !replica.running.is_finished()));
        let after = fleet.record.lock().unwrap().last.clone();
        let replica = |last: &(String, usize)| last.1;
        assert!(
            before
                .iter()
                .all(|(name, last)| replica(last) == replica(&after[name])),
            "no range has moved"
        );
    }
}

/// It can't be started again in the same process.
#[tokio::test(start_paused = true)]
async fn replica_with_a_task_exits_when_its_lease_expires() {
    let mut fleet = Fleet::new(true);
    let task = Task::new("sweeper", |stopped| async move {
        stopped.requested().await;
        Ok::<_, Error>(())
    });
    fleet.start_with(|manager| manager.task(task));
    sleep(60 * SECOND).await;
    fleet.cut_off(0, true);
    let started = Instant::now();
    let ended = fleet.replicas.remove(0).running.await.unwrap().unwrap_err();
    assert!(ended.to_string().starts_with("shards lost: "), "{ended}");
    assert!(started.elapsed() < 12 * SECOND, "{:?}", started.elapsed());
}

fn leases(fleet: &Fleet) -> kube::Api<Lease> {
    kube::Api::namespaced(fleet.server.admin(), fleet::NAMESPACE)
}

#[tokio::test(start_paused = true)]
async fn lost_label_of_the_claims_is_restored() {
    let mut fleet = Fleet::of(3, true).await;
    let names = fleet.create_many(20).await;
    fleet.reconciled().await;
    let unlabel = Patch::Merge(json!({ "metadata": { "labels": { "rbuilder.dev/shards": null } } }));
    let claims = "fleet.example.com-shards";
    let patched = leases(&fleet)
        .patch(claims, &PatchParams::default(), &unlabel)
        .await;
    assert!(
        patched
            .unwrap()
            .metadata
            .labels
            .is_none_or(|labels| labels.is_empty())
    );
    fleet.crash(0);
    for name in &names {
        fleet.write(name, "changed").await;
    }
    let waited = fleet.reconciled().await;
    assert!(waited <= 20 * SECOND, "{waited:?}");
    fleet.stop(0).running.await.unwrap().unwrap();
    fleet.check();
    let lease = leases(&fleet).get(claims).await.unwrap();
    assert_eq!(
        lease.metadata.labels.unwrap()["rbuilder.dev/shards"],
        "fleet.example.com"
    );
}

#[tokio::test(start_paused = true)]
async fn claims_with_unknown_fields_are_neither_deleted_nor_stripped() {
    let mut fleet = Fleet::of(2, true).await;
    let claims = "fleet.example.com-shards";
    let before = leases(&fleet).get(claims).await.unwrap();
    let text = &before.metadata.annotations.as_ref().unwrap()["rbuilder.dev/shard-claims"];
    let text = text.replacen('{', r#"{"layout":"new","#, 1);
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { "rbuilder.dev/shard-claims": text } } }));
    leases(&fleet)
        .patch(claims, &PatchParams::default(), &patch)
        .await
        .unwrap();
    fleet.start();
    sleep(60 * SECOND).await;
    let after = leases(&fleet).get(claims).await.unwrap();
    assert_eq!(after.metadata.uid, before.metadata.uid);
    let text = &after.metadata.annotations.unwrap()["rbuilder.dev/shard-claims"];
    assert!(text.contains(r#""layout":"new""#), "{text}");
    assert!(
        fleet
            .replicas
            .iter()
            .all(|replica| !replica.running.is_finished())
    );
}

#[tokio::test(start_paused = true)]
async fn join_lists_only_the_ranges_that_move() {
    let mut fleet = Fleet::of(1, true).await;
    let names = fleet.create_many(40).await;
    fleet.reconciled().await;
    // Creating a child reconciles its owner once more.
    sleep(5 * SECOND).await;
    fleet.record.lock().unwrap().clear();
    fleet.server.forget_requests();
    fleet.start();
    sleep(20 * SECOND).await;
    let listed = fleet.listed();
    assert_eq!(
        listed.len(),
        1,
        "the new replica lists its ranges, and nobody else lists: {listed:?}"
    );
    let moved = fleet.shares();
    assert!(
        moved[0] == 0 && (10..30).contains(&moved[1]),
        "only what moves is reconciled again: {moved:?}"
    );

    let before = fleet.record.lock().unwrap().by_replica.clone();
    fleet.record.lock().unwrap().clear();
    fleet.server.forget_requests();
    let stopped = fleet.stop(1);
    sleep(20 * SECOND).await;
    assert_eq!(
        fleet.listed(),
        listed,
        "the first replica lists the ranges that come back"
    );
    assert_eq!(
        fleet.record.lock().unwrap().by_replica[&1],
        before[&stopped.number]
    );
    for name in &names {
        fleet.write(name, "changed").await;
    }
    fleet.reconciled().await;
    fleet.check();
}

#[tokio::test(start_paused = true)]
async fn reconciles_in_progress_end_before_their_range_moves() {
    let mut fleet = Fleet::new(true);
    fleet.work = 8 * SECOND;
    fleet.start();
    sleep(30 * SECOND).await;
    fleet.create_many(20).await;
    sleep(9 * SECOND).await;
    fleet.start();
    fleet.reconciled().await;
    sleep(20 * SECOND).await;
    fleet.check();
    assert!(fleet.shares()[1] > 0);
}

/// The permissions for reconciling the objects.
const RECONCILES: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: reconciles
rules:
- apiGroups: [""]
  resources: [configmaps, secrets]
  verbs: [get, list, watch, create, update, patch]
"#;

#[tokio::test(start_paused = true)]
async fn scaffolded_role_permits_everything_that_shards_need() {
    let scaffolded = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/memcached-operator/config/sharding"
    );
    let folder = tempfile::tempdir().unwrap();
    let role = std::path::Path::new(scaffolded).join("sharding_role.yaml");
    std::fs::copy(role, folder.path().join("sharding_role.yaml")).unwrap();
    std::fs::write(folder.path().join("reconciles.yaml"), RECONCILES).unwrap();
    let mut fleet = Fleet::new(true);
    fleet.server = fleet.server.role_from(folder.path());
    fleet.start();
    fleet.start();
    sleep(40 * SECOND).await;
    fleet.create_many(20).await;
    fleet.reconciled().await;
    assert!(
        fleet.shares().iter().all(|share| *share > 0),
        "{:?}",
        fleet.shares()
    );
    fleet.crash(0);
    sleep(30 * SECOND).await;
    fleet.stop(0).running.await.unwrap().unwrap();
    let refused = fleet.server.missing_permissions();
    assert!(
        refused.iter().all(|refused| refused.resource == "events"),
        "{refused:?}"
    );
}

/// E.g. during an upgrade of a control plane with several API servers.
#[tokio::test(start_paused = true)]
async fn answers_may_be_sharded_or_not() {
    let mut fleet = Fleet::of(2, true).await;
    fleet.create_many(20).await;
    fleet.reconciled().await;
    for (round, sharding) in [false, true, false].into_iter().enumerate() {
        fleet.server.sharding(sharding);
        fleet.server.expire_watches();
        let text = format!("round {round}");
        for number in 0..20 {
            fleet.write(&format!("object-{number}"), &text).await;
        }
        fleet.reconciled().await;
        fleet.start();
        sleep(10 * SECOND).await;
    }
    fleet.check();
    assert_eq!(fleet.replicas.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn task_runs_in_one_replica_until_that_stops() {
    const NOBODY: usize = 0;
    let runner = Arc::new(AtomicUsize::new(NOBODY));
    let mut fleet = Fleet::new(true);
    for number in 1..=3 {
        let runner = Arc::clone(&runner);
        let task = Task::new("sweeper", move |stopped| async move {
            assert_eq!(runner.swap(number, Ordering::Relaxed), NOBODY, "one at a time");
            stopped.requested().await;
            // The others must wait until it has ended.
            sleep(3 * SECOND).await;
            runner.store(NOBODY, Ordering::Relaxed);
            Ok::<_, Error>(())
        });
        fleet.start_with(|manager| manager.task(task));
    }
    let mut runners = Vec::new();
    while !fleet.replicas.is_empty() {
        sleep(60 * SECOND).await;
        let number = runner.load(Ordering::Relaxed);
        let running = fleet.replicas.iter().position(|replica| replica.number == number);
        fleet
            .stop(running.expect("a replica runs the task"))
            .running
            .await
            .unwrap()
            .unwrap();
        runners.push(number);
    }
    runners.sort_unstable();
    assert_eq!(runners, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn stopped_replicas_leave_the_claims_and_a_released_lease_behind() {
    let mut fleet = Fleet::of(2, true).await;
    while !fleet.replicas.is_empty() {
        fleet.stop(0).running.await.unwrap().unwrap();
    }
    let left = leases(&fleet).list(&Default::default()).await.unwrap().items;
    let names: Vec<_> = left.iter().map(kube::ResourceExt::name_any).collect();
    assert_eq!(names, ["fleet.example.com", "fleet.example.com-shards"]);
    let released = left[0].spec.as_ref().unwrap();
    assert_eq!(released.holder_identity.as_deref(), Some(""));
    let claims = &kube::ResourceExt::annotations(&left[1])["rbuilder.dev/shard-claims"];
    assert!(claims.ends_with(r#""claims":[]}"#), "{claims}");
}

/// As in an update with `RollingUpdate`, or its rollback.
#[tokio::test(start_paused = true)]
async fn leader_and_shards_wait_for_each_other() {
    let mut fleet = Fleet::new(true);
    let elect = |fleet: &mut Fleet| {
        fleet.sharded = false;
        fleet.start();
        fleet.sharded = true;
    };
    elect(&mut fleet);
    sleep(5 * SECOND).await;
    let names = fleet.create_many(20).await;
    fleet.start();
    fleet.start();
    fleet.reconciled().await;
    sleep(60 * SECOND).await;
    assert_eq!(fleet.shares(), [20, 0, 0]);
    fleet.stop(0).running.await.unwrap().unwrap();
    // Otherwise, the new one might acquire the lease first.
    sleep(10 * SECOND).await;
    elect(&mut fleet);
    fleet.record.lock().unwrap().clear();
    sleep(60 * SECOND).await;
    for name in &names {
        fleet.write(name, "changed").await;
    }
    fleet.reconciled().await;
    let shares = fleet.shares();
    assert!(shares[0] > 0 && shares[1] > 0 && shares[2] == 0, "{shares:?}");
    // A crash, then the last one stops.
    fleet.crash(0);
    sleep(60 * SECOND).await;
    fleet.record.lock().unwrap().clear();
    fleet.stop(0).running.await.unwrap().unwrap();
    for name in &names {
        fleet.write(name, "changed back").await;
    }
    let waited = fleet.reconciled().await;
    assert!(waited <= 5 * SECOND, "{waited:?}");
    assert_eq!(fleet.shares(), [20]);
    fleet.check();
}

#[tokio::test]
async fn shards_and_leader_election_exclude_each_other() {
    let server = rbuilder::fake::ApiServer::new();
    let args = ManagerArgs {
        leader_elect: true,
        shards: Some(Sharding::auto()),
        ..ManagerArgs::for_tests()
    };
    let started = Manager::with_client("both", server.client(), args).start_until(std::future::pending());
    let error = started.await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`--shards` and `--leader-elect` exclude each other: with shards, every replica works; remove `--leader-elect`"
    );
}
