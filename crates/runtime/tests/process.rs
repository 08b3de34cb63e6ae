//! Tests an operator in its own process, as in a Pod: flags, signals, the lease, the exit status
//! and the log. The child process is this program, started as the operator and connected to a real
//! API server. The tests are ignored unless `KUBEBUILDER_ASSETS` is set.

#[path = "process/blocking.rs"]
mod blocking;
#[path = "process/disturbances.rs"]
mod disturbances;
#[path = "process/fencing.rs"]
mod fencing;
#[path = "process/http_proxy.rs"]
mod http_proxy;
#[path = "process/load.rs"]
mod load;
#[allow(dead_code)] // it can do more than is needed here
#[path = "faults/lot.rs"]
mod lot;
#[path = "process/operator.rs"]
mod operator;
#[path = "process/panics.rs"]
mod panics;
#[path = "process/program.rs"]
mod program;
#[allow(dead_code)] // it can do more than is needed here
#[path = "faults/proxy.rs"]
mod proxy;
#[path = "process/rolling.rs"]
mod rolling;
#[path = "process/scenario.rs"]
mod scenario;
#[path = "process/sharding.rs"]
mod sharding;
#[allow(dead_code)] // each program uses a part of it
mod tls_client;
#[path = "process/traces.rs"]
mod traces;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, ResourceExt};
use rbuilder::envtest::{Environment, ReservedPort, eventually};
use serde_json::{Value, json};

use operator::{ENDED, FAIL, HOLD, LEASE, STARTED};
use program::{Ended, Program};

/// Upper bound for anything to happen, even on a busy machine.
const SOON: Duration = Duration::from_secs(30);
/// Time for an idle process to exit.
const AT_ONCE: Duration = Duration::from_secs(2);

struct Place {
    env: Environment,
    namespace: String,
}

impl Place {
    async fn new() -> Self {
        Self::at(Environment::shared().await.unwrap()).await
    }

    async fn at(env: Environment) -> Self {
        let namespace = env.namespace("process").await.unwrap();
        Self { env, namespace }
    }

    /// The operator uses this namespace for its watches and its lease.
    fn start(&self, flags: &[&str]) -> Program {
        Program::start(self.env.kubeconfig_path(), self.flags(flags))
    }

