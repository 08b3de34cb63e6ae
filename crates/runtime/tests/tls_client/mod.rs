//! A client of the operator's HTTPS servers, and certificates for them.

use std::fmt::Write as _;
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

/// Writes a self-signed certificate.
pub(crate) fn write_certificate(folder: &Path) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
    fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    certificate.der().clone()
}

/// The client only trusts this certificate.
pub(crate) fn connector(trusted: &CertificateDer<'static>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// The client only trusts this certificate.
pub(crate) async fn connect(
    port: u16,
    trusted: &CertificateDer<'static>,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from("localhost").unwrap();
    connector(trusted).connect(name, stream).await
}

/// `line` is the method and the path. The returned response includes its head.
pub(crate) async fn ask(
    port: u16,
    trusted: &CertificateDer<'static>,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<String> {
    let mut request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        write!(request, "{name}: {value}\r\n").unwrap();
    }
    if !body.is_empty() {
        write!(request, "Content-Length: {}\r\n", body.len()).unwrap();
    }
    let mut stream = connect(port, trusted).await?;
    stream
        .write_all(format!("{request}\r\n{body}").as_bytes())
        .await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

/// Returns a review for the creation of a ConfigMap.
pub(crate) fn review_of_a_config_map(uid: &str) -> Value {
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
