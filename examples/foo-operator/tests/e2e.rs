// SPDX-License-Identifier: Apache-2.0

//! End-to-end test: deploys the image `IMG` to the cluster in your kubeconfig, and checks that the operator works there.
//!
//! `make test-e2e` runs it in a cluster that it creates with kind. For another cluster, push the image and run
//! `IMG=<image> cargo test --features e2e --test e2e -- --nocapture`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use kube::api::GetParams;
use kube::core::Request;
use kube::{Client, Config};
use rbuilder::testing::eventually;
use serde_json::{Value, json};

/// Prefix of the names of all deployed resources, as in config/default.
const PREFIX: &str = "foo-operator-";
/// Namespace of the manager.
const NAMESPACE: &str = "foo-operator-system";
/// Namespace of samples that do not specify one.
const SAMPLES_NAMESPACE: &str = "default";

/// Time limit for everything except the rollout.
const TIMEOUT: Duration = Duration::from_secs(120);

#[tokio::test]
async fn the_operator_works_in_a_cluster() {
    let _report = ReportOnFailure;
    deploy();
    if has_metrics() {
        check_metrics().await;
    }
    let samples = create_samples().await;
    for sample in samples.iter().filter(|sample| has_controller(sample)) {
        await_status(sample).await;
    }
    delete_samples(&samples);
    run(Command::new("make").args(["undeploy", "ignore-not-found=true"]));
    // It stays, because it was there before `make deploy`.
    run(&mut kubectl(&["delete", "namespace", NAMESPACE]));
}

/// Deploys the manager to a namespace that enforces the Pod Security Standard "restricted", and waits until it is ready.
fn deploy() {
    let image = std::env::var("IMG").expect("IMG names the image, as in `make test-e2e`");
    apply(&json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    }));
    run(Command::new("make").args(["deploy", &format!("IMG={image}")]));
    run(&mut kubectl(&[
        "--namespace",
        NAMESPACE,
        "rollout",
        "status",
        "deployment",
        "--timeout=5m",
    ]));
}

/// Returns true if the metrics are deployed: `rbuilder edit --disable metrics` turns them off.
fn has_metrics() -> bool {
    let path = "config/default/kustomization.yaml";
    let text = std::fs::read_to_string(path).expect("config/default has a kustomization");
    let kustomization: Value = serde_saphyr::from_str(&text).expect("the kustomization is YAML");
    let mut components = kustomization["components"].as_array().into_iter().flatten();
    components.any(|component| component == "../metrics")
}

/// Reads the metrics as Prometheus does: over HTTPS, with the token of a service account that may read them.
async fn check_metrics() {
    let account = format!("{PREFIX}controller-manager");
    apply(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{PREFIX}test-e2e")},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": format!("{PREFIX}metrics-reader"),
        },
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }));
    let token = read(&mut kubectl(&[
        "--namespace",
        NAMESPACE,
        "create",
        "token",
        &account,
    ]));
    let server = PortForward::start(&format!("{PREFIX}controller-manager-metrics-service"));
    match read_metrics(&server, json!({})).await {
        Err(kube::Error::Api(status)) if status.code == 401 => {}
        answer => panic!("a client without a token must be refused, got {answer:?}"),
    }
    let metrics = eventually(TIMEOUT, || {
        read_metrics(&server, json!({"token": token.trim()}))
    });
    let metrics = metrics.await;
    assert!(metrics.contains("# TYPE "), "{metrics}");
}

async fn read_metrics(server: &PortForward, user: Value) -> kube::Result<String> {
    let url = format!("https://{}", server.address);
    let mut config = Config::new(url.parse().expect("kubectl prints an address"));
    config.auth_info = serde_json::from_value(user).expect("a user of a kubeconfig");
    // By default the certificate is signed by the manager itself.
    config.accept_invalid_certs = true;
    let request = Request::new("").get("metrics", &GetParams::default());
    Client::try_from(config)?
        .request_text(request.map_err(kube::Error::BuildRequest)?)
        .await
}

/// Creates the samples, and returns them as they are in the cluster.
async fn create_samples() -> Vec<Value> {
    let kustomization = std::fs::read_to_string("config/samples/kustomization.yaml")
        .expect("config/samples has a kustomization");
    if !kustomization.lines().any(|line| line.starts_with("- ")) {
        return Vec::new();
    }
    // Retried, because webhooks become reachable shortly after the manager is ready.
    let created = eventually(TIMEOUT, || async {
        output(&mut kubectl(&[
            "--namespace",
            SAMPLES_NAMESPACE,
            "apply",
            "--kustomize=config/samples",
            "--output=json",
        ]))
    });
    let created: Value = serde_json::from_str(&created.await).expect("kubectl prints JSON");
    match created["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![created],
    }
}