    fn flags(&self, flags: &[&str]) -> Vec<String> {
        let own = [
            format!("--watch-namespace={}", self.namespace),
            format!("--leader-election-namespace={}", self.namespace),
        ];
        flags.iter().map(|flag| (*flag).to_owned()).chain(own).collect()
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.env.client(), &self.namespace)
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.env.client(), &self.namespace)
    }

    async fn create(&self, name: &str, data: &[&str]) {
        let data: Vec<_> = data.iter().map(|key| (*key, "true")).collect();
        self.create_with(name, &data).await;
    }

    async fn create_with(&self, name: &str, data: &[(&str, &str)]) {
        let data = data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let data: BTreeMap<String, String> = data.collect();
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(data),
            ..ConfigMap::default()
        };
        self.maps().create(&PostParams::default(), &map).await.unwrap();
    }

    /// Makes reconciles of this object block.
    async fn hold(&self, name: &str) {
        let patch = Patch::Merge(json!({ "data": { HOLD: "true" } }));
        self.maps()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Sets a different holder that never renews the lease.
    async fn steal_lease(&self) {
        let thief = Patch::Merge(json!({ "spec": { "holderIdentity": "thief" } }));
        self.leases()
            .patch(LEASE, &PatchParams::default(), &thief)
            .await
            .unwrap();
    }

    async fn release(&self, name: &str) {
        let patch = Patch::Merge(json!({ "data": { HOLD: null } }));
        self.maps()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Returns the process (by ID) that has set the annotation `mark`.
    async fn mark(&self, name: &str, mark: &str) -> Option<String> {
        self.maps()
            .get(name)
            .await
            .unwrap()
            .annotations()
            .get(mark)
            .cloned()
    }

    async fn marked_by(&self, name: &str, mark: &str, program: &Program) {
        eventually(SOON, || async {
            match self.mark(name, mark).await {
                Some(by) if by == program.id() => Ok(()),
                found => Err(format!(
                    "{found:?} in place of {}\n{}",
                    program.id(),
                    program.log()
                )),
            }
        })
        .await;
    }

    async fn holder(&self) -> String {
        let lease = self.leases().get(LEASE).await.unwrap();
        lease.spec.unwrap_or_default().holder_identity.unwrap_or_default()
    }
}

/// After the first signal, running reconciles can finish but no new ones are started. The process
/// releases the lease, and exits with status 0.
#[rbuilder::envtest::test]
async fn first_signal_lets_reconciles_finish() {
    if operator::is_this_process() {
        return operator::run().await;
    }
    let place = Place::new().await;
    for signal in ["TERM", "INT"] {
        let (held, late) = (
            format!("held-{signal}").to_lowercase(),
            format!("late-{signal}").to_lowercase(),
        );
        let mut program = place.start(&["--leader-elect", "--health-probe-bind-address=0"]);
        place.create(&held, &[HOLD]).await;
        place.marked_by(&held, STARTED, &program).await;
        let holder = place.holder().await;
        assert!(!holder.is_empty());

        program.signal(signal);
        program
            .logs(&format!(
                "received shutdown signal, stopping; send it again to exit immediately signal=SIG{signal}"
            ))
            .await;
        place.create(&late, &[]).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(program.is_running(), "{}", program.log());
        assert_eq!(
            place.holder().await,
            holder,
            "held for as long as a reconcile runs"
        );

        place.release(&held).await;
        assert_eq!(program.ended(AT_ONCE).await, Ended::with(0), "{}", program.log());
        assert_eq!(place.mark(&held, ENDED).await, Some(program.id()));
        assert_eq!(place.mark(&late, STARTED).await, None);
        assert_eq!(place.holder().await, "", "{}", program.log());
    }
}

#[rbuilder::envtest::test]
async fn second_signal_exits_immediately() {
    let place = Place::new().await;
    for (name, first, second) in [("one", "TERM", "TERM"), ("two", "INT", "TERM")] {
        let mut program = place.start(&["--health-probe-bind-address=0"]);
        place.create(name, &[HOLD]).await;
        place.marked_by(name, STARTED, &program).await;
        program.signal(first);
        program
            .logs(&format!(
                "received shutdown signal, stopping; send it again to exit immediately signal=SIG{first}"
            ))
            .await;
        program.signal(second);
        assert_eq!(program.ended(AT_ONCE).await, Ended::with(1), "{}", program.log());
        assert!(
            program.log().contains(&format!(
                "received second shutdown signal, exiting signal=SIG{second}"
            )),
            "{}",
            program.log()
        );
        assert_eq!(place.mark(name, ENDED).await, None);
    }
}

/// The process must not wait for its reconciles, because another process may already be the leader.
#[rbuilder::envtest::test]
async fn leader_that_loses_its_lease_exits_with_an_error() {
    let place = Place::new().await;
    let mut program = place.start(&["--leader-elect", "--health-probe-bind-address=0"]);
    place.create("held", &[HOLD]).await;
    place.marked_by("held", STARTED, &program).await;

    place.steal_lease().await;
    // The retry period is 2 s.
    assert_eq!(
        program.ended(Duration::from_secs(6)).await,
        Ended::with(1),
        "{}",
        program.log()
    );
    let expected = "Error: leader election lost: lease is held by thief";
    assert!(
        program.log().lines().any(|line| line == expected),
        "{}",
        program.log()
    );
    assert_eq!(place.mark("held", ENDED).await, None);
    assert_eq!(place.holder().await, "thief", "what is not ours is not given up");
}

/// On a developer's machine, the cluster may not be running or the kubeconfig may be wrong.
#[rbuilder::envtest::test]
async fn unreachable_api_server_is_fatal_outside_of_a_pod() {
    // Bind the port without listening, so that connections are refused and no other process can
    // grab it.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let server = format!("http://{}", closed.local_addr().unwrap());
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    let contents = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{ "name": "it", "cluster": { "server": server } }],
        "users": [{ "name": "it", "user": {} }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
    });
    std::fs::write(kubeconfig.path(), contents.to_string()).unwrap();
    let flags = ["--leader-elect", "--health-probe-bind-address=0"].map(str::to_owned);
    let mut program = Program::start(kubeconfig.path(), flags.to_vec());
    assert_eq!(program.ended(SOON).await, Ended::with(1), "{}", program.log());
    let expected = format!(
        "Error: cannot reach the API server at {server}: client error (Connect): tcp connect error: Connection refused \
         (os error 111)"
    );
    let log = program.log();
    assert!(log.lines().any(|line| line == expected), "{log}");
    assert_eq!(log.matches("Connection refused").count(), 1, "{log}");
}

