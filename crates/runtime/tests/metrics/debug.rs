//! Access to `/debug`, for which each path and verb must be authorized by the API server.

use rbuilder::envtest::{Environment, ReservedPort, eventually};
use rbuilder::{Manager, ManagerArgs};

use crate::SOON;
use crate::access::{MetricsPort, allow, certificate, token};

/// Each path with the status for an authorized client. The duration of the profile is invalid, so
/// that the test doesn't have to wait for it.
const PATHS: [(&str, u16); 8] = [
    ("/debug", 200),
    ("/debug/", 200),
    ("/debug/queues", 200),
    ("/debug/caches", 200),
    ("/debug/clusters", 200),
    ("/debug/runtime", 200),
    ("/debug/log", 200),
    ("/debug/pprof/profile?seconds=0", 400),
];

fn status(answer: &str) -> u16 {
    let code = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    code.and_then(|code| code.parse().ok())
        .unwrap_or_else(|| panic!("no status in {answer}"))
}

fn body(answer: &str) -> &str {
    answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body)
        .unwrap_or_default()
}

#[rbuilder::envtest::test]
async fn debug_endpoints_require_permission(env: Environment) {
    let namespace = env.namespace("debug").await.unwrap();
    let (folder, certificate) = certificate();
    let reserved = ReservedPort::reserve().unwrap();
    let port = MetricsPort {
        number: reserved.number(),
        certificate,
    };
    let args = ManagerArgs {
        // `/debug/log` shows the log set up by `Manager::new`.
        kubeconfig: Some(env.kubeconfig_path().to_owned()),
        watch_namespace: namespace.clone(),
        metrics_bind_address: format!(":{}", port.number),
        metrics_cert_path: Some(folder.path().to_owned()),
        enable_debug_endpoints: true,
        ..ManagerArgs::for_tests()
    };
    let manager = Manager::new("debug.example.com", args).await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(manager.start_until(async {
        let _ = stopped.await;
    }));
    let [stranger, reader, operator] = ["stranger", "reader", "operator"];
    let tokens = [
        token(env.client(), &namespace, stranger).await,
        token(env.client(), &namespace, reader).await,
        token(env.client(), &namespace, operator).await,
    ];
    let [stranger_token, reader_token, operator_token] = &tokens;
    // `/debug/*` doesn't include `/debug`.
    let read: (&[_], _) = (&["/debug", "/debug/*"], "get");
    allow(env.client(), &namespace, reader, &[read]).await;
    allow(
        env.client(),
        &namespace,
        operator,
        &[read, (&["/debug/log"], "put")],
    )
    .await;
    // It takes a moment until the API server has observed a new role, and denials are cached for
    // half a minute.
    eventually(SOON, || async { is_known(&env, &namespace, operator).await }).await;

    for (path, allowed) in PATHS {
        for (token, expected) in [
            (None, 401),
            (Some("forged"), 401),
            (Some(&**stranger_token), 403),
            (Some(&**reader_token), allowed),
        ] {
            let answer = eventually(SOON, || port.ask("GET", path, token)).await;
            assert_eq!(status(&answer), expected, "{path}: {answer}");
            let refused = matches!(expected, 401 | 403);
            assert!(!refused || body(&answer).lines().count() == 1, "{path}: {answer}");
        }
    }
    let change = "/debug/log?log-level=debug";
    let user = |name| format!("user `system:serviceaccount:{namespace}:{name}` cannot put path /debug/log\n");
    for (token, expected, text) in [
        (None, 401, "expected a valid bearer token\n".to_owned()),
        (Some(&**stranger_token), 403, user(stranger)),
        (Some(&**reader_token), 403, user(reader)),
    ] {
        let answer = port.ask("PUT", change, token).await.unwrap();
        assert_eq!((status(&answer), body(&answer)), (expected, &*text));
    }
    let level = async || port.ask("GET", "/debug/log", Some(reader_token)).await.unwrap();
    assert!(
        body(&level().await).starts_with("level info"),
        "{}",
        level().await
    );
    let changed = port.ask("PUT", change, Some(operator_token)).await.unwrap();
    assert_eq!(
        (status(&changed), body(&changed)),
        (200, "level debug\nformat text\n")
    );
    assert_eq!(body(&level().await), "level debug\nformat text\n");

    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

/// Returns `true` once the last role is in effect.
async fn is_known(env: &Environment, namespace: &str, name: &str) -> bool {
    use k8s_openapi::api::authorization::v1::SubjectAccessReview;

    let review = serde_json::json!({ "spec": {
        "user": format!("system:serviceaccount:{namespace}:{name}"),
        "nonResourceAttributes": { "path": "/debug/log", "verb": "put" },
    }});
    let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
    let reviews = kube::Api::<SubjectAccessReview>::all(env.client());
    let answer = reviews.create(&kube::api::PostParams::default(), &review).await;
    answer.unwrap().status.is_some_and(|status| status.allowed)
}
