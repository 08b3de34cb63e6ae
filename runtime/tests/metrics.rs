//! The metrics of a manager and access to them, with a real API server. Listed as ignored unless `KUBEBUILDER_ASSETS`
//! is set.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use rbuilder::envtest::{Environment, ReservedPort, eventually};
use rbuilder::metrics::Counter;
use rbuilder::{Action, Controller, Ctx, Error, Manager, ManagerArgs, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const SOON: Duration = Duration::from_secs(20);

/// An operator's own metrics in addition to the built-in ones.
struct State {
    seen: Counter,
}

async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<State>) -> Result {
    ctx.seen.inc();
    match map.name_any().as_str() {
        "fails" => Err(Error::new("it always does")),
        "fails-for-good" => Err(Error::terminal("it always will")),
        "panics" => panic!("as asked"),
        "hangs" => std::future::pending().await,
        "again" => Ok(Action::requeue(Duration::from_secs(3600))),
        _ => Ok(Action::await_change()),
    }
}

#[rbuilder::envtest::test]
async fn metrics_are_counted_and_shown_to_those_the_cluster_lets_read(env: Environment) {
    let namespace = env.namespace("metrics").await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(env.client(), &namespace);
    for name in ["fails", "fails-for-good", "panics", "hangs", "again", "succeeds"] {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let map = ConfigMap {
            metadata,
            ..ConfigMap::default()
        };
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let (folder, certificate) = certificate();
    let reserved = ReservedPort::reserve().unwrap();
    let port = reserved.number();
    let mut args = ManagerArgs::for_tests();
    args.watch_namespace = namespace.clone();
    args.metrics_bind_address = format!(":{port}");
    args.metrics_cert_path = Some(folder.path().to_owned());
    let manager = Manager::with_client("metrics.example.com", env.client(), args)
        .metrics_handler("/debug/allowed", async |_| http::Response::new("for the reader"))
        .metrics_handler("/debug/denied", async |_| http::Response::new("for nobody"));
    manager.metrics().collect_with(|| "foreign_total 7\n".to_owned());
    let seen = manager
        .metrics()
        .counter("maps_seen_total", "Maps seen.", [])
        .unwrap()
        .with([]);
    let controller = Controller::new(reconcile, State { seen }).named("maps");
    let controller = controller
        .reconcile_timeout(Duration::from_millis(100))
        .concurrency(3);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.controller(controller).start_until(async {
        let _ = stopped.await;
    }));

    let reader = token(env.client(), &namespace, "reader").await;
    let stranger = token(env.client(), &namespace, "stranger").await;
    let_read(env.client(), &namespace, "reader").await;
    let get = async |path: &str, token: Option<&str>| get(port, path, &certificate, token).await;
    let scrape = async |token: Option<&str>| get("/metrics", token).await;

    let text = eventually(SOON, || async {
        let answer = scrape(Some(&reader)).await?;
        let done = ["success", "requeue_after"].iter().all(|result| {
            answer.contains(&format!(
                "controller_runtime_reconcile_total{{controller=\"maps\",result=\"{result}\"}} 1"
            ))
        });
        let tried = ["errors", "panics", "timeouts"].iter().all(|family| {
            !answer.contains(&format!(
                "controller_runtime_reconcile_{family}_total{{controller=\"maps\"}} 0\n"
            ))
        });
        if done && tried { Ok(answer) } else { Err(answer) }
    })
    .await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    for line in [
        "controller_runtime_terminal_reconcile_errors_total{controller=\"maps\"} 1",
        "controller_runtime_max_concurrent_reconciles{controller=\"maps\"} 3",
        "# TYPE workqueue_depth gauge",
        "# TYPE controller_runtime_reconcile_time_seconds histogram",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "no {line} in {text}");
    }
    assert!(value(&text, "maps_seen_total") >= 6.0, "{text}");
    assert_eq!(value(&text, "foreign_total"), 7.0);
    let allowed = get("/debug/allowed", Some(&reader)).await.unwrap();
    assert!(allowed.ends_with("\r\n\r\nfor the reader"), "{allowed}");
    let denied = get("/debug/denied", Some(&reader)).await.unwrap();
    assert!(denied.starts_with("HTTP/1.1 403 "), "{denied}");
    let queue = "{controller=\"maps\",name=\"maps\"}";
    assert!(
        value(&text, &format!("workqueue_adds_total{queue}")) >= 6.0,
        "{text}"
    );
    assert!(
        value(&text, &format!("workqueue_retries_total{queue}")) >= 4.0,
        "{text}"
    );

    for (token, status) in [(None, "401"), (Some("forged"), "401"), (Some(&*stranger), "403")] {
        let answer = scrape(token).await.unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{token:?}: {answer}"
        );
        assert!(!answer.contains("maps_seen_total"), "{token:?}: {answer}");
    }

    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    scrape(Some(&reader))
        .await
        .expect_err("the endpoint ends with the manager");
}