/// The process must exit before another one may acquire the lease.
#[rbuilder::envtest::test]
async fn leader_without_api_server_exits_before_its_lease_expires() {
    let env = Environment::builder().start().await.unwrap();
    let place = Place::at(env.clone()).await;
    let mut program = place.start(&["--leader-elect", "--health-probe-bind-address=0"]);
    place.create("any", &[]).await;
    place.marked_by("any", ENDED, &program).await;

    let asked = Instant::now();
    env.stop().await.unwrap();
    // The renew deadline is 10 s and the lease duration is 15 s. Stopping takes part of the
    // difference.
    let ended = program.ended(Duration::from_secs(15)).await;
    assert_eq!(ended, Ended::with(1), "{}", program.log());
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    let log = program.log();
    assert!(
        !log.contains("kube_client") && !log.contains("kube_runtime"),
        "{log}"
    );
    let causes = log.matches("cannot reach the API server").count();
    assert!((1..=4).contains(&causes), "{causes}: {log}");
    assert!(
        program
            .log()
            .contains("Error: leader election lost: failed to renew lease within 10s; last error: "),
        "{}",
        program.log()
    );
}

/// A killed leader doesn't release its lease. The standby must wait until the lease expires, and
/// stays ready.
#[rbuilder::envtest::test]
async fn standby_takes_over_from_a_killed_leader() {
    let place = Place::new().await;
    let mut leader = place.start(&["--leader-elect", "--health-probe-bind-address=0"]);
    place.create("first", &[]).await;
    place.marked_by("first", ENDED, &leader).await;
    let reserved = ReservedPort::reserve().unwrap();
    let probes = reserved.number();
    let standby = place.start(&[
        "--leader-elect",
        &format!("--health-probe-bind-address=:{probes}"),
    ]);
    eventually(SOON, || standby.get(probes, "/readyz")).await;
    standby.logs("lease is held by another process").await;

    let killed = Instant::now();
    leader.signal("KILL");
    assert_eq!(leader.ended(AT_ONCE).await, Ended::by_signal(9));
    place.create("second", &[]).await;
    place.marked_by("second", ENDED, &standby).await;
    let waited = killed.elapsed();
    // The last renewal was at most 2 s before.
    assert!(waited >= Duration::from_secs(12), "{waited:?}\n{}", standby.log());
    assert!(standby.get(probes, "/readyz").await.is_ok());
}

/// The flags in kubebuilder's manifests and patches, except for the ports.
#[rbuilder::envtest::test]
async fn operator_accepts_kubebuilders_flags() {
    let place = Place::new().await;
    let reserved = [ReservedPort::reserve().unwrap(), ReservedPort::reserve().unwrap()];
    let [metrics, probes] = reserved.each_ref().map(ReservedPort::number);
    let mut program = place.start(&[
        "--leader-elect",
        &format!("--metrics-bind-address=:{metrics}"),
        &format!("--health-probe-bind-address=:{probes}"),
        "--metrics-secure=false",
        "--enable-http2=false",
        "--webhook-port=9443",
        "--zap-devel",
        "--zap-log-level=debug",
        "--zap-encoder=console",
        "--zap-stacktrace-level=error",
        "--zap-time-encoding=rfc3339nano",
    ]);
    place.create("any", &[]).await;
    place.marked_by("any", ENDED, &program).await;
    for path in ["/healthz", "/readyz"] {
        program.get(probes, path).await.unwrap();
    }
    let scraped = program.get(metrics, "/metrics").await.unwrap();
    assert!(
        scraped.contains("controller_runtime_reconcile_total"),
        "{scraped}"
    );
    assert!(
        program.log().lines().any(|line| line.contains(" DEBUG ")),
        "{}",
        program.log()
    );
    program.signal("TERM");
    assert_eq!(program.ended(AT_ONCE).await, Ended::with(0), "{}", program.log());
}

