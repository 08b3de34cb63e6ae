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
