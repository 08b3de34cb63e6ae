use std::convert::Infallible;

use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

use super::*;
use crate::shutdown;
use crate::tls::tests::{Secret, Shown, connector_of, connector_showing, parsed, pem};
use crate::webhook::Webhook;

/// A cluster that answers every request with this status.
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
        .route(&mut routes);
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
    }
}

async fn refused(setup: Setup<'_>) -> String {
    let (_stop, stopped) = shutdown::channel();
    let started = start(routes(), setup, &Readiness::default(), stopped).await;
    started.map(drop).unwrap_err().to_string()
}

#[tokio::test]
async fn it_is_ready_while_it_shakes_hands() {
    let (certificate, key) = pem();
    let secret = Secret::mount(&certificate, &key);
    let args = args(Some(secret.path()));
    let readiness = Readiness::default();
    let said = readiness.check().await.unwrap_err();
    assert_eq!(said, "the webhook server is not listening yet");

    let (stop, stopped) = shutdown::channel();
    let started = start(routes(), setup(&args, cluster(500)), &readiness, stopped).await;
    let started = started.unwrap();
    started.injected(Duration::ZERO).await.unwrap();
    let serving = tokio::spawn(started.serving);
    readiness.check().await.unwrap();

    stop.now();
    serving.await.unwrap();
    let said = readiness.check().await.unwrap_err();
    assert!(said.starts_with("nobody listens on "), "{said}");
}

/// The kubelet has no certificate that the webhooks would accept, and needs none.
#[tokio::test]
async fn it_is_ready_though_its_clients_need_certificates_of_their_own() {
    let (certificate, key) = pem();
    let secret = Secret::mount(&certificate, &key);
    let args = args(Some(secret.path()));
    let authorities = secret.path().join("tls.crt");
    let setup = Setup {
        client_authorities: Some(&authorities),
        ..setup(&args, cluster(500))
    };
    let (_stop, stopped) = shutdown::channel();
    let readiness = Readiness::default();
    let started = start(routes(), setup, &readiness, stopped).await.unwrap();
    tokio::spawn(started.serving);
    readiness.check().await.unwrap();
}

/// HTTP/1.1 is all that is offered, unless HTTP/2 was asked for.
#[tokio::test]
async fn http2_is_offered_when_it_is_asked_for() {
    for (enabled, offered, expected) in [
        (false, &[&b"h2"[..], b"http/1.1"][..], Some(&b"http/1.1"[..])),
        (true, &[b"h2", b"http/1.1"], Some(b"h2")),
        (true, &[b"http/1.1"], Some(b"http/1.1")),
        (true, &[], None),
    ] {
        let (certificate, key) = pem();
        let secret = Secret::mount(&certificate, &key);
        let args = ManagerArgs {
            enable_http2: enabled,
            ..args(Some(secret.path()))
        };
        let (_stop, stopped) = shutdown::channel();
        let readiness = Readiness::default();
        let started = start(routes(), setup(&args, cluster(500)), &readiness, stopped).await;
        tokio::spawn(started.unwrap().serving);
        let port = readiness.0.lock().unwrap().as_ref().unwrap().address.port();
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let connector = connector_of(&parsed(&certificate), offered);
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), expected);
    }
}

#[tokio::test]
async fn two_sources_of_one_certificate_are_refused() {
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
async fn files_go_before_the_certificate_that_the_code_asks_for() {
    let (certificate, key) = pem();
    let secret = Secret::mount(&certificate, &key);
    let args = args(Some(secret.path()));
    let setup = Setup {
        certificate: Some(ManagedCertificate::for_service("webhooks")),
        ..setup(&args, cluster(500))
    };
    let (_stop, stopped) = shutdown::channel();
    let readiness = Readiness::default();
    let started = start(routes(), setup, &readiness, stopped).await.unwrap();
    assert!(started.injection.is_none());
}

/// An API server that is in trouble is asked again until the time is up; the error is its last word.
#[tokio::test(start_paused = true)]
async fn an_api_server_that_fails_is_asked_again_until_the_time_is_up() {
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

/// So is one that does not answer at all.
#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_is_named_as_the_reason() {
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

/// Who shows no certificate, or one of another authority, gets no answer.
#[tokio::test]
async fn clients_are_held_to_the_authority_that_the_operator_names() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let (certificate, key) = pem();
    let secret = Secret::mount(&certificate, &key);
    let args = args(Some(secret.path()));
    let (authority, known) = client();
    let (_, stranger) = client();
    let authorities = secret.path().join("authorities.crt");
    std::fs::write(&authorities, authority).unwrap();
    let setup = Setup {
        client_authorities: Some(&authorities),
        ..setup(&args, cluster(500))
    };
    let (_stop, stopped) = shutdown::channel();
    let readiness = Readiness::default();
    let started = start(routes(), setup, &readiness, stopped).await.unwrap();
    tokio::spawn(started.serving);
    let port = readiness.0.lock().unwrap().as_ref().unwrap().address.port();
    let ask = async |shown: Option<Shown>| {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let connector = connector_showing(&parsed(&certificate), shown);
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

/// An authority, PEM, and a client that it vouches for.
fn client() -> (String, Shown) {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let authority = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    (authority.pem(), (certificate.der().clone(), key.serialize_der()))
}
