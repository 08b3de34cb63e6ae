//! Tests with credentials that are replaced while the client is in use.

use std::path::Path;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::*;
use crate::client::{ClientSettings, new_manager_client};
use crate::metrics::Metrics;
use crate::tls::Certificates;
use crate::tls::tests::{current_certificate, parse_certificate};

/// What the client presented with each request: the `Authorization` header or the certificate.
type Shown = Arc<Mutex<Vec<Vec<u8>>>>;

type Accepts = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Responds with either an object or a 401.
async fn respond<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    certificate: Option<CertificateDer<'static>>,
    shown: &Shown,
    accepts: &Accepts,
) {
    let mut head = vec![0; 4096];
    let length = stream.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let authorization = lines
        .filter(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        .map(|(_, value)| value.as_bytes().to_vec())
        .next();
    let who = certificate
        .map(|der| der.to_vec())
        .or(authorization)
        .unwrap_or_default();
    let (status, body) = match accepts(&who) {
        true => (
            "200 OK",
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"any"}}"#,
        ),
        false => (
            "401 Unauthorized",
            r#"{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Unauthorized","code":401}"#,
        ),
    };
    shown.lock().unwrap().push(who);
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    let _ = stream.write_all((head + body).as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn serve(accepts: Accepts) -> (Config, Shown) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let shown = Shown::default();
    let log = Arc::clone(&shown);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            respond(stream, None, &log, &accepts).await;
        }
    });
    (Config::new(url.parse().unwrap()), shown)
}

/// Starts an HTTPS server that requires a certificate issued by `authority`.
async fn serve_tls(authority: &Path, accepts: Accepts) -> (Config, Shown) {
    let certificates = Certificates::self_signed().unwrap();
    let acceptor = certificates.acceptor(Some(authority), false).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let shown = Shown::default();
    let log = Arc::clone(&shown);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else {
                continue;
            };
            let certificate = stream
                .get_ref()
                .1
                .peer_certificates()
                .map(|chain| chain[0].clone().into_owned());
            respond(stream, certificate, &log, &accepts).await;
        }
    });
    let mut config = Config::new(url.parse().unwrap());
    config.root_cert = Some(vec![current_certificate(&certificates).to_vec()]);
    (config, shown)
}

fn new_client(config: Config) -> Client {
    new_manager_client(config, &Metrics::new(), &ClientSettings::default()).unwrap()
}

async fn get(client: &Client) -> u16 {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    match maps.get("any").await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error:?}"),
    }
}

/// The plugin prints the file `status`, and records each run.
fn plug_in(folder: &Path) -> AuthInfo {
    let script = format!(
        "echo run >> {0}/runs; printf '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\
         \"status\":%s}}' \"$(cat {0}/status)\"",
        folder.display()
    );
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
        "interactiveMode": "Never",
    });
    serde_json::from_value(json!({ "exec": exec })).unwrap()
}

fn write_status(folder: &Path, status: &serde_json::Value) {
    std::fs::write(folder.join("status"), status.to_string()).unwrap();
}

fn runs(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("runs"))
        .unwrap()
        .lines()
        .count()
}

/// Accepts a single token, which the test can change.
fn revocable(valid: &'static str) -> (Arc<Mutex<&'static str>>, Accepts) {
    let valid = Arc::new(Mutex::new(valid));
    let current = Arc::clone(&valid);
    let accepts = move |shown: &[u8]| shown == format!("Bearer {}", *current.lock().unwrap()).as_bytes();
    (valid, Arc::new(accepts))
}

#[tokio::test]
async fn plugin_without_expiry_runs_again_after_a_401() {
    let folder = tempfile::tempdir().unwrap();
    write_status(folder.path(), &json!({ "token": "old" }));
    let (valid, accepts) = revocable("old");
    let (mut config, shown) = serve(accepts).await;
    config.auth_info = plug_in(folder.path());
    let client = new_client(config);
    let runs_each_time = runs(folder.path());
    for _ in 0..3 {
        assert_eq!(get(&client).await, 200);
    }
    assert_eq!(runs(folder.path()), runs_each_time);

    *valid.lock().unwrap() = "new";
    write_status(folder.path(), &json!({ "token": "new" }));
    assert_eq!(get(&client).await, 401);
    assert_eq!(get(&client).await, 200);
    assert_eq!(runs(folder.path()), 2 * runs_each_time);
    assert_eq!(shown.lock().unwrap().last().unwrap(), b"Bearer new");
}

