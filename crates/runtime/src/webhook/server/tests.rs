use std::convert::Infallible;

use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::*;
use crate::shutdown::new_shutdown;
use crate::tls::tests::{
    Secret, Shown, connector_of, connector_showing, localhost_client, localhost_pem, parse_certificate,
};
use crate::webhook::Webhook;

fn cluster(status: u16) -> Client {
    let answer = move |_: Request<Body>| async move {
        let body = format!(r#"{{"kind":"Status","status":"Failure","message":"as asked","code":{status}}}"#);
        let answer = Response::builder()
            .status(status)
            .body(Body::from(body.into_bytes()));
        Ok::<_, Infallible>(answer.unwrap())
    };
    Client::new(tower::service_fn(answer), "default")
}

fn routes() -> Routes {
    let mut routes = Routes::default();
    Webhook::<ConfigMap>::new()
        .validator(|_: &ConfigMap, _, _| Ok::<(), String>(()))
        .add_to(&mut routes);
    routes
}

fn args(folder: Option<&Path>) -> ManagerArgs {
    ManagerArgs {
        webhook_port: 0,
        webhook_cert_path: folder.map(Path::to_owned),
        ..ManagerArgs::for_tests()
    }
}

fn setup(args: &ManagerArgs, client: Client) -> Setup<'_> {
    Setup {
        args,
        certificate: None,
        client_authorities: None,
        client,
        metrics: Metrics::new(),
        timeout: Duration::from_secs(30),
        max_connections: 512,
        memory: None,
        threads: ServerThreads::default(),
    }
}

async fn refused(setup: Setup<'_>) -> String {
    let (_stop, stopped) = new_shutdown();
    let started = start_server(routes(), setup, &Readiness::default(), stopped).await;
    started.map(drop).unwrap_err().to_string()
}

#[tokio::test]
async fn missing_certificate_error_suggests_rbuilder_dev() {
    let folder = tempfile::tempdir().unwrap();
    let args = args(Some(folder.path()));
    let said = refused(setup(&args, cluster(500))).await;
    assert!(said.contains("--webhook-cert-path: cannot read "), "{said}");
    let advice = "; on a development machine, run `rbuilder dev`, which issues a certificate, or set ENABLE_WEBHOOKS=false";
    assert!(said.ends_with(advice), "{said}");

    // A file that exists but is invalid is a different mistake.
    std::fs::write(folder.path().join("tls.crt"), "").unwrap();
    std::fs::write(folder.path().join("tls.key"), "").unwrap();
    let said = refused(setup(&args, cluster(500))).await;
    assert!(said.ends_with("there is no section of that kind"), "{said}");
}

#[tokio::test]
async fn server_is_ready_while_the_handshake_succeeds() {
    let (certificate, key) = localhost_pem();
    let secret = Secret::mount(&certificate, &key);
    let args = args(Some(secret.path()));
    let readiness = Readiness::default();
    let said = readiness.check().await.unwrap_err();
    assert_eq!(said, "the webhook server is not listening yet");

    let (stop, stopped) = new_shutdown();
    let started = start_server(routes(), setup(&args, cluster(500)), &readiness, stopped).await;
    let started = started.unwrap();
    started.injected(Duration::ZERO).await.unwrap();
    let serving = tokio::spawn(started.serving);
    readiness.check().await.unwrap();

    stop.now();
    serving.await.unwrap();
    let said = readiness.check().await.unwrap_err();
    assert!(said.starts_with("cannot connect to "), "{said}");
}

/// The Service leads to the process for a while after the signal, so it keeps answering. Clients
/// must not use their connections again, though.
#[tokio::test]
async fn leaving_server_is_not_ready_and_asks_clients_to_reconnect() {
    let (certificate, key) = localhost_pem();
    let secret = Secret::mount(&certificate, &key);
    let args = args(Some(secret.path()));
    let (readiness, (_stop, stopped)) = (Readiness::default(), new_shutdown());
    let started = start_server(routes(), setup(&args, cluster(500)), &readiness, stopped).await;
    tokio::spawn(started.unwrap().serving);
    let address = readiness.lock().as_ref().unwrap().address;
    let ask = async || {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = connector_of(&parse_certificate(&certificate), &[]);
        let mut stream = connector.connect(name, stream).await.unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .unwrap();
        let mut head = vec![0; 1024];
        let length = stream.read(&mut head).await.unwrap();
        String::from_utf8_lossy(&head[..length]).to_ascii_lowercase()
    };
    readiness.check().await.unwrap();
    let answer = ask().await;
    assert!(
        answer.starts_with("http/1.1 404") && !answer.contains("connection: close"),
        "{answer}"
    );
    readiness.leave();
    assert_eq!(
        readiness.check().await.unwrap_err(),
        "the process is shutting down"
    );
    let answer = ask().await;
    assert!(
        answer.starts_with("http/1.1 404") && answer.contains("connection: close"),
        "{answer}"
    );
}

/// The check doesn't use a client certificate, even if the API server must.
#[tokio::test]
async fn readiness_check_needs_no_client_certificate() {
    let (certificate, key) = localhost_pem();
    let secret = Secret::mount(&certificate, &key);
    let args = args(Some(secret.path()));
    let authorities = secret.path().join("tls.crt");
    let setup = Setup {
        client_authorities: Some(&authorities),
        ..setup(&args, cluster(500))
    };
    let (_stop, stopped) = new_shutdown();
    let readiness = Readiness::default();
    let started = start_server(routes(), setup, &readiness, stopped).await.unwrap();
    tokio::spawn(started.serving);
    readiness.check().await.unwrap();
}

