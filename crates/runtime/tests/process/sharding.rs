//! Replicas that share the objects in a namespace. Unlike in tests with the fake API server,
//! they're separate processes, each with a thread for its ring.

use std::collections::BTreeSet;

use kube::api::ListParams;

use super::*;
use crate::operator::ID;
use crate::tls_client::{ask, review_of_a_config_map, write_certificate};

/// Time for which objects of a suspended replica may have to wait, i.e. 20 s plus a margin.
const TAKEN_OVER: Duration = Duration::from_secs(40);
/// Time for a replica to exit after its claims were removed.
const GONE: Duration = Duration::from_secs(5);
const OBJECTS: usize = 24;

const FLAGS: [&str; 2] = ["--shards=auto", "--health-probe-bind-address=0"];

/// Creates objects, and counts how many of them each replica reconciles.
async fn shares(place: &Place, batch: &str, replicas: &[&Program]) -> Vec<usize> {
    let names: Vec<String> = (0..OBJECTS).map(|number| format!("{batch}-{number}")).collect();
    for name in &names {
        place.create(name, &[]).await;
    }
    let mut shares = vec![0; replicas.len()];
    for name in &names {
        eventually(TAKEN_OVER, || async {
            let logs = || replicas.iter().map(|replica| replica.log()).collect::<String>();
            place.mark(name, ENDED).await.map(drop).ok_or_else(logs)
        })
        .await;
        let (started, ended) = (place.mark(name, STARTED).await, place.mark(name, ENDED).await);
        assert_eq!(started, ended, "{name} has one replica");
        let replica = replicas.iter().position(|replica| Some(replica.id()) == ended);
        shares[replica.unwrap_or_else(|| panic!("{name} was reconciled by {ended:?}"))] += 1;
    }
    shares
}

#[rbuilder::envtest::test]
async fn replicas_share_objects_and_take_over_from_each_other() {
    let place = Place::new().await;
    let mut first = place.start(&FLAGS);
    first.logs("shards of this replica").await;
    let second = place.start(&FLAGS);
    second.logs("shards of this replica").await;
    // The final share, because the first replica gives up its ranges in a single write.
    let both = shares(&place, "both", &[&first, &second]).await;
    assert!(both.iter().all(|share| *share > 3), "{both:?}");

    first.signal("TERM");
    assert_eq!(first.ended(SOON).await, Ended::with(0), "{}", first.log());
    assert_eq!(shares(&place, "second", &[&second]).await, [OBJECTS]);

    let mut third = place.start(&FLAGS);
    third.logs("shards of this replica").await;
    third.signal("STOP");
    assert_eq!(shares(&place, "stopped", &[&second]).await, [OBJECTS]);
    third.signal("CONT");
    assert_eq!(third.ended(GONE).await, Ended::with(1), "{}", third.log());
    third.logs("shards lost").await;
}

/// Starts three replicas that share the objects.
async fn three(place: &Place) -> [Program; 3] {
    // The others need not wait for a lease duration.
    let first = place.start(&FLAGS);
    first.logs("shards of this replica").await;
    let others = [place.start(&FLAGS), place.start(&FLAGS)];
    for replica in &others {
        replica.logs("shards of this replica").await;
    }
    let [second, third] = others;
    [first, second, third]
}

