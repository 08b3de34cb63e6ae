//! Typical events of an operator's Pods: scaling up, rolling out a new version, reading probes and
//! metrics, and renewing certificates.

use std::fs;
use std::net::TcpListener;

use super::*;
use crate::operator::PANIC;
use crate::tls_client::{connect, write_certificate};

/// Time for another process to acquire a released lease. The retry period is 4.4 s including
/// jitter.
const HANDED_OVER: Duration = Duration::from_secs(5);
/// Interval between checks of certificates, with a margin for busy machines.
const RELOADED: Duration = Duration::from_secs(30);

#[rbuilder::envtest::test]
async fn second_replica_takes_over_immediately() {
    let place = Place::new().await;
    let start = |[probes, metrics]: [u16; 2]| {
        place.start(&[
            "--leader-elect",
            "--metrics-secure=false",
            &format!("--metrics-bind-address=:{metrics}"),
            &format!("--health-probe-bind-address=:{probes}"),
        ])
    };
    let reserved: [_; 4] = std::array::from_fn(|_| ReservedPort::reserve().unwrap());
    let ports = reserved.each_ref().map(ReservedPort::number);
    let mut first = start([ports[0], ports[1]]);
    place.create("first", &[]).await;
    place.marked_by("first", ENDED, &first).await;
    let second = start([ports[2], ports[3]]);
    for (program, port) in [(&first, ports[0]), (&second, ports[2])] {
        eventually(SOON, || program.get(port, "/readyz")).await;
    }
    second.logs("lease is held by another process").await;

    // The first replica is stopped in the middle of a reconcile.
    place.create("held", &[HOLD]).await;
    place.marked_by("held", STARTED, &first).await;
    let reconciled = r#"controller_runtime_reconcile_total{controller="configmap",result="success"}"#;
    assert!(value(&first, ports[1], reconciled).await >= 1.0);
    assert_eq!(value(&second, ports[3], reconciled).await, 0.0);
    let leads = format!(r#"leader_election_master_status{{name="{LEASE}"}}"#);
    assert_eq!(value(&first, ports[1], &leads).await, 1.0);
    assert_eq!(value(&second, ports[3], &leads).await, 0.0);

    first.signal("TERM");
    first.logs("received shutdown signal, stopping").await;
    place.release("held").await;
    assert_eq!(first.ended(AT_ONCE).await, Ended::with(0), "{}", first.log());
    let released = Instant::now();
    assert_eq!(place.mark("held", ENDED).await, Some(first.id()));
    second.logs("successfully acquired lease").await;
    let waited = released.elapsed();
    assert!(waited < HANDED_OVER, "{waited:?}\n{}", second.log());
    place.create("second", &[]).await;
    place.marked_by("second", ENDED, &second).await;
    assert!(value(&second, ports[3], reconciled).await >= 1.0);
}

async fn value(program: &Program, port: u16, series: &str) -> f64 {
    let scraped = program.get(port, "/metrics").await.unwrap();
    let line = scraped.lines().find_map(|line| line.strip_prefix(series));
    let value = line.unwrap_or_else(|| panic!("{series} is not in\n{scraped}"));
    value.trim().parse().unwrap()
}

#[rbuilder::envtest::test]
async fn panic_is_counted_and_retried() {
    let place = Place::new().await;
    let reserved = ReservedPort::reserve().unwrap();
    let metrics = reserved.number();
    let program = place.start(&[
        "--health-probe-bind-address=0",
        "--metrics-secure=false",
        &format!("--metrics-bind-address=:{metrics}"),
    ]);
    place.create("poison", &[PANIC]).await;
    place.marked_by("poison", ENDED, &program).await;
    let panics = r#"controller_runtime_reconcile_panics_total{controller="configmap"}"#;
    assert_eq!(value(&program, metrics, panics).await, 1.0);
    let log = program.log();
    assert!(
        log.contains("reconcile panicked") && log.contains("error=a page is missing between 3 and 5"),
        "{log}"
    );
}

/// Liveness doesn't depend on the API server.
#[rbuilder::envtest::test]
async fn process_is_live_but_not_ready_before_its_caches_sync() {
    // This server accepts connections, but never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let server = format!("http://{}", silent.local_addr().unwrap());
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "silent",
        "clusters": [{ "name": "silent", "cluster": { "server": server } }],
        "users": [{ "name": "nobody", "user": {} }],
        "contexts": [{ "name": "silent", "context": { "cluster": "silent", "user": "nobody" } }],
    });
    fs::write(&kubeconfig, text.to_string()).unwrap();
    let reserved = ReservedPort::reserve().unwrap();
    let probes = reserved.number();
    let flags = vec![format!("--health-probe-bind-address=:{probes}")];
    let mut program = Program::start(&kubeconfig, flags);
    eventually(SOON, || program.get(probes, "/healthz")).await;
    let refusal = program.get(probes, "/readyz").await.unwrap_err();
    assert!(
        refusal.starts_with("HTTP/1.1 500 ") && refusal.contains("[-]caches failed"),
        "{refusal}"
    );
    program.signal("TERM");
    assert_eq!(program.ended(AT_ONCE).await, Ended::with(0), "{}", program.log());
}

/// cert-manager does this before a certificate expires.
#[rbuilder::envtest::test]
async fn replaced_certificate_is_served_without_a_restart() {
    let place = Place::new().await;
    let folder = tempfile::tempdir().unwrap();
    let old = write_certificate(folder.path());
    let reserved = ReservedPort::reserve().unwrap();
    let port = reserved.number();
    let program = place.start(&[
        "--health-probe-bind-address=0",
        &format!("--webhook-port={port}"),
        &format!("--webhook-cert-path={}", folder.path().display()),
    ]);
    eventually(SOON, || connect(port, &old)).await;

    let new = write_certificate(folder.path());
    eventually(RELOADED, || connect(port, &new)).await;
    assert!(connect(port, &old).await.is_err());
    place.create("any", &[]).await;
    place.marked_by("any", ENDED, &program).await;
}
