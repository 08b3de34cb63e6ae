//! Guarantee 9: leader election.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::ResourceExt;
use kube::api::{PostParams, Resource};
use kube::core::ObjectMeta;
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, ManagerError, Result};

use crate::support::{Memo, Operator, Place, SOON, Seen, memo};

const LEASE: &str = "guarantees.example.com";

async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&memo.name_any());
    Ok(Action::await_change())
}

fn elected(place: &Place, seen: &Seen) -> Manager {
    let args = ManagerArgs {
        leader_elect: true,
        leader_election_namespace: Some(place.namespace.clone()),
        watch_namespace: place.namespace.clone(),
        ..ManagerArgs::for_tests()
    };
    let manager = Manager::with_config(LEASE, place.env.real().config(), args).unwrap();
    manager.controller(Controller::new(look, seen.clone()))
}

async fn lease(place: &Place) -> Lease {
    place.api::<Lease>().get(LEASE).await.unwrap()
}

/// A candidate that is stopped withdraws: it neither takes nor writes the lease during shutdown.
#[rbuilder::envtest::test]
async fn a_manager_that_does_not_lead_stops_without_electing(env: Environment) {
    let place = Place::new(env).await;
    place.create(memo("led", "")).await;
    let held = Lease {
        metadata: ObjectMeta {
            name: Some(LEASE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some("another".to_owned()),
            lease_duration_seconds: Some(2),
            ..LeaseSpec::default()
        }),
    };
    let leases = place.api::<Lease>();
    let held = leases.create(&PostParams::default(), &held).await.unwrap();
    let seen = Seen::default();
    let manager = elected(&place, &seen);
    let metrics = manager.metrics().clone();
    let operator = Operator::start(manager);
    let reads = format!(
        "rest_client_requests_total{{code=\"200\",host=\"{}\",method=\"GET\"}}",
        place.env.real().config().cluster_url.authority().unwrap()
    );
    // It has read the lease when its caches are synced and one more request has been answered.
    eventually(SOON, || async { metrics.text().contains(&reads) }).await;
    operator.stop().await.unwrap();
    // By now any remaining candidate would have taken it.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(
        lease(&place).await.meta().resource_version,
        held.metadata.resource_version
    );
    assert_eq!(seen.count("led"), 0);
}

/// The durations are configurable; a released lease is taken within a retry period and its jitter.
#[rbuilder::envtest::test]
async fn a_released_lease_is_taken_within_a_retry_period_and_its_jitter(env: Environment) {
    let place = Place::new(env).await;
    place.create(memo("led", "")).await;
    let (first, second) = (Seen::default(), Seen::default());
    let period = Duration::from_millis(500);
    let manager = |seen: &Seen| {
        elected(&place, seen)
            .lease_duration(Duration::from_secs(60))
            .renew_deadline(Duration::from_secs(40))
            .retry_period(period)
    };
    let leading = manager(&first);
    let metrics = leading.metrics().clone();
    metrics.measure_requests();
    let leader = Operator::start(leading);
    eventually(SOON, || async { first.count("led") == 1 }).await;
    let spec = lease(&place).await.spec.unwrap();
    assert_eq!(spec.lease_duration_seconds, Some(60));
    let holder = spec.holder_identity.unwrap();

    let standby = Operator::start(manager(&second));
    // Renewals follow each other at the retry period, and are counted like other requests.
    eventually(SOON, || async {
        let text = metrics.text();
        let renewed = text.lines().find_map(|line| {
            let (_, count) = line
                .strip_prefix("rest_client_request_size_bytes_count")?
                .split_once("verb=\"PUT\"} ")?;
            count.parse::<u32>().ok()
        });
        renewed.is_some_and(|renewed| renewed >= 3)
    })
    .await;
    assert_eq!(
        lease(&place).await.spec.unwrap().holder_identity,
        Some(holder.clone())
    );
    assert_eq!(second.count("led"), 0);

    leader.stop().await.unwrap();
    let released = lease(&place).await.spec.unwrap().holder_identity;
    assert_ne!(released, Some(holder));
    // A lease that was not released would be respected for a minute.
    eventually(SOON, || async { second.count("led") == 1 }).await;
    assert_eq!(first.count("led"), 1);
    standby.stop().await.unwrap();
    assert_eq!(
        lease(&place).await.spec.unwrap().holder_identity.as_deref(),
        Some("")
    );
}

#[rbuilder::envtest::test]
async fn lease_times_that_do_not_fit_together_are_refused(env: Environment) {
    let place = Place::new(env).await;
    let manager = elected(&place, &Seen::default()).renew_deadline(Duration::from_secs(15));
    let error = manager.start_until(std::future::pending()).await.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(ManagerError::LeaseTimes(_))));
    assert_eq!(
        error.to_string(),
        "invalid leader election settings: lease duration must be greater than the renew deadline of 15s, found 15s"
    );
}
