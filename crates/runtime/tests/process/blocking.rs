//! Reconciles that block all threads of the operator.

use super::*;
use crate::operator::BLOCK;
use crate::tls_client::{ask, review_of_a_config_map, write_certificate};

/// The runtime of the operator has one thread, so it runs nothing else.
#[rbuilder::envtest::test]
async fn blocked_reconcile_is_named_and_stops_neither_webhooks_nor_probes() {
    let place = Place::new().await;
    let folder = tempfile::tempdir().unwrap();
    let certificate = write_certificate(folder.path());
    let reserved: [_; 2] = std::array::from_fn(|_| ReservedPort::reserve().unwrap());
    let [webhook, probes] = reserved.each_ref().map(ReservedPort::number);
    let flags = place.flags(&[
        &format!("--health-probe-bind-address=:{probes}"),
        &format!("--webhook-port={webhook}"),
        &format!("--webhook-cert-path={}", folder.path().display()),
    ]);
    let program = Program::start_on(0, place.env.kubeconfig_path(), flags);
    eventually(SOON, || program.get(probes, "/readyz")).await;
    place.create_with("slow", &[(BLOCK, "60")]).await;
    place.marked_by("slow", STARTED, &program).await;
    program.logs("reconcile blocks its thread").await;
    let log = program.log();
    let line = log
        .lines()
        .find(|line| line.contains("reconcile blocks its thread"));
    assert!(line.is_some_and(|line| line.contains("slow")), "{log}");
    // Everything that the API server and the kubelet ask for is still served.
    let review = review_of_a_config_map("7").to_string();
    for _ in 0..20 {
        let asked = ask(
            webhook,
            &certificate,
            "POST /allow",
            &[("Content-Type", "application/json")],
            &review,
        );
        let answer = tokio::time::timeout(Duration::from_secs(5), asked)
            .await
            .unwrap()
            .unwrap();
        assert!(answer.contains(r#""allowed":true"#), "{answer}");
        program.get(probes, "/healthz").await.unwrap();
    }
}
