//! Metrics of a manager, and access to them on a real API server. These tests are ignored unless
//! `KUBEBUILDER_ASSETS` is set.

mod access;
mod debug;
#[cfg(feature = "profiling")]
mod profile;
#[allow(dead_code)] // each program uses a part of it
#[path = "../tls_client/mod.rs"]
mod tls_client;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, ResourceExt};
use rbuilder::envtest::{Environment, ReservedPort, eventually};
use rbuilder::metrics::Counter;
use rbuilder::{Action, Controller, Ctx, Error, Manager, ManagerArgs, Result};

use access::{MetricsPort, allow, certificate, token};

const SOON: Duration = Duration::from_secs(20);

/// State with a metric of the operator's own.
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
async fn metrics_are_counted_and_require_permission(env: Environment) {
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
    let port = MetricsPort {
        number: reserved.number(),
        certificate,
    };
    let mut args = ManagerArgs::for_tests();
    args.watch_namespace = namespace.clone();
    args.metrics_bind_address = format!(":{}", port.number);
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
    let readable: (&[_], _) = (&["/metrics", "/debug/allowed"], "get");
    allow(env.client(), &namespace, "reader", &[readable]).await;
    let get = async |path: &str, token: Option<&str>| port.ask("GET", path, token).await;
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
async fn error_about_used_port_names_the_address(env: Environment) {
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

fn value(text: &str, series: &str) -> f64 {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no {series} in {text}"))
}
