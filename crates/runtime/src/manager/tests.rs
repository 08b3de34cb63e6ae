use std::sync::{Arc, Mutex};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::client::Body;
use kube::core::admission::AdmissionResponse;
use tokio::net::TcpSocket;
use tower::util::MapRequestLayer;

use super::*;
use crate::action::Action;
use crate::controller::Controller;
use crate::ctx::Ctx;
use crate::error::BoxError;
use crate::logging::LogBuffer;
use crate::webhook::AdmissionRequest;

async fn reconcile(_: Arc<ConfigMap>, _: Ctx<()>) -> Result<Action, Error> {
    Ok(Action::await_change())
}

/// Returns a manager for a cluster that refuses connections, and the cluster's address. The socket
/// is bound so that no other process can grab the port, but isn't listening.
fn unreachable_manager() -> (Manager, String, TcpSocket) {
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    let config = Config::new(address.parse().unwrap());
    let manager = Manager::with_config("unreachable.example.com", config, ManagerArgs::for_tests()).unwrap();
    let controller = Controller::new(reconcile, ())
        .owns::<Deployment>()
        .reads::<Secret>();
    (manager.controller(controller), address, closed)
}

/// Returns the error, and the log at level `INFO`.
async fn run_until_failure(manager: Manager) -> (String, String) {
    let (log, _guard) = LogBuffer::start();
    let limit = Duration::from_secs(60);
    let ended = tokio::time::timeout(limit, manager.start_until(std::future::pending())).await;
    let error = ended.expect("it fails").unwrap_err();
    (error.to_string(), log.text())
}

#[tokio::test]
async fn manager_outside_a_pod_fails_at_once_without_an_api_server() {
    let (manager, address, _closed) = unreachable_manager();
    let (error, log) = run_until_failure(manager).await;
    let start = format!("cannot reach the API server at {address}: ");
    assert!(error.starts_with(&start), "{error}");
    assert!(error.ends_with("Connection refused (os error 111)"), "{error}");
    assert!(
        !log.contains("cannot reach"),
        "the caller prints the error: {log}"
    );
}

#[tokio::test]
async fn in_a_pod_caches_retry_and_the_cause_is_logged_once() {
    let (manager, address, _closed) = unreachable_manager();
    let manager = Manager {
        // The check at startup only applies to clients created by the manager, outside of a Pod.
        config: None,
        ..manager.cache_sync_timeout(Duration::from_secs(4))
    };
    let (error, log) = run_until_failure(manager).await;
    let reason = format!("cannot reach the API server at {address}: ");
    assert!(
        error.starts_with("timed out after 4 s") && error.contains(&reason),
        "{error}"
    );
    assert_eq!(log.matches(&reason).count(), 1, "{log}");
    assert!(!log.contains("watch failed"), "{log}");
}

#[tokio::test]
async fn in_a_pod_the_webhook_certificate_is_retried_and_the_cause_is_logged_once() {
    let (manager, address, _closed) = unreachable_manager();
    let allow = |request: AdmissionRequest| async move { AdmissionResponse::from(&request) };
    let certificate = ManagedCertificate::for_service("webhooks").namespace("system");
    let manager = Manager {
        config: None,
        ..manager.cache_sync_timeout(Duration::from_secs(4))
    };
    let manager = manager
        .raw_webhook("/allow", allow)
        .webhook_certificate(certificate);
    let (error, log) = run_until_failure(manager).await;
    let reason = format!("cannot reach the API server at {address}: ");
    assert!(error.contains(&reason), "{error}");
    assert_eq!(log.matches(&reason).count(), 1, "{log}");
}

#[tokio::test]
async fn metrics_handler_with_an_invalid_path_fails_the_start() {
    let (manager, _, _closed) = unreachable_manager();
    let manager = manager.metrics_handler("/metrics", async |_| http::Response::new(""));
    let (error, _) = run_until_failure(manager).await;
    assert_eq!(
        error,
        "failed to start the metrics server: invalid path `/metrics` of a handler: the metrics are served there"
    );
}

#[tokio::test]
async fn registered_controllers_and_webhooks_are_known_to_tests() {
    let (manager, ..) = unreachable_manager();
    let allow = |request: AdmissionRequest| async move { AdmissionResponse::from(&request) };
    let registered = manager.raw_webhook("/allow", allow).registered();
    assert_eq!(registered.controllers, ["ConfigMap"]);
    assert_eq!(registered.paths, ["/allow"]);
    assert!(registered.converted.is_empty(), "{registered:?}");
}

/// The server responds with an empty object, and records the method, the path and the header
/// `x-layer` of each request.
fn recording_client(requests: &Arc<Mutex<Vec<String>>>) -> Client {
    let requests = Arc::clone(requests);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let layers = request.headers().get_all("x-layer").iter();
        let layers: Vec<_> = layers.filter_map(|value| value.to_str().ok()).collect();
        let (method, path) = (request.method(), request.uri().path());
        requests
            .lock()
            .unwrap()
            .push(format!("{method} {path} {}", layers.join(" ")));
        std::future::ready(Ok::<_, BoxError>(http::Response::new(Body::from(b"{}".to_vec()))))
    });
    Client::new(service, "default")
}

fn mark(
    value: &'static str,
) -> MapRequestLayer<impl Fn(http::Request<Body>) -> http::Request<Body> + Clone + Send + 'static> {
    MapRequestLayer::new(move |mut request: http::Request<Body>| {
        request
            .headers_mut()
            .append("x-layer", http::HeaderValue::from_static(value));
        request
    })
}

#[tokio::test]
async fn client_layers_apply_to_all_requests_except_leader_election() {
    let requests = Arc::default();
    let args = ManagerArgs {
        leader_elect: true,
        ..ManagerArgs::for_tests()
    };
    let manager = Manager::with_client("layers.example.com", recording_client(&requests), args);
    let manager = manager.client_layer(mark("inner")).client_layer(mark("outer"));
    let taken = || std::mem::take(&mut *requests.lock().unwrap());
    let maps = |client: Client| kube::Api::<ConfigMap>::default_namespaced(client);

    maps(manager.client()).get("a").await.unwrap();
    assert_eq!(
        taken(),
        ["GET /api/v1/namespaces/default/configmaps/a outer inner"]
    );
    let refused = maps(manager.leader_client())
        .delete("a", &Default::default())
        .await;
    assert!(refused.unwrap_err().to_string().contains("is not held yet"));
    assert_eq!(
        taken(),
        [""; 0],
        "a write without the lease does not reach the layers"
    );
    maps(manager.election_client.clone()).get("a").await.unwrap();
    assert_eq!(taken(), ["GET /api/v1/namespaces/default/configmaps/a "]);
}
