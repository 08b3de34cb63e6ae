use std::sync::mpsc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchParams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::timeout::IDLE_TIMEOUT;
use super::*;
use crate::causes::describe_causes;
use crate::logging::LogBuffer;

/// The server responds to the first request on each connection and then goes silent.
async fn client(response: &'static str) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(respond(stream, response));
        }
    });
    let config = Config::new(url.parse().unwrap());
    new_manager_client(config, &Metrics::new(), &ClientSettings::default()).unwrap()
}

async fn respond(mut stream: TcpStream, response: &str) {
    let mut head = [0; 4096];
    let _ = stream.read(&mut head).await;
    let _ = stream.write_all(response.as_bytes()).await;
    std::future::pending::<()>().await;
}

fn assert_timed_out(started: Instant) {
    let waited = started.elapsed();
    assert!(waited >= IDLE_TIMEOUT && waited < IDLE_TIMEOUT * 2, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn request_without_response_times_out() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client("").await);
    let started = Instant::now();
    let error = maps.get("any").await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    assert_timed_out(started);
}

#[tokio::test]
async fn each_warning_of_the_api_server_is_logged_once() {
    let (log, _guard) = LogBuffer::start();
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"any"}}"#;
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nwarning: 299 - \"unknown field \\\"a\\\"\"\r\n\
         warning: 299 - \"old\"\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let maps: Api<ConfigMap> = Api::default_namespaced(client(response.leak()).await);
    for _ in 0..2 {
        maps.get("any").await.unwrap();
    }
    let log = log.text();
    let count = |text: &str| log.matches(text).count();
    assert_eq!(count(r#"warning=unknown field "a""#), 1, "{log}");
    assert_eq!(count("warning=old"), 1, "{log}");
    assert_eq!(count("GET /api/v1/namespaces/default/configmaps/any"), 2, "{log}");
}

#[tokio::test(start_paused = true)]
async fn watch_without_data_times_out() {
    let response = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let maps: Api<ConfigMap> = Api::default_namespaced(client(response).await);
    let events = maps.watch(&WatchParams::default(), "1").await.unwrap();
    let started = Instant::now();
    let mut events = std::pin::pin!(events);
    let error = futures::StreamExt::next(&mut events).await.unwrap().unwrap_err();
    assert!(matches!(error, kube::Error::ReadEvents(_)), "{error:?}");
    assert_timed_out(started);
}

/// The receiver yields the head of each request.
async fn recording_client(
    status: &'static str,
    settings: &ClientSettings,
) -> (Client, mpsc::Receiver<String>) {
    let (heads, received) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).await.unwrap();
            let _ = heads.send(String::from_utf8_lossy(&head[..length]).into_owned());
            let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"any"},"items":[]}"#;
            let response = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    let config = Config::new(url.parse().unwrap());
    (
        new_manager_client(config, &Metrics::new(), settings).unwrap(),
        received,
    )
}

#[tokio::test]
async fn create_answered_with_504_is_sent_once() {
    let (client, received) = recording_client("504 Gateway Timeout", &ClientSettings::default()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &ConfigMap::default())
        .await
        .unwrap_err();
    assert_eq!(received.try_iter().count(), 1);
}

