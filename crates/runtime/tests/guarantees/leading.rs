//! Guarantee 9: leader election.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::ResourceExt;
use kube::api::{ListParams, PostParams, Resource};
use kube::core::ObjectMeta;
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, ManagerError, Result};

use crate::support::{Memo, Operator, Place, SOON, Seen, memo};

const LEASE: &str = "guarantees.example.com";

async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&memo.name_any());
    Ok(Action::await_change())
}

fn args(place: &Place) -> ManagerArgs {
    ManagerArgs {
        leader_elect: true,
        leader_election_namespace: Some(place.namespace.clone()),
        watch_namespace: place.namespace.clone(),
        ..ManagerArgs::for_tests()
    }
}

fn elected(place: &Place, seen: &Seen) -> Manager {
    let manager = Manager::with_config(LEASE, place.env.real().config(), args(place)).unwrap();
    manager.controller(Controller::new(look, seen.clone()))
}

async fn lease(place: &Place) -> Lease {
    place.api::<Lease>().get(LEASE).await.unwrap()
}

/// On shutdown, a candidate neither acquires nor writes the lease.
#[rbuilder::envtest::test]
async fn stopped_candidate_does_not_acquire_the_lease(env: Environment) {
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
    // Once the caches have synced and there was another response, the lease was read.
    eventually(SOON, || async { metrics.text().contains(&reads) }).await;
    operator.stop().await.unwrap();
    // A candidate would have acquired the lease by now.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(
        lease(&place).await.meta().resource_version,
        held.metadata.resource_version
    );
    assert_eq!(seen.count("led"), 0);
}

/// The durations can be configured. A released lease is acquired within a retry period plus jitter.
#[rbuilder::envtest::test]
async fn released_lease_is_acquired_within_a_retry_period_and_jitter(env: Environment) {
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
    // There's one renewal per retry period, which shows up in the metrics like any other request.
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
    // Without the release, the standby would have to wait for a minute.
    eventually(SOON, || async { second.count("led") == 1 }).await;
    assert_eq!(first.count("led"), 1);
    standby.stop().await.unwrap();
    assert_eq!(
        lease(&place).await.spec.unwrap().holder_identity.as_deref(),
        Some("")
    );
}

#[rbuilder::envtest::test]
async fn inconsistent_lease_durations_are_refused(env: Environment) {
    let place = Place::new(env).await;
    let manager = elected(&place, &Seen::default()).renew_deadline(Duration::from_secs(15));
    let error = manager.start_until(std::future::pending()).await.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(ManagerError::LeaseTimes(_))));
    assert_eq!(
        error.to_string(),
        "invalid leader election settings: lease duration must be greater than the renew deadline of 15s, found 15s"
    );
}

/// The scaffolded role suffices. Apart from that, the manager may only watch.
#[rbuilder::envtest::test]
async fn scaffolded_role_suffices_for_leader_election(env: Environment) {
    let place = Place::new(env).await;
    place.create(memo("led", "")).await;
    let template =
        include_str!("../../../../templates/files/init/config/rbac/leader_election_role.yaml.tera");
    let (_, rules) = template.split_once("\nrules:\n").unwrap();
    let mut rules: Vec<PolicyRule> = serde_saphyr::from_str(rules).unwrap();
    let strings = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    rules.push(PolicyRule {
        api_groups: strings(&["controllers.example.com"]),
        resources: strings(&["memos"]),
        verbs: ["list", "watch"].map(str::to_owned).to_vec(),
        ..PolicyRule::default()
    });
    let user = format!("manager-of-{}", place.namespace);
    let metadata = ObjectMeta {
        name: Some(user.clone()),
        ..ObjectMeta::default()
    };
    let group = "rbac.authorization.k8s.io".to_owned();
    let binding = RoleBinding {
        metadata: metadata.clone(),
        role_ref: RoleRef {
            api_group: Some(group.clone()),
            kind: "Role".to_owned(),
            name: user.clone(),
        },
        subjects: Some(vec![Subject {
            api_group: Some(group),
            kind: "User".to_owned(),
            name: user.clone(),
            namespace: None,
        }]),
    };
    let role = Role {
        metadata,
        rules: Some(rules),
    };
    let params = PostParams::default();
    place.api::<Role>().create(&params, &role).await.unwrap();
    let bindings = place.api::<RoleBinding>();
    bindings.create(&params, &binding).await.unwrap();

    let seen = Seen::default();
    let config = place.env.real().user(&user, &[]).unwrap().config();
    let manager = Manager::with_config(LEASE, config, args(&place)).unwrap();
    let operator = Operator::start(manager.controller(Controller::new(look, seen.clone())));
    eventually(SOON, || async { seen.count("led") > 0 }).await;
    let events = place.api::<Event>();
    eventually(SOON, || async {
        let events = events.list(&ListParams::default()).await.unwrap();
        events
            .items
            .iter()
            .any(|event| event.reason.as_deref() == Some("LeaderElection"))
    })
    .await;
    operator.stop().await.unwrap();
    let holder = lease(&place).await.spec.unwrap().holder_identity;
    assert_eq!(holder.as_deref(), Some(""), "it has released the lease");
}
