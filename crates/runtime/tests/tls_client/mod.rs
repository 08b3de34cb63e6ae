//! A client for the operator's webhook server, and the certificate of the server.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

/// Writes a self-signed certificate and its key.
pub(crate) fn write_certificate(folder: &Path) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
    fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    certificate.der().clone()
}

/// Connects with a client that trusts this certificate and nothing else.
pub(crate) async fn connect(
    port: u16,
    trusted: &CertificateDer<'static>,
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Sends a review of a new ConfigMap to the webhook at `/allow`. Returns the HTTP response.
pub(crate) async fn review(port: u16, trusted: &CertificateDer<'static>, uid: &str) -> io::Result<String> {
    let body = review_of_a_config_map(uid).to_string();
    let head =
        "POST /allow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close";
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = connect(port, trusted).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    match stream.read_to_string(&mut response).await {
        // If the server closes the connection without a TLS alert, that is fine.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(response),
    }
}

fn review_of_a_config_map(uid: &str) -> Value {
    let resource = json!({ "group": "", "version": "v1", "resource": "configmaps" });
    let kind = json!({ "group": "", "version": "v1", "kind": "ConfigMap" });
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid, "kind": kind, "resource": resource, "operation": "CREATE",
            "name": "any", "namespace": "default", "userInfo": {},
            "object": { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "any" } },
        },
    })
}