/// Returns true if a controller of the project writes the status of an object. The one that is scaffolded for types from
/// a CRD does not.
fn has_controller(object: &Value) -> bool {
    let project = std::fs::read_to_string("PROJECT").expect("PROJECT can be read");
    let project: Value = serde_saphyr::from_str(&project).expect("PROJECT is YAML");
    let mut resources = project["resources"].as_array().into_iter().flatten();
    resources.any(|resource| {
        let parts = ["group", "domain"].map(|key| resource[key].as_str().unwrap_or_default());
        let group = format!("{}/", parts.join(".").trim_start_matches('.'));
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        (resource["controller"] == true || resource["controllers"].is_array())
            && resource["api"]["imported"] != true
            && resource["kind"] == object["kind"]
            && api_version.starts_with(&group)
    })
}

/// Waits until the manager has written the status of an object.
async fn await_status(object: &Value) {
    let name = resource_name(object);
    println!("waiting for the status of {name}");
    eventually(TIMEOUT, || async {
        let found = output(&mut kubectl_for(object, &["get", &name, "--output=json"]))?;
        let found: Value = serde_json::from_str(&found).map_err(|error| error.to_string())?;
        match found["status"].is_object() {
            true => Ok(()),
            false => Err(format!("{name} has no status")),
        }
    })
    .await;
}

/// Deletes the samples. This takes until the finalizers are removed.
fn delete_samples(samples: &[Value]) {
    let timeout = format!("--timeout={}s", TIMEOUT.as_secs());
    for sample in samples {
        let name = resource_name(sample);
        run(&mut kubectl_for(
            sample,
            &["delete", &name, "--ignore-not-found", &timeout],
        ));
    }
}

/// Returns the name of an object for kubectl: `Kind.version.group/name`.
fn resource_name(object: &Value) -> String {
    let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (part(&object["kind"]), part(&object["metadata"]["name"]));
    match part(&object["apiVersion"]).split_once('/') {
        Some((group, version)) => format!("{kind}.{version}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// Returns a kubectl command in the namespace of an object.
fn kubectl_for(object: &Value, arguments: &[&str]) -> Command {
    let namespace = object["metadata"]["namespace"].as_str();
    let mut command = kubectl(&["--namespace", namespace.unwrap_or(SAMPLES_NAMESPACE)]);
    command.args(arguments);
    command
}

fn kubectl(arguments: &[&str]) -> Command {
    let program = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Creates or updates an object.
fn apply(object: &Value) {
    let mut command = kubectl(&["apply", "--server-side", "--field-manager=test-e2e"]);
    let command = command.arg("--filename=-").stdin(Stdio::piped());
    let mut child = command.spawn().expect("kubectl can be run");
    let mut input = child.stdin.take().expect("the input is a pipe");
    input
        .write_all(object.to_string().as_bytes())
        .expect("kubectl reads the object");
    drop(input);
    let status = child.wait().expect("kubectl ends");
    assert!(status.success(), "{command:?}: {status}");
}

/// Runs a command that prints to the terminal.
fn run(command: &mut Command) {
    println!("{command:?}");
    match command.status() {
        Ok(status) => assert!(status.success(), "{command:?}: {status}"),
        Err(error) => panic!("{command:?}: {error}"),
    }
}

/// Returns the output of a command.
fn read(command: &mut Command) -> String {
    output(command).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the output of a command, or its errors.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command:?}: {}: {errors}", output.status))
        }
    }
}

/// A port of this machine that kubectl forwards to a Service, until this value is dropped.
struct PortForward {
    child: Child,
    /// Kept open, because kubectl prints a line for each connection.
    _output: BufReader<ChildStdout>,
    address: String,
}

impl PortForward {
    fn start(service: &str) -> Self {
        let service = format!("service/{service}");
        let mut command = kubectl(&["--namespace", NAMESPACE, "port-forward", &service, ":8443"]);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl can be run");
        let mut output = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("kubectl prints text");
        // Forwarding from 127.0.0.1:40123 -> 8443
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

/// Prints the state of the cluster if the test fails.
struct ReportOnFailure;

impl Drop for ReportOnFailure {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for line in [
            "describe deployments,pods",
            "logs --selector control-plane=controller-manager --tail=-1 --prefix",
            "get events --all-namespaces --sort-by=.lastTimestamp",
        ] {
            println!("\nkubectl --namespace {NAMESPACE} {line}");
            let mut command = kubectl(&["--namespace", NAMESPACE]);
            match output(command.args(line.split_whitespace())) {
                Ok(text) | Err(text) => println!("{text}"),
            }
        }
    }
}
