use std::time::Duration;

use super::*;
use crate::controller::MappingErrors;
use crate::metrics::Metrics;
use crate::object::Key;
use crate::queue::{LOW, NORMAL, Workqueue};

async fn ask(state: &Arc<DebugState>, method: Method, target: &str) -> (StatusCode, String) {
    let mut handlers = Handlers::default();
    add_endpoints(&mut handlers, state, false);
    assert_eq!(handlers.first_error(), None);
    let request = Request::builder().method(method).uri(target).body(()).unwrap();
    let path = request.uri().path().to_owned();
    let reply = handlers.at(&path).expect("an endpoint")(request).await;
    let (parts, body) = reply.into_parts();
    let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
    (parts.status, String::from_utf8(body.to_vec()).unwrap())
}

fn key(name: &str) -> Key {
    Key {
        namespace: Some("shop".into()),
        name: name.into(),
    }
}

/// Creates a controller `memo` whose queue contains a key in each stage.
async fn busy_controller() -> (Arc<DebugState>, Arc<Workqueue<Key>>) {
    let queue = Arc::new(Workqueue::new(Metrics::new().queue("memo")));
    queue.add(key("running"), NORMAL);
    assert_eq!(queue.next().await, Some(key("running")));
    queue.add(key("running"), NORMAL);
    tokio::time::advance(Duration::from_secs(3)).await;
    queue.add(key("listed"), LOW);
    queue.add(key("changed"), NORMAL);
    queue.add_failed(key("failing"), NORMAL);
    queue.add_after(key("later"), Duration::from_secs(60), NORMAL);
    let state = Arc::new(DebugState::default());
    state.add_queues([ControllerQueue::new(
        "memo",
        "Memo (example.com/v1)".to_owned(),
        4,
        &queue,
        MappingErrors::new("memo", Metrics::new().mapping_errors("memo")),
    )]);
    (state, queue)
}

#[tokio::test(start_paused = true)]
async fn queues_list_keys_in_progress_waiting_and_failing() {
    let (state, queue) = busy_controller().await;
    let (status, text) = ask(&state, Method::GET, "/debug/queues").await;
    assert_eq!(status, StatusCode::OK);
    let expected = "\
memo: Memo (example.com/v1), workers 4, in progress 1, ready 2, delayed 2
  in progress for 3.000 s, again priority 0     failures 0    shop/running
  ready for 0.000 s            priority 0     failures 0    shop/changed
  ready for 0.000 s            priority -100  failures 0    shop/listed
  due in 0.005 s               priority 0     failures 1    shop/failing
  due in 60.000 s              priority 0     failures 0    shop/later
";
    assert_eq!(text, expected);

    let (_, json) = ask(&state, Method::GET, "/debug/queues?format=json&limit=1").await;
    let json: Value = serde_json::from_str(&json).unwrap();
    let expected = serde_json::json!([{
        "controller": "memo", "kind": "Memo (example.com/v1)", "workers": 4,
        "inProgress": 1, "ready": 2, "delayed": 2,
        "mappingErrors": { "count": 0, "last": null },
        "keys": [{
            "namespace": "shop", "name": "running", "state": "inProgress", "seconds": 3.0, "again": true,
            "priority": 0, "failures": 0,
        }],
    }]);
    assert_eq!(json, expected);

    let (_, text) = ask(&state, Method::GET, "/debug/queues?limit=2").await;
    assert!(text.ends_with("\n  … and 3 more; see ?limit=\n"), "{text}");
    drop(queue);
    let (_, text) = ask(&state, Method::GET, "/debug/queues").await;
    assert_eq!(text, "", "the controller has ended");
}

/// Pretends that each key has failed seven times.
struct Seven;

impl crate::rate_limiter::RateLimiter<Key> for Seven {
    fn when(&self, _: &Key) -> Duration {
        Duration::from_secs(1)
    }

    fn forget(&self, _: &Key) {}

    fn num_requeues(&self, key: &Key) -> u32 {
        assert_eq!(&*key.name, "failing");
        7
    }
}

#[tokio::test(start_paused = true)]
async fn failures_come_from_the_rate_limiter() {
    let queue = Workqueue::new(Metrics::new().queue("memo")).with_rate_limiter(Box::new(Seven));
    queue.add_failed(key("failing"), NORMAL);
    assert_eq!(queue.snapshot(10).keys[0].failures, 7);
}

#[tokio::test(start_paused = true)]
async fn invalid_requests_are_errors() {
    let (state, _queue) = busy_controller().await;
    for (method, target, status, text) in [
        (
            Method::GET,
            "/debug/queues?controller=cup",
            404,
            "there is no controller `cup`\n",
        ),
        (
            Method::GET,
            "/debug/queues?limit=all",
            400,
            "expected a number: ?limit=1000\n",
        ),
        (
            Method::GET,
            "/debug/queues?limit=%",
            400,
            "invalid query `limit=%`: expected percent-encoded UTF-8\n",
        ),
        (Method::PUT, "/debug/queues", 405, "expected method GET\n"),
        (Method::DELETE, "/debug/log", 405, "expected method GET or PUT\n"),
        (
            Method::PUT,
            "/debug/log?log-level=debug",
            501,
            "the operator has installed a log subscriber of its own, which rbuilder cannot change\n",
        ),
    ] {
        let found = ask(&state, method, target).await;
        assert_eq!((found.0.as_u16(), &*found.1), (status, text), "{target}");
    }
    let (status, text) = ask(&state, Method::GET, "/debug/queues?controller=memo").await;
    assert!(status == StatusCode::OK && text.starts_with("memo: "), "{text}");
}

#[tokio::test]
async fn index_and_runtime_are_served() {
    let state = Arc::new(DebugState::default());
    for path in ["/debug", "/debug/"] {
        assert_eq!(
            ask(&state, Method::HEAD, path).await,
            (StatusCode::OK, INDEX.to_owned())
        );
    }
    let (_, json) = ask(&state, Method::GET, "/debug/runtime?format=json").await;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["workers"].as_array().map(Vec::len), Some(1), "{json}");
    let (_, text) = ask(&state, Method::GET, "/debug/runtime").await;
    assert!(text.starts_with("aliveTasks "), "{text}");
    assert!(
        text.contains("residentBytes ") || !cfg!(target_os = "linux"),
        "{text}"
    );
}