#[tokio::test]
async fn rejected_credentials_are_not_renewed_on_every_request() {
    let folder = tempfile::tempdir().unwrap();
    write_status(folder.path(), &json!({ "token": "old" }));
    let (_, accepts) = revocable("unknown");
    let (mut config, shown) = serve(accepts).await;
    config.auth_info = plug_in(folder.path());
    let client = new_client(config);
    let runs_each_time = runs(folder.path());
    let requests = (0..20).map(|_| get(&client));
    assert_eq!(futures::future::join_all(requests).await, [401; 20]);
    assert_eq!(get(&client).await, 401);
    assert_eq!(runs(folder.path()), 2 * runs_each_time);

    // A failing plugin must not affect the current credentials.
    std::fs::remove_file(folder.path().join("status")).unwrap();
    tokio::time::pause();
    tokio::time::advance(BETWEEN_RENEWALS).await;
    tokio::time::resume();
    assert_eq!(get(&client).await, 401);
    assert!(runs(folder.path()) > 2 * runs_each_time);
    assert_eq!(get(&client).await, 401);
    assert_eq!(shown.lock().unwrap().last().unwrap(), b"Bearer old");
}

#[tokio::test]
async fn token_file_is_reread_after_a_401() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "old").unwrap();
    let (valid, accepts) = revocable("old");
    let (mut config, _) = serve(accepts).await;
    config.auth_info.token_file = Some(token.display().to_string());
    let client = new_client(config);
    assert_eq!(get(&client).await, 200);
    *valid.lock().unwrap() = "new";
    std::fs::write(&token, "new").unwrap();
    assert_eq!(get(&client).await, 401);
    assert_eq!(get(&client).await, 200);
}

#[tokio::test]
async fn fixed_credentials_are_not_reread() {
    let (_, accepts) = revocable("unknown");
    let (mut config, shown) = serve(accepts).await;
    config.auth_info = serde_json::from_value(json!({ "token": "fixed" })).unwrap();
    assert!(!can_change(&config.auth_info));
    let client = new_client(config);
    assert_eq!(get(&client).await, 401);
    assert_eq!(*shown.lock().unwrap(), [b"Bearer fixed"]);
}

struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.crt"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Returns the certificate and key as PEM, and the certificate as DER.
    fn issue(&self) -> (String, String, Vec<u8>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let der = parse_certificate(&certificate.pem()).to_vec();
        (certificate.pem(), key.serialize_pem(), der)
    }
}

#[tokio::test]
async fn client_certificate_files_are_reread_once_a_minute() {
    let authority = Authority::new();
    let (config, shown) = serve_tls(Path::new(&authority.path("ca.crt")), Arc::new(|_| true)).await;
    let (certificate, key) = (authority.path("tls.crt"), authority.path("tls.key"));
    let (first_pem, first_key, first) = authority.issue();
    std::fs::write(&certificate, first_pem).unwrap();
    std::fs::write(&key, first_key).unwrap();
    let mut config = config;
    config.auth_info.client_certificate = Some(certificate.clone());
    config.auth_info.client_key = Some(key.clone());
    let client = new_client(config);
    assert_eq!(get(&client).await, 200);

    let pass_a_minute = async || {
        tokio::time::pause();
        tokio::time::advance(FILE_INTERVAL).await;
        tokio::time::resume();
    };
    let (second_pem, second_key, second) = authority.issue();
    std::fs::write(&certificate, second_pem).unwrap();
    assert_eq!(get(&client).await, 200);
    pass_a_minute().await;
    // The old pair stays in use, because the new certificate doesn't match the key yet.
    assert_eq!(get(&client).await, 200);
    std::fs::write(&key, second_key).unwrap();
    pass_a_minute().await;
    assert_eq!(get(&client).await, 200);
    assert_eq!(
        *shown.lock().unwrap(),
        [&first, &first, &first, &second].map(Clone::clone)
    );
}

#[tokio::test]
async fn plugin_certificate_is_replaced_after_a_401() {
    let authority = Authority::new();
    let (old_pem, old_key, _) = authority.issue();
    let (new_pem, new_key, new) = authority.issue();
    let accepted = new.clone();
    let accepts: Accepts = Arc::new(move |shown| shown == accepted);
    let (mut config, _) = serve_tls(Path::new(&authority.path("ca.crt")), accepts).await;
    let folder = authority.folder.path();
    let status =
        |certificate: &str, key: &str| json!({ "clientCertificateData": certificate, "clientKeyData": key });
    write_status(folder, &status(&old_pem, &old_key));
    config.auth_info = plug_in(folder);
    let client = new_client(config);
    write_status(folder, &status(&new_pem, &new_key));
    assert_eq!(get(&client).await, 401);
    assert_eq!(get(&client).await, 200);
}