#[rbuilder::envtest::test]
async fn a_port_in_use_ends_the_start_with_the_address(env: Environment) {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut args = ManagerArgs::for_tests();
    args.metrics_bind_address = taken.local_addr().unwrap().to_string();
    let address = args.metrics_bind_address.clone();
    let manager = Manager::with_client("metrics.example.com", env.client(), args);
    let error = manager
        .start_until(std::future::pending())
        .await
        .unwrap_err()
        .to_string();
    let expected = format!(
        "failed to start the metrics server: --metrics-bind-address: failed to listen on {address}: "
    );
    assert!(error.starts_with(&expected), "{error}");
}

/// Returns the value of a series.
fn value(text: &str, series: &str) -> f64 {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no {series} in {text}"))
}

/// A directory with certificate and key of `localhost`, for `--metrics-cert-path`.
fn certificate() -> (tempfile::TempDir, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(Path::new(folder.path()).join(name), text).unwrap();
    write("tls.key", made.signing_key.serialize_pem());
    write("tls.crt", made.cert.pem());
    let certificate = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap();
    (folder, certificate)
}

/// Returns the token of a new service account.
async fn token(client: Client, namespace: &str, name: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let account = ServiceAccount {
        metadata,
        ..ServiceAccount::default()
    };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let asked = accounts
        .create_token_request(name, &PostParams::default(), &TokenRequest::default())
        .await;
    asked.unwrap().status.unwrap().token.unwrap()
}

/// Allows a service account to read metrics, as kubebuilder's `metrics-reader` does.
async fn let_read(client: Client, namespace: &str, name: &str) {
    let role = format!("{namespace}-metrics-reader");
    let rule = json!({"nonResourceURLs": ["/metrics", "/debug/allowed"], "verbs": ["get"]});
    create::<ClusterRole>(&client, json!({"metadata": {"name": role}, "rules": [rule]})).await;
    let binding = json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    create::<ClusterRoleBinding>(&client, binding).await;
}

async fn create<K>(client: &Client, object: Value)
where
    K: kube::Resource<DynamicType = ()>
        + serde::Serialize
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object).unwrap();
    Api::<K>::all(client.clone())
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

/// Returns the response to a client with this token that trusts only this certificate.
async fn get(
    port: u16,
    path: &str,
    trusted: &CertificateDer<'static>,
    token: Option<&str>,
) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(
        config.with_root_certificates(roots).with_no_client_auth(),
    ));
    let answer = async {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let mut stream = connector
            .connect(ServerName::try_from("localhost").unwrap(), stream)
            .await?;
        let authorization = token
            .map(|token| format!("Authorization: Bearer {token}\r\n"))
            .unwrap_or_default();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close");
        stream
            .write_all(format!("{head}\r\n{authorization}\r\n").as_bytes())
            .await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    };
    answer.await.map_err(|error: std::io::Error| error.to_string())
}