/// Anybody may remove a label, e.g. with `kubectl label lease <id>-shards rbuilder.dev/shards-`.
#[rbuilder::envtest::test]
async fn label_of_the_claims_makes_no_difference() {
    let place = Place::new().await;
    let [killed, mut stopped, last] = three(&place).await;
    let unlabel = Patch::Merge(json!({ "metadata": { "labels": { "rbuilder.dev/shards": null } } }));
    let claims = format!("{LEASE}-shards");
    place
        .leases()
        .patch(&claims, &PatchParams::default(), &unlabel)
        .await
        .unwrap();
    killed.signal("KILL");
    eventually(SOON, || async {
        let log = stopped.log() + &last.log();
        let lost = "the claims have lost the label rbuilder.dev/shards, restoring it";
        log.contains(lost).then_some(()).ok_or(log)
    })
    .await;
    shares(&place, "killed", &[&stopped, &last]).await;
    stopped.signal("TERM");
    assert_eq!(stopped.ended(SOON).await, Ended::with(0), "{}", stopped.log());
    assert_eq!(shares(&place, "stopped", &[&last]).await, [OBJECTS]);
    let lease = place.leases().get(&claims).await.unwrap();
    assert!(lease.labels().contains_key("rbuilder.dev/shards"), "{lease:?}");
}

/// E.g. with `kubectl edit`. Without a wait, the receiver would work on the objects of the other
/// replica until that replica reads the claims.
#[rbuilder::envtest::test]
async fn edited_claims_are_noticed_by_their_field_manager() {
    let place = Place::new().await;
    let mut replicas = three(&place).await;
    let claims = format!("{LEASE}-shards");
    let before = place.leases().get(&claims).await.unwrap();
    let text = before.annotations()["rbuilder.dev/shard-claims"].clone();
    let mut edited: Value = serde_json::from_str(&text).unwrap();
    let receiver = edited["claims"][0]["holder"].clone();
    for arc in edited["claims"].as_array_mut().unwrap() {
        arc["holder"] = receiver.clone();
    }
    edited["generation"] = json!(edited["generation"].as_u64().unwrap() + 1);
    edited["note"] = json!("a field of a later version");
    let patch = Patch::Merge(json!({ "metadata": {
        "annotations": { "rbuilder.dev/shard-claims": edited.to_string() },
    } }));
    let kubectl = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    let stored = place.leases().patch(&claims, &kubectl, &patch).await.unwrap();
    eventually(SOON, || async {
        let log: String = replicas.iter().map(Program::log).collect();
        let noticed = log.contains("edited or restored") && log.contains("kubectl-edit");
        noticed.then_some(()).ok_or(log)
    })
    .await;
    let mut left = Vec::new();
    for replica in &mut replicas {
        tokio::time::sleep(Duration::from_secs(2)).await;
        if replica.is_running() {
            left.push(&*replica);
        } else {
            replica
                .logs("another replica has taken a range of this one")
                .await;
        }
    }
    assert_eq!(left.len(), 1, "the others have lost their ranges");
    assert_eq!(shares(&place, "edited", &left).await, [OBJECTS]);
    let after = place.leases().get(&claims).await.unwrap();
    assert_eq!(after.uid(), stored.uid(), "nobody has deleted the Lease");
    let text = &after.annotations()["rbuilder.dev/shard-claims"];
    assert!(text.contains("a field of a later version"), "{text}");
}

/// As in an update with `RollingUpdate`, or its rollback.
#[rbuilder::envtest::test]
async fn shards_and_a_leader_wait_for_each_other() {
    const ELECTS: [&str; 2] = ["--leader-elect", "--health-probe-bind-address=0"];
    const TO_LEADER: &str = "replicas with `--shards` are at work, waiting until all of them have stopped";
    let place = Place::new().await;
    let mut leader = place.start(&ELECTS);
    leader.logs("successfully acquired lease").await;
    let (mut first, mut second) = (place.start(&FLAGS), place.start(&FLAGS));
    for replica in [&first, &second] {
        replica
            .logs("a replica with `--leader-elect` is at work, waiting until it has stopped")
            .await;
    }
    assert_eq!(
        shares(&place, "leader", &[&leader, &first, &second]).await,
        [OBJECTS, 0, 0]
    );

    leader.signal("TERM");
    assert_eq!(leader.ended(SOON).await, Ended::with(0), "{}", leader.log());
    // While they waited, nobody created the claims. Each of them waits for a lease duration in case
    // another one remembers deleted claims, and then for another one, because the claims are new.
    for replica in [&first, &second] {
        replica.logs_within(2 * SOON, "shards of this replica").await;
    }
    let mut leader = place.start(&ELECTS);
    leader.logs(TO_LEADER).await;
    let shared = shares(&place, "shards", &[&leader, &first, &second]).await;
    assert_eq!((shared[0], shared[1] + shared[2]), (0, OBJECTS));

    first.signal("TERM");
    assert_eq!(first.ended(SOON).await, Ended::with(0), "{}", first.log());
    assert_eq!(shares(&place, "rest", &[&leader, &second]).await, [0, OBJECTS]);
    second.signal("TERM");
    assert_eq!(second.ended(SOON).await, Ended::with(0), "{}", second.log());
    second.logs("released lease").await;
    assert_eq!(shares(&place, "back", &[&leader]).await, [OBJECTS]);
    leader.signal("TERM");
    assert_eq!(leader.ended(SOON).await, Ended::with(0), "{}", leader.log());
}

