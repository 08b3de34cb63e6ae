use std::convert::Infallible;

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

use super::*;
use crate::tls::tests::{Secret, connector_to, localhost_pem};

/// The token is the user name. `prometheus` is authorized, and requests about `down` fail.
fn cluster() -> Client {
    Client::new(tower::service_fn(answer), "default")
}

async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let body = request.into_body().collect_bytes().await.expect("a body");
    let mut review: Value = serde_json::from_slice(&body).expect("JSON");
    let spec = &review["spec"];
    if spec["token"] == "down" {
        return Ok(Response::builder().status(503).body(Body::empty()).unwrap());
    }
    review["status"] = match spec["token"].as_str() {
        Some(token) => json!({"authenticated": token != "nobody", "user": {"username": token}}),
        None => json!({"allowed": spec["user"] == "prometheus"}),
    };
    Ok(Response::new(Body::from(review.to_string().into_bytes())))
}

fn args(secure: bool, certificates: Option<&Path>) -> ManagerArgs {
    ManagerArgs {
        metrics_bind_address: "127.0.0.1:0".to_owned(),
        metrics_secure: secure,
        metrics_cert_path: certificates.map(Path::to_owned),
        ..ManagerArgs::default()
    }
}

async fn start(args: &ManagerArgs) -> SocketAddr {
    let metrics = Metrics::new();
    let cups = metrics.counter("cups_total", "Cups washed.", []).unwrap();
    cups.with([]).inc();
    let mut handlers = Handlers::default();
    handlers.add("/debug".to_owned(), async |request: Request<()>| {
        Response::new(format!("{} {}\n", request.method(), request.uri()))
    });
    let server = MetricsServer::bind(args, metrics, cluster())
        .await
        .unwrap()
        .unwrap()
        .with_handlers(handlers);
    let address = server.address().unwrap();
    tokio::spawn(server.serve(std::future::pending()));
    address
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> String {
    let request = format!("{request}\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn ask_over_tls(address: SocketAddr, trusted: &CertificateDer<'static>, request: &str) -> String {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    ask(
        connector_to(trusted).connect(name, stream).await.unwrap(),
        request,
    )
    .await
}

#[tokio::test]
async fn everyone_may_read_over_plain_http_without_security() {
    let address = start(&args(false, None)).await;
    for (request, status, body) in [
        ("GET /metrics HTTP/1.1", "200 OK", "\ntokio_workers 1\n"),
        ("HEAD /metrics HTTP/1.1", "200 OK", "\r\n\r\n"),
        ("GET / HTTP/1.1", "404 Not Found", "404 page not found\n"),
        ("GET /debug?of=it HTTP/1.1", "200 OK", "GET /debug?of=it\n"),
        ("POST /debug HTTP/1.1", "200 OK", "POST /debug\n"),
        ("GET /debug/ HTTP/1.1", "404 Not Found", "404 page not found\n"),
        ("GET /metrics/ HTTP/1.1", "404 Not Found", "404 page not found\n"),
        (
            "POST /metrics HTTP/1.1",
            "405 Method Not Allowed",
            "expected method GET\n",
        ),
    ] {
        let answer = ask(TcpStream::connect(address).await.unwrap(), request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{request}: {answer}"
        );
        assert!(answer.ends_with(body), "{request}: {answer}");
    }
    let answer = ask(
        TcpStream::connect(address).await.unwrap(),
        "GET /metrics HTTP/1.1",
    )
    .await;
    assert!(
        answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("\nprocess_resident_memory_bytes ") || !cfg!(target_os = "linux"),
        "{answer}"
    );
    assert!(answer.contains("\ncups_total 1\n"), "{answer}");
}

#[tokio::test]
async fn only_authorized_users_may_read_with_security() {
    let (certificate, key) = localhost_pem();
    let secret = Secret::mount(&certificate, &key);
    let address = start(&args(true, Some(secret.path()))).await;
    let trusted = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    for (authorization, status, part) in [
        ("", "401 Unauthorized", "www-authenticate: Bearer\r\n"),
        (
            "\r\nAuthorization: Bearer nobody",
            "401 Unauthorized",
            "expected a valid bearer token",
        ),
        (
            "\r\nAuthorization: Bearer stranger",
            "403 Forbidden",
            "user `stranger` cannot get path /metrics",
        ),
        (
            "\r\nAuthorization: Bearer down",
            "500 Internal Server Error",
            "failed to authorize the request",
        ),
        ("\r\nAuthorization: Bearer prometheus", "200 OK", "cups_total 1\n"),
    ] {
        let request = format!("GET /metrics HTTP/1.1{authorization}");
        let answer = ask_over_tls(address, &trusted, &request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{authorization}: {answer}"
        );
        assert!(answer.contains(part), "{authorization}: {answer}");
        assert_eq!(
            answer.contains("cups_total"),
            status == "200 OK",
            "{authorization}"
        );
    }
}

#[tokio::test]
async fn handlers_only_answer_authorized_users_with_security() {
    let (certificate, key) = localhost_pem();
    let secret = Secret::mount(&certificate, &key);
    let address = start(&args(true, Some(secret.path()))).await;
    let trusted = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    for (authorization, status, body) in [
        ("", "401 Unauthorized", "expected a valid bearer token\n"),
        (
            "\r\nAuthorization: Bearer stranger",
            "403 Forbidden",
            "user `stranger` cannot post path /debug\n",
        ),
        (
            "\r\nAuthorization: Bearer prometheus",
            "200 OK",
            "POST /debug?all\n",
        ),
    ] {
        let request = format!("POST /debug?all HTTP/1.1{authorization}");
        let answer = ask_over_tls(address, &trusted, &request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{authorization}: {answer}"
        );
        assert!(
            answer.ends_with(&format!("\r\n\r\n{body}")),
            "{authorization}: {answer}"
        );
    }
}

#[tokio::test]
async fn self_signed_certificate_is_used_without_files() {
    let address = start(&args(true, None)).await;
    let (other, _) = localhost_pem();
    let trusted = CertificateDer::from_pem_slice(other.as_bytes()).unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let connected = connector_to(&trusted)
        .connect(ServerName::try_from("localhost").unwrap(), stream)
        .await;
    let error = connected.map(drop).unwrap_err().to_string();
    assert!(
        error.contains("invalid peer certificate"),
        "it speaks TLS, as nobody the client knows: {error}"
    );

    let plain = TcpStream::connect(address).await.unwrap();
    let mut answer = Vec::new();
    let mut plain = plain;
    plain
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "nothing is sent unencrypted");
}

#[tokio::test]
async fn errors_name_the_flags() {
    let check = async |args: ManagerArgs, expected: &str| {
        let error = MetricsServer::bind(&args, Metrics::new(), cluster())
            .await
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let address = ManagerArgs {
        metrics_bind_address: "8443".to_owned(),
        ..ManagerArgs::default()
    };
    check(
        address,
        "--metrics-bind-address: invalid bind address `8443`: expected `:8081`",
    )
    .await;
    check(
        args(true, Some(Path::new("/no/such"))),
        "--metrics-cert-path: cannot read /no/such/tls.crt: ",
    )
    .await;
    let off = MetricsServer::bind(&ManagerArgs::default(), Metrics::new(), cluster())
        .await
        .unwrap();
    assert!(off.is_none());
}
