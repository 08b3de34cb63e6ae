use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::api::ListParams;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::*;
use crate::client::ClientSettings;

const SECOND: Duration = Duration::from_secs(1);

/// Stores a single lease, with optimistic concurrency.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    lease: Option<Value>,
    version: u64,
    /// Never responds, as if the network were broken.
    silent: bool,
    /// Number of writes before which the lease is modified concurrently.
    annotations: usize,
    /// If set, each response needs a permit.
    responses: Option<Arc<Semaphore>>,
    /// Notes of all recorded events.
    events: Vec<String>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| {
            let server = server.clone();
            async move { Ok::<_, std::convert::Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    fn elector(&self, identity: &str) -> Elector {
        let election = Election {
            identity: identity.to_owned(),
            ..Election::new("operator", "default", LeaseTimes::default())
        };
        Elector::with_client(election, self.client(), Fence::new("operator"))
    }

    async fn lead(&self, identity: &str) -> Leadership {
        lead(self.elector(identity)).await
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        if self.0.lock().unwrap().silent {
            std::future::pending::<()>().await;
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let (status, value) = match parts.uri.path() {
            path if path.contains("/leases") => self.lease(&parts.method, serde_json::from_slice(&body).ok()),
            _ => {
                let event: Value = serde_json::from_slice(&body).unwrap();
                let note = event["note"].as_str().unwrap().to_owned();
                self.0.lock().unwrap().events.push(note);
                (StatusCode::CREATED, event)
            }
        };
        let responses = self.0.lock().unwrap().responses.clone();
        if let Some(responses) = responses {
            responses.acquire().await.unwrap().forget();
        }
        Response::builder()
            .status(status)
            .body(Body::from(value.to_string().into_bytes()))
            .unwrap()
    }

    fn lease(&self, method: &Method, sent: Option<Value>) -> (StatusCode, Value) {
        let mut stored = self.0.lock().unwrap();
        if method == Method::PUT && stored.annotations > 0 {
            stored.annotations -= 1;
            let mut lease = stored.lease.clone().unwrap();
            lease["metadata"]["annotations"] = json!({ "count": stored.annotations.to_string() });
            stored.put(lease);
        }
        let refuse = |status: StatusCode, reason: &str| {
            let code = status.as_u16();
            (
                status,
                json!({ "kind": "Status", "status": "Failure", "message": reason, "reason": reason, "code": code }),
            )
        };
        let known = stored
            .lease
            .as_ref()
            .map(|lease| lease["metadata"]["resourceVersion"].clone());
        match (method, sent, known) {
            (&Method::GET, _, Some(_)) => (StatusCode::OK, stored.lease.clone().unwrap()),
            (&Method::GET, _, None) => refuse(StatusCode::NOT_FOUND, "NotFound"),
            (&Method::POST, Some(_), Some(_)) => refuse(StatusCode::CONFLICT, "AlreadyExists"),
            (&Method::PUT, Some(lease), Some(known)) if lease["metadata"]["resourceVersion"] != known => {
                refuse(StatusCode::CONFLICT, "Conflict")
            }
            (_, Some(lease), _) => (StatusCode::OK, stored.put(lease)),
            (_, None, _) => refuse(StatusCode::BAD_REQUEST, "BadRequest"),
        }
    }

    /// Another process, whose clock is off by years, renews the lease.
    fn held_by(&self, holder: &str) {
        let mut stored = self.0.lock().unwrap();
        let now = stored.version;
        stored.put(json!({
            "metadata": { "name": "operator", "namespace": "default", "uid": "u" },
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": 15,
                "leaseTransitions": 3,
                "acquireTime": "2001-01-01T00:00:00.000000Z",
                "renewTime": format!("2001-01-01T00:00:00.{now:06}Z"),
            },
        }));
    }

    fn delete(&self) {
        self.0.lock().unwrap().lease = None;
    }

    fn silence(&self) {
        self.0.lock().unwrap().silent = true;
    }

    /// From now on, requests are processed immediately, but each response needs a permit.
    fn hold_responses(&self) -> Arc<Semaphore> {
        let responses = Arc::new(Semaphore::new(0));
        self.0.lock().unwrap().responses = Some(Arc::clone(&responses));
        responses
    }

    fn annotate_before_writes(&self, count: usize) {
        self.0.lock().unwrap().annotations = count;
    }

    fn events(&self) -> Vec<String> {
        self.0.lock().unwrap().events.clone()
    }

    fn spec(&self) -> Value {
        self.0.lock().unwrap().lease.clone().unwrap_or_default()["spec"].clone()
    }
}

impl Stored {
    fn put(&mut self, mut lease: Value) -> Value {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        lease["metadata"]["name"] = "operator".into();
        self.lease = Some(lease.clone());
        lease
    }
}

async fn lead(elector: Elector) -> Leadership {
    let leadership = Leadership::start(elector);
    leadership.acquired().await.unwrap();
    leadership
}

/// Asserts how many seconds a future takes.
async fn takes<T>(from: u32, to: u32, future: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let value = timeout(to * SECOND, future)
        .await
        .expect("the future resolves in time");
    assert!(
        started.elapsed() >= from * SECOND,
        "it took only {:?}",
        started.elapsed()
    );
    value
}

#[tokio::test(start_paused = true)]
async fn missing_lease_is_created_at_once() {
    let server = Server::default();
    let _leading = takes(0, 1, server.lead("a")).await;
    let spec = server.spec();
    assert_eq!(
        (
            &spec["holderIdentity"],
            &spec["leaseDurationSeconds"],
            &spec["leaseTransitions"]
        ),
        (&json!("a"), &json!(15), &json!(0))
    );
}

#[tokio::test(start_paused = true)]
async fn unrenewed_lease_is_taken_when_it_expires_on_our_own_clock() {
    let server = Server::default();
    server.held_by("old");
    // At most one (jittered) retry period after the lease expires.
    let _leading = takes(15, 20, server.lead("a")).await;
    assert_eq!(
        (
            &server.spec()["holderIdentity"],
            &server.spec()["leaseTransitions"]
        ),
        (&json!("a"), &json!(4))
    );
}

#[tokio::test(start_paused = true)]
async fn deleted_lease_is_respected_until_it_would_have_expired() {
    let server = Server::default();
    server.held_by("a");
    let candidate = tokio::spawn(lead(server.elector("b")));
    tokio::time::sleep(SECOND).await;
    server.delete();
    let leadership = takes(13, 19, candidate).await.unwrap();
    assert_eq!(server.spec()["holderIdentity"], "b");
    drop(leadership);
}

#[tokio::test(start_paused = true)]
async fn leader_recreates_a_deleted_lease() {
    let server = Server::default();
    let leadership = server.lead("a").await;
    server.delete();
    tokio::time::sleep(3 * SECOND).await;
    assert_eq!(server.spec()["holderIdentity"], "a");
    assert!(timeout(30 * SECOND, leadership.lost()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn renewing_holder_keeps_its_lease_whatever_its_clock_shows() {
    let server = Server::default();
    server.held_by("old");
    let renewing = async {
        loop {
            sleep(10 * SECOND).await;
            server.held_by("old");
        }
    };
    tokio::select! {
        _ = timeout(200 * SECOND, renewing) => {}
        _ = server.lead("a") => panic!("took a lease that is being renewed"),
    }
}

#[tokio::test(start_paused = true)]
async fn only_one_of_many_candidates_leads() {
    let server = Server::default();
    server.held_by("old");
    let (led, mut leaders) = tokio::sync::mpsc::channel(10);
    for n in 0..10 {
        let (led, elector) = (led.clone(), server.elector(&format!("candidate {n}")));
        tokio::spawn(async move {
            let leading = lead(elector).await;
            led.send(leading).await.unwrap();
        });
    }
    let _leader = takes(15, 20, leaders.recv()).await.unwrap();
    assert!(
        timeout(100 * SECOND, leaders.recv()).await.is_err(),
        "a second one leads"
    );
}

#[tokio::test(start_paused = true)]
async fn leader_without_responses_gives_up_before_its_lease_expires() {
    let server = Server::default();
    let leading = server.lead("a").await;
    sleep(60 * SECOND).await;
    assert_eq!(server.spec()["holderIdentity"], "a");
    server.silence();
    // The last renewal was up to one retry period ago.
    let lost = takes(7, 11, leading.lost()).await;
    let LeadershipLost::RenewDeadline { deadline, .. } = &lost else {
        panic!("{lost}")
    };
    assert_eq!(*deadline, 10 * SECOND);
    assert!(
        lost.to_string()
            .starts_with("failed to renew lease within 10s; last error: request timed out"),
        "{lost}"
    );
}

#[tokio::test(start_paused = true)]
async fn leader_loses_at_the_next_renewal_if_its_lease_is_taken() {
    let server = Server::default();
    let leading = server.lead("a").await;
    server.held_by("thief");
    let expected = LeadershipLost::HeldByOther("thief".to_owned());
    assert_eq!(takes(0, 3, leading.lost()).await, expected);
    leading.release().await;
    assert_eq!(
        server.spec()["holderIdentity"],
        "thief",
        "the lease of another process is not released"
    );
}

#[tokio::test(start_paused = true)]
async fn released_lease_is_free_at_once() {
    let server = Server::default();
    let leading = server.lead("a").await;
    let lost = leading.lost();
    leading.release().await;
    assert_eq!(
        (
            &server.spec()["holderIdentity"],
            &server.spec()["leaseDurationSeconds"]
        ),
        (&json!(""), &json!(1))
    );
    assert!(
        timeout(100 * SECOND, lost).await.is_err(),
        "a released lease is not lost"
    );
    let _leading = takes(0, 1, server.lead("b")).await;
    assert_eq!(server.spec()["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn lease_is_released_despite_concurrent_changes() {
    let server = Server::default();
    let leading = server.lead("a").await;
    server.annotate_before_writes(3);
    leading.release().await;
    assert_eq!(server.spec()["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn losing_and_releasing_the_lease_record_events() {
    let server = Server::default();
    let leading = server.lead("a").await;
    sleep(SECOND).await;
    assert_eq!(server.events(), ["a became leader"]);
    leading.release().await;
    let leading = server.lead("b").await;
    server.held_by("thief");
    leading.lost().await;
    leading.finish_loss().await;
    assert_eq!(
        server.events(),
        [
            "a became leader",
            "a stopped leading",
            "b became leader",
            "b stopped leading"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn withdrawing_candidate_writes_nothing() {
    let server = Server::default();
    server.held_by("old");
    let before = server.spec();
    let candidate = Leadership::start(server.elector("a"));
    sleep(SECOND).await;
    takes(0, 1, candidate.release()).await;
    sleep(60 * SECOND).await;
    assert_eq!(server.spec(), before);
    assert_eq!(server.events(), Vec::<String>::new());
}

/// The fence must be open while the lease is held, and closed by the renew deadline, measured from
/// when the last renewal was sent.
#[tokio::test(start_paused = true)]
async fn fence_follows_the_lease() {
    let server = Server::default();
    let elector = server.elector("a");
    let fence = elector.fence.clone();
    assert!(fence.check().is_err());
    let leading = lead(elector).await;
    for _ in 0..60 {
        sleep(SECOND).await;
        assert_eq!(fence.check(), Ok(()));
    }
    server.silence();
    sleep(7 * SECOND).await;
    assert_eq!(fence.check(), Ok(()));
    sleep(3 * SECOND).await;
    assert!(fence.check().is_err());
    leading.lost().await;
    assert!(fence.is_lost());

    let stolen = Server::default();
    let elector = stolen.elector("b");
    let fence = elector.fence.clone();
    let leading = lead(elector).await;
    stolen.held_by("thief");
    leading.lost().await;
    assert!(fence.is_lost(), "before anybody hears of the loss");
}

#[tokio::test(start_paused = true)]
async fn fence_closes_before_the_lease_is_released_or_dropped() {
    let server = Server::default();
    for drops in [false, true] {
        let elector = server.elector("a");
        let fence = elector.fence.clone();
        let leading = lead(elector).await;
        assert_eq!(fence.check(), Ok(()));
        match drops {
            true => drop(leading),
            false => leading.release().await,
        }
        assert!(fence.check().is_err());
        assert!(!fence.is_lost());
    }
}

/// The API server stores the renewal, but its response arrives between the old and the new
/// deadline, e.g. because of a SIGSTOP. The leader must give up, since a worker may already have
/// exited.
#[tokio::test(start_paused = true)]
async fn response_after_the_deadline_does_not_renew() {
    let server = Server::default();
    let leading = server.lead("a").await;
    let mut lost = std::pin::pin!(leading.lost());
    // The first renewal was sent at 2 s and is valid until 12 s. Wait for the second one, sent at 4
    // s.
    assert!(timeout(3 * SECOND, &mut lost).await.is_err());
    let responses = server.hold_responses();
    assert!(timeout(2 * SECOND, &mut lost).await.is_err());
    responses.add_permits(10);
    // Don't poll the elector, as if the process were suspended.
    tokio::time::advance(8 * SECOND).await;
    let lost = takes(0, 1, lost).await;
    assert!(matches!(lost, LeadershipLost::RenewDeadline { .. }), "{lost}");
}

/// The wall clocks of both processes jump by years on each read.
#[tokio::test(start_paused = true)]
async fn wall_clock_jumps_do_not_matter() {
    fn jumping() -> Timestamp {
        static READINGS: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(0);
        let reading = READINGS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let years = [0, 10, -10, 25, -25][usize::try_from(reading % 5).unwrap()];
        Timestamp::from_second(1_800_000_000 + years * 365 * 86_400 + reading).unwrap()
    }
    let server = Server::default();
    let jumpy = |identity: &str| Elector {
        wall_clock: jumping,
        ..server.elector(identity)
    };
    let elector = jumpy("a");
    let fence = elector.fence.clone();
    let leading = lead(elector).await;
    let mut lost = std::pin::pin!(leading.lost());
    let candidate = tokio::spawn(lead(jumpy("b")));
    let mut times = std::collections::BTreeSet::new();
    for _ in 0..200 {
        assert!(timeout(SECOND, &mut lost).await.is_err());
        assert_eq!(fence.check(), Ok(()));
        times.insert(server.spec()["renewTime"].as_str().unwrap()[..4].to_owned());
    }
    assert!(times.len() >= 5, "the clock has jumped: {times:?}");
    assert!(!candidate.is_finished());
    leading.release().await;
    takes(0, 5, candidate).await.unwrap();
}

#[test]
fn identities_on_the_same_host_differ() {
    assert_ne!(new_identity(), new_identity());
}

#[::rbuilder::envtest::test]
async fn on_a_real_server_the_second_candidate_leads_when_the_first_releases(
    env: ::rbuilder::envtest::Environment,
) {
    let namespace = env.namespace("election").await.unwrap();
    let lead = || {
        let election = Election::new("operator", &namespace, LeaseTimes::default());
        let config = env.config();
        async move {
            let fence = Fence::new("operator");
            let started = Leadership::start_on_thread(
                election,
                config,
                &Metrics::new(),
                ClientSettings::default(),
                fence,
            )
            .await;
            let leadership = started.unwrap();
            leadership.acquired().await.unwrap();
            leadership
        }
    };
    let first = timeout(10 * SECOND, lead()).await.unwrap();
    let second = tokio::spawn(lead());
    // By now, the first process has renewed its lease, and the second one has tried several times.
    sleep(5 * SECOND).await;
    assert!(!second.is_finished());
    first.release().await;
    let second = timeout(10 * SECOND, second).await.unwrap().unwrap();
    let leases: Api<Lease> = Api::namespaced(env.client(), &namespace);
    let spec = leases.get("operator").await.unwrap().spec.unwrap();
    assert_eq!(spec.lease_transitions, Some(1));
    second.release().await;

    let events: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(env.client(), &namespace);
    let events = events.list(&ListParams::default()).await.unwrap();
    let notes = events.iter().filter_map(|event| event.note.as_deref());
    let stopped: Vec<&str> = notes.filter(|note| note.ends_with(" stopped leading")).collect();
    assert_eq!(stopped.len(), 2, "{stopped:?}");
}

#[test]
fn inconsistent_durations_are_errors() {
    let times = |duration, renew_deadline, retry_period| LeaseTimes {
        duration: Duration::from_secs_f64(duration),
        renew_deadline: Duration::from_secs_f64(renew_deadline),
        retry_period: Duration::from_secs_f64(retry_period),
    };
    assert!(LeaseTimes::default().check().is_ok());
    assert!(times(1.5, 1.0, 0.2).check().is_ok());
    let check = |times: LeaseTimes, expected: &str| {
        let error = times.check().unwrap_err().to_string();
        assert_eq!(error, format!("invalid leader election settings: {expected}"));
    };
    check(
        times(0.5, 0.4, 0.1),
        "lease duration must be at least 1s, found 500ms",
    );
    check(
        times(10.0, 10.0, 2.0),
        "lease duration must be greater than the renew deadline of 10s, found 10s",
    );
    check(
        times(15.0, 2.4, 2.0),
        "renew deadline must be greater than 1.2 times the retry period of 2s, found 2.4s",
    );
    check(times(15.0, 10.0, 0.0), "retry period must be greater than zero");
}