/// In text format, an error is a single line with the object, the message, and the time of the
/// retry.
#[rbuilder::envtest::test]
async fn failed_reconcile_logs_one_line() {
    let place = Place::new().await;
    let mut program = place.start(&["--health-probe-bind-address=0"]);
    place.create("broken", &[FAIL]).await;
    let line = eventually(SOON, || async {
        let log = program.log();
        log.lines()
            .find(|line| line.contains(" ERROR "))
            .map(str::to_owned)
    })
    .await;
    let expected = [
        "controller=\"configmap\"",
        &format!("namespace=\"{}\"", place.namespace),
        "object_name=\"broken\"",
        "reconcile_id=",
        "reconcile failed",
        "retry_in=5ms",
        "error=the backup is not reachable: no route to host",
    ];
    for part in expected {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!line.contains('\u{1b}'), "colours: {line:?}");
    program.signal("TERM");
    assert_eq!(program.ended(AT_ONCE).await, Ended::with(0));
}

/// In JSON format, every line must be a JSON object.
#[rbuilder::envtest::test]
async fn json_log_has_the_same_fields() {
    let place = Place::new().await;
    let mut program = place.start(&["--health-probe-bind-address=0", "--zap-encoder=json"]);
    place.create("broken", &[FAIL]).await;
    let line = eventually(SOON, || async {
        let log = program.log();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.into_iter().find(|line| line["level"] == "ERROR")
    })
    .await;
    assert_eq!(line["message"], "reconcile failed", "{line}");
    assert_eq!(
        line["error"], "the backup is not reachable: no route to host",
        "{line}"
    );
    assert_eq!(line["retry_in"], "5ms", "{line}");
    let span = &line["spans"][0];
    for (field, value) in [
        ("controller", "configmap"),
        ("namespace", &place.namespace),
        ("object_name", "broken"),
    ] {
        assert_eq!(span[field], value, "{line}");
    }
    program.signal("TERM");
    assert_eq!(program.ended(AT_ONCE).await, Ended::with(0));
}

#[rbuilder::envtest::test]
async fn manager_without_a_cluster_says_where_it_looked() {
    let mut program = Program::start(Path::new("/nowhere/kubeconfig"), Vec::new());
    assert_eq!(program.ended(SOON).await, Ended::with(1), "{}", program.log());
    let log = program.log();
    let start = "Error: no cluster configuration found; set KUBECONFIG to the path of a kubeconfig, or run in a pod: ";
    let error = log.lines().find(|line| line.starts_with(start)).expect(&log);
    assert!(error.contains("/nowhere/kubeconfig"), "{error}");
}

/// Flags take precedence over the environment.
#[rbuilder::envtest::test]
async fn flags_select_the_cluster() {
    let place = Place::new().await;
    let path = place.env.kubeconfig_path().display();
    let start = |flag: &str| {
        let flags = [
            &*format!("--kubeconfig={path}"),
            flag,
            "--health-probe-bind-address=0",
        ];
        Program::start(Path::new("/nowhere/kubeconfig"), place.flags(&flags))
    };
    let mut refused = start("--context=missing");
    assert_eq!(refused.ended(SOON).await, Ended::with(1), "{}", refused.log());
    let error =
        "Error: invalid value `missing` for --context: expected a context of the kubeconfig, one of `";
    assert!(refused.log().contains(error), "{}", refused.log());

    place.create("chosen", &[]).await;
    let running = start("--context=");
    place.marked_by("chosen", ENDED, &running).await;
}

/// A manager that can't start prints the error as a single line and exits with status 1.
#[rbuilder::envtest::test]
async fn startup_error_is_printed_on_one_line() {
    let place = Place::new().await;
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let cases = [
        (
            "--zap-log-level=verbose".to_owned(),
            "Error: invalid value `verbose` for --log-level: unknown level; expected error, warn".to_owned(),
        ),
        (
            format!("--health-probe-bind-address=:{port}"),
            format!(
                "Error: failed to start the health probe server: --health-probe-bind-address: failed to listen on \
                 :{port}"
            ),
        ),
    ];
    for (flag, expected) in cases {
        let mut program = place.start(&[&flag]);
        assert_eq!(program.ended(SOON).await, Ended::with(1), "{}", program.log());
        let log = program.log();
        assert!(
            log.lines().any(|line| line.starts_with(&expected)),
            "{expected} is not in\n{log}"
        );
    }
}