#[tokio::test]
async fn requests_carry_a_user_agent_and_a_timeout() {
    let settings = ClientSettings::default();
    let (client, received) = recording_client("200 OK", &settings).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let path = "/api/v1/namespaces/default/configmaps";
    let check = |line: &str, user_agent: &str| {
        let head = received.recv().unwrap();
        assert!(head.starts_with(&format!("{line} HTTP/1.1\r\n")), "{head}");
        let user_agent = format!("\r\nuser-agent: {user_agent}");
        assert!(head.contains(&user_agent), "{head}");
    };
    let executable = std::env::args().next().unwrap();
    let name = executable.rsplit('/').next().unwrap();
    maps.list(&ListParams::default().limit(5)).await.unwrap();
    check(
        &format!("GET {path}?&limit=5&timeout=90s"),
        &format!("{name}/unknown rbuilder/"),
    );

    settings.user_agent.set("memcached-operator/1.2.0");
    let sent = maps.watch(&WatchParams::default(), "1").await;
    drop(sent);
    let head = received.recv().unwrap();
    assert!(
        head.contains("watch=true") && !head.contains("timeout=90s"),
        "{head}"
    );
    assert!(
        head.contains("\r\nuser-agent: memcached-operator/1.2.0 rbuilder/"),
        "{head}"
    );

    let params = PatchParams::apply("memcached").force();
    let patch = Patch::Apply(ConfigMap::default());
    maps.patch("any", &params, &patch).await.unwrap();
    let query = "force=true&fieldManager=memcached&timeout=90s";
    check(
        &format!("PATCH {path}/any?&{query}"),
        "memcached-operator/1.2.0 rbuilder/",
    );
}

#[tokio::test]
async fn user_agent_of_the_configuration_is_kept() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut config = Config::new(url.parse().unwrap());
    let own = http::HeaderValue::from_static("own/1");
    config.headers.push((http::header::USER_AGENT, own));
    let client = new_manager_client(config, &Metrics::new(), &ClientSettings::default()).unwrap();
    tokio::spawn(async move { client.apiserver_version().await });
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = [0; 4096];
    let length = stream.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    assert!(head.contains("\r\nuser-agent: own/1\r\n"), "{head}");
}

#[tokio::test]
async fn client_with_a_field_manager_names_it_in_writes() {
    let (client, received) = recording_client("200 OK", &ClientSettings::default()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(with_field_manager(client, "memo & co"));
    let line = || received.recv().unwrap().lines().next().unwrap().to_owned();
    maps.get("any").await.unwrap();
    assert!(!line().contains("fieldManager"));
    maps.create(&PostParams::default(), &ConfigMap::default())
        .await
        .unwrap();
    assert!(line().contains("fieldManager=memo%20%26%20co&"));
    let patch = Patch::Merge(ConfigMap::default());
    maps.patch("any", &PatchParams::default(), &patch).await.unwrap();
    assert!(line().contains("fieldManager=memo%20%26%20co&"));
    let params = PatchParams::apply("other");
    maps.patch("any", &params, &patch).await.unwrap();
    assert!(line().contains("fieldManager=other&"));
}

#[tokio::test(start_paused = true)]
async fn flow_control_applies_to_the_client() {
    let settings = ClientSettings::default();
    settings.flow_control.set(1, 1);
    let (client, _received) = recording_client("200 OK", &settings).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let started = Instant::now();
    for _ in 0..3 {
        maps.get("any").await.unwrap();
    }
    assert_eq!(started.elapsed().as_secs(), 2);
}

#[tokio::test]
async fn token_with_a_line_break_is_rejected() {
    let mut config = Config::new("http://127.0.0.1:1".parse().unwrap());
    config.auth_info = serde_json::from_value(serde_json::json!({ "token": "s3cr3t\n" })).unwrap();
    let error = new_manager_client(config, &Metrics::new(), &ClientSettings::default())
        .err()
        .unwrap();
    let text = describe_causes(&error);
    assert!(
        text.contains("the token has a line break") && !text.contains("s3cr3t"),
        "{text}"
    );
}

#[tokio::test]
async fn password_in_the_address_is_not_shown() {
    let config = Config::new("http://me:s3cr3t@127.0.0.1:1".parse().unwrap());
    let metrics = Metrics::new();
    let client = new_manager_client(config, &metrics, &ClientSettings::default()).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let text = describe_causes(&maps.get("any").await.unwrap_err());
    assert!(text.contains("at http://127.0.0.1:1"), "{text}");
    assert!(
        !text.contains("s3cr3t") && !metrics.text().contains("s3cr3t"),
        "{text}"
    );
}
