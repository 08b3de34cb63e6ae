//! Scrapes the metrics of a deployed operator.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use kube::api::GetParams;
use kube::core::Request;
use kube::{Client, Config};
use serde_json::{Value, json};

use super::TIMEOUT;
use super::rendered::MetricsService;
use crate::eventually;

pub(super) async fn check(kubectl: Command, service: &MetricsService, token: &str) {
    let server = PortForward::start(kubectl, service);
    match read_metrics(&server, json!({})).await {
        Err(kube::Error::Api(status)) if status.code == 401 => {}
        answer => panic!("a client without a token must be refused, got {answer:?}"),
    }
    // Retry until the new ClusterRoleBinding has taken effect.
    let metrics = eventually(TIMEOUT, || read_metrics(&server, json!({"token": token}))).await;
    assert!(metrics.contains("# TYPE "), "{metrics}");
}

async fn read_metrics(server: &PortForward, user: Value) -> kube::Result<String> {
    let url = format!("https://{}", server.address);
    let mut config = Config::new(url.parse().expect("kubectl prints an address"));
    config.auth_info = serde_json::from_value(user).expect("a user of a kubeconfig");
    // The manager's default metrics certificate is self-signed.
    config.accept_invalid_certs = true;
    let request = Request::new("").get("metrics", &GetParams::default());
    Client::try_from(config)?
        .request_text(request.map_err(kube::Error::BuildRequest)?)
        .await
}

/// A local port that kubectl forwards to a Service until dropped.
struct PortForward {
    child: Child,
    /// Keep the pipe open: kubectl prints a line per connection and would die of SIGPIPE.
    _output: BufReader<ChildStdout>,
    address: String,
}

impl PortForward {
    fn start(mut kubectl: Command, service: &MetricsService) -> Self {
        let name = format!("service/{}", service.name);
        let command = kubectl
            .args(["port-forward", &name, &format!(":{}", service.port)])
            .stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut output = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("kubectl prints text");
        // E.g. `Forwarding from 127.0.0.1:40123 -> 8443`.
        let address = line.strip_prefix("Forwarding from ");
        let address = address.and_then(|rest| rest.split_once(" -> "));
        let Some((address, _)) = address else {
            let _ = child.kill();
            panic!("{command:?} printed `{line}`");
        };
        Self {
            child,
            _output: output,
            address: address.to_owned(),
        }
    }
}

impl Drop for PortForward {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