/// By default, only HTTP/1.1 is offered.
#[tokio::test]
async fn http2_is_offered_when_enabled() {
    for (enabled, offered, expected) in [
        (false, &[&b"h2"[..], b"http/1.1"][..], Some(&b"http/1.1"[..])),
        (true, &[b"h2", b"http/1.1"], Some(b"h2")),
        (true, &[b"http/1.1"], Some(b"http/1.1")),
        (true, &[], None),
    ] {
        let (certificate, key) = localhost_pem();
        let secret = Secret::mount(&certificate, &key);
        let args = ManagerArgs {
            enable_http2: enabled,
            ..args(Some(secret.path()))
        };
        let (_stop, stopped) = new_shutdown();
        let readiness = Readiness::default();
        let started = start_server(routes(), setup(&args, cluster(500)), &readiness, stopped).await;
        tokio::spawn(started.unwrap().serving);
        let port = readiness
            .0
            .listening
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .address
            .port();
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let connector = connector_of(&parse_certificate(&certificate), offered);
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), expected);
    }
}

#[tokio::test]
async fn server_binds_to_webhook_host() {
    let check = |host: Option<&str>, expected: &str| {
        let args = ManagerArgs {
            webhook_host: host.map(str::to_owned),
            webhook_port: 9443,
            ..args(None)
        };
        assert_eq!(bind_address(&args), expected);
    };
    check(None, ":9443");
    check(Some("127.0.0.1"), "127.0.0.1:9443");
    check(Some("::1"), "[::1]:9443");
    check(Some("[::1]"), "[::1]:9443");

    let (certificate, key) = localhost_pem();
    let secret = Secret::mount(&certificate, &key);
    let args = ManagerArgs {
        webhook_host: Some("127.0.0.1".to_owned()),
        ..args(Some(secret.path()))
    };
    let (_stop, stopped) = new_shutdown();
    let readiness = Readiness::default();
    let started = start_server(routes(), setup(&args, cluster(500)), &readiness, stopped)
        .await
        .unwrap();
    tokio::spawn(started.serving);
    let address = readiness.0.listening.lock().unwrap().as_ref().unwrap().address;
    assert!(address.ip().is_loopback(), "{address}");
    readiness.check().await.unwrap();
}

#[tokio::test]
async fn certificate_path_and_service_flags_are_exclusive() {
    let args = ManagerArgs {
        webhook_cert_service: Some("webhooks".to_owned()),
        ..args(Some(Path::new("/certificates")))
    };
    assert_eq!(
        refused(setup(&args, cluster(500))).await,
        "invalid value `/certificates` for --webhook-cert-path: with --webhook-cert-service the manager issues the \
         certificate itself; set only one of the two"
    );
}

#[tokio::test]
async fn certificate_files_take_precedence_over_the_managed_certificate() {
    let (certificate, key) = localhost_pem();
    let secret = Secret::mount(&certificate, &key);
    let args = args(Some(secret.path()));
    let setup = Setup {
        certificate: Some(ManagedCertificate::for_service("webhooks")),
        ..setup(&args, cluster(500))
    };
    let (_stop, stopped) = new_shutdown();
    let readiness = Readiness::default();
    let started = start_server(routes(), setup, &readiness, stopped).await.unwrap();
    assert!(started.injection.is_none());
}

/// The error contains the last response before the timeout.
#[tokio::test(start_paused = true)]
async fn failing_requests_are_retried_until_the_timeout() {
    let args = ManagerArgs {
        webhook_cert_service: Some("webhooks".to_owned()),
        ..args(None)
    };
    let started = tokio::time::Instant::now();
    let said = refused(setup(&args, cluster(503))).await;
    let expected =
        "failed to start the webhook server: failed to get Secret default/webhook-server-cert: as asked";
    assert_eq!(said, expected);
    let took = started.elapsed().as_secs();
    assert!((10..=30).contains(&took), "{took} s");
}

/// If there is no response, the error says that the request has timed out.
#[tokio::test(start_paused = true)]
async fn error_reports_a_request_without_response() {
    let args = ManagerArgs {
        webhook_cert_service: Some("webhooks".to_owned()),
        ..args(None)
    };
    let silent =
        tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
    let said = refused(setup(&args, Client::new(silent, "default"))).await;
    let expected = "failed to start the webhook server: failed to get Secret default/webhook-server-cert: request \
                    timed out after 10s";
    assert_eq!(said, expected);
}

/// They do not get a response.
#[tokio::test]
async fn clients_without_a_certificate_are_rejected() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let (certificate, key) = localhost_pem();
    let secret = Secret::mount(&certificate, &key);
    let args = args(Some(secret.path()));
    let (authority, known) = localhost_client();
    let (_, stranger) = localhost_client();
    let authorities = secret.path().join("authorities.crt");
    std::fs::write(&authorities, authority).unwrap();
    let setup = Setup {
        client_authorities: Some(&authorities),
        ..setup(&args, cluster(500))
    };
    let (_stop, stopped) = new_shutdown();
    let readiness = Readiness::default();
    let started = start_server(routes(), setup, &readiness, stopped).await.unwrap();
    tokio::spawn(started.serving);
    let port = readiness
        .0
        .listening
        .lock()
        .unwrap()
        .as_ref()
        .unwrap()
        .address
        .port();
    let ask = async |shown: Option<Shown>| {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let connector = connector_showing(&parse_certificate(&certificate), shown);
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = connector.connect(name, stream).await?;
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    assert!(ask(Some(known)).await.unwrap().starts_with("HTTP/1.1 404 "));
    ask(Some(stranger)).await.unwrap_err();
    ask(None).await.unwrap_err();
}