/// The API server calls the webhooks as soon as it is back, so they must not be gone.
#[rbuilder::envtest::test]
async fn replicas_outlive_an_outage_of_the_api_server() {
    let env = Environment::builder().start().await.unwrap();
    let place = Place::at(env.clone()).await;
    let mut replicas = three(&place).await;
    shares(&place, "before", &replicas.each_ref()).await;
    env.pause(rbuilder::envtest::Server::ApiServer).unwrap();
    tokio::time::sleep(Duration::from_secs(12)).await;
    for replica in &replicas {
        replica
            .logs("stopped all reconciles of this replica, retrying")
            .await;
    }
    env.resume(rbuilder::envtest::Server::ApiServer).unwrap();
    for replica in &replicas {
        replica.logs("continuing with the shards of this replica").await;
    }
    let after = shares(&place, "after", &replicas.each_ref()).await;
    assert!(after.iter().all(|share| *share > 0), "{after:?}");
    for replica in &mut replicas {
        assert!(replica.is_running(), "{}", replica.log());
    }
}

/// The API server calls a Service, so a call may end up at any of the replicas.
#[rbuilder::envtest::test]
async fn replica_without_ranges_serves_webhooks() {
    let place = Place::new().await;
    let folder = tempfile::tempdir().unwrap();
    let trusted = write_certificate(folder.path());
    let reserved: [_; 2] = std::array::from_fn(|_| ReservedPort::reserve().unwrap());
    let ports = reserved.each_ref().map(ReservedPort::number);
    let start = |port: u16| {
        place.start(&[
            "--shards=1",
            "--health-probe-bind-address=0",
            &format!("--webhook-port={port}"),
            &format!("--webhook-cert-path={}", folder.path().display()),
        ])
    };
    let is_reviewed = |port: u16, uid: &'static str| {
        let trusted = &trusted;
        eventually(SOON, move || async move {
            let review = review_of_a_config_map(uid).to_string();
            let json = [("Content-Type", "application/json")];
            let response = ask(port, trusted, "POST /allow", &json, &review).await;
            let response = response.map_err(|error| error.to_string())?;
            let is_allowed =
                response.contains(&format!(r#""uid":"{uid}""#)) && response.contains(r#""allowed":true"#);
            is_allowed.then_some(()).ok_or(response)
        })
    };
    let mut first = start(ports[0]);
    first.logs("shards of this replica").await;
    let second = start(ports[1]);
    is_reviewed(ports[0], "owner").await;
    is_reviewed(ports[1], "other").await;
    assert_eq!(shares(&place, "first", &[&first, &second]).await, [OBJECTS, 0]);

    first.signal("TERM");
    assert_eq!(first.ended(SOON).await, Ended::with(0), "{}", first.log());
    is_reviewed(ports[1], "owner-now").await;
    assert_eq!(shares(&place, "second", &[&second]).await, [OBJECTS]);
}

/// A release of an operator, with two replicas and its own namespace.
struct Release {
    place: Place,
    /// Namespace of the Leases.
    leases: String,
    id: &'static str,
    replicas: Vec<Program>,
}

impl Release {
    fn install(place: Place, leases: &str, id: &'static str) -> Self {
        let mut release = Self {
            place,
            leases: leases.to_owned(),
            id,
            replicas: Vec::new(),
        };
        release.replicas = (0..2).map(|_| release.start()).collect();
        release
    }

    fn start(&self) -> Program {
        let namespaces = [
            format!("--watch-namespace={}", self.place.namespace),
            format!("--leader-election-namespace={}", self.leases),
        ];
        let flags = FLAGS.map(str::to_owned).into_iter().chain(namespaces).collect();
        Program::start_with(
            self.place.env.kubeconfig_path(),
            flags,
            [(ID, self.id.to_owned())],
        )
    }

    /// Returns the claims, and the identities from the Leases of all replicas.
    async fn ring(&self) -> (BTreeSet<String>, Value) {
        let leases: Api<Lease> = Api::namespaced(self.place.env.client(), &self.leases);
        let own = ListParams::default().labels(&format!("rbuilder.dev/shards={}", self.id));
        let mut claims = Value::Null;
        let mut replicas = BTreeSet::new();
        for lease in leases.list(&own).await.unwrap().items {
            match lease.annotations().get("rbuilder.dev/shard-claims") {
                Some(text) => claims = serde_json::from_str(text).unwrap(),
                None => replicas.extend(lease.spec.unwrap_or_default().holder_identity),
            }
        }
        (replicas, claims)
    }

    /// Waits until exactly the replicas own all ranges. Returns their identities.
    async fn settled(&self) -> BTreeSet<String> {
        eventually(Duration::from_secs(60), || async {
            let (replicas, claims) = self.ring().await;
            let arcs = claims["claims"].as_array().cloned().unwrap_or_default();
            let size = |arc: &Value| arc["last"].as_u64().unwrap() - arc["first"].as_u64().unwrap() + 1;
            let owned: u64 = arcs.iter().map(size).sum();
            let owners: BTreeSet<String> = arcs
                .iter()
                .map(|arc| arc["holder"].as_str().unwrap().to_owned())
                .collect();
            match owned == 256 && replicas.len() == 2 && owners == replicas {
                true => Ok(replicas),
                false => Err(format!("{replicas:?} have {claims}")),
            }
        })
        .await
    }
}

/// Asserts that each release reconciles exactly its own objects.
async fn check_independent(releases: [Release; 2]) {
    let [one, other] = &releases;
    let (ours, theirs) = (one.settled().await, other.settled().await);
    assert!(ours.is_disjoint(&theirs), "{ours:?} {theirs:?}");
    for release in &releases {
        let replicas: Vec<&Program> = release.replicas.iter().collect();
        let shares = shares(&release.place, "object", &replicas).await;
        assert!(shares.iter().all(|share| *share > 3), "{shares:?}");
    }
    let [mut one, other] = releases;
    // Ranges that leave one ring must not end up in the other.
    one.replicas.clear();
    assert_eq!(other.settled().await, theirs);
}

/// E.g. because a chart is installed twice.
#[rbuilder::envtest::test]
async fn releases_in_two_namespaces_share_nothing() {
    let releases = [Place::new().await, Place::new().await].map(|place| {
        let namespace = place.namespace.clone();
        Release::install(place, &namespace, LEASE)
    });
    check_independent(releases).await;
}

#[rbuilder::envtest::test]
async fn operators_in_one_namespace_share_nothing() {
    let (one, other) = (Place::new().await, Place::new().await);
    let leases = one.namespace.clone();
    check_independent([
        Release::install(one, &leases, LEASE),
        Release::install(other, &leases, "other.example.com"),
    ])
    .await;
}
