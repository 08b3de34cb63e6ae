use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder};

use super::*;

/// The client only trusts this certificate.
pub(crate) fn connector_to(trusted: &CertificateDer<'static>) -> TlsConnector {
    connector_of(trusted, &[])
}

/// Also offers the given protocols.
pub(crate) fn connector_of(trusted: &CertificateDer<'static>, protocols: &[&[u8]]) -> TlsConnector {
    let mut config = client(trusted).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

/// A client certificate and its key (PKCS #8).
pub(crate) type Shown = (CertificateDer<'static>, Vec<u8>);

/// Also presents a client certificate.
pub(crate) fn connector_showing(trusted: &CertificateDer<'static>, shown: Option<Shown>) -> TlsConnector {
    let config = match shown {
        None => client(trusted).with_no_client_auth(),
        Some((certificate, key)) => client(trusted)
            .with_client_auth_cert(vec![certificate], PrivatePkcs8KeyDer::from(key).into())
            .unwrap(),
    };
    TlsConnector::from(Arc::new(config))
}

fn client(trusted: &CertificateDer<'static>) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate can be parsed");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    config.with_root_certificates(roots)
}

/// Issues a client certificate, along with its CA in PEM.
pub(crate) fn localhost_client() -> (String, Shown) {
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

pub(crate) fn current_certificate(certificates: &Certificates) -> CertificateDer<'static> {
    certificates.current().cert[0].clone()
}

async fn connect(
    certificates: &Arc<Certificates>,
    trusted: &CertificateDer<'static>,
    name: &'static str,
) -> io::Result<TlsStream<TcpStream>> {
    let acceptor = certificates.acceptor(None, false).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        let mut stream = acceptor.accept(stream).await?;
        let mut word = [0; 5];
        stream.read_exact(&mut word).await?;
        stream.write_all(&word).await?;
        stream.shutdown().await
    });
    let stream = TcpStream::connect(address).await?;
    let mut stream = connector_to(trusted)
        .connect(ServerName::try_from(name).unwrap(), stream)
        .await?;
    stream.write_all(b"hello").await?;
    let mut echo = String::new();
    stream.read_to_string(&mut echo).await?;
    assert_eq!(echo, "hello");
    server.await.unwrap()?;
    Ok(stream)
}

#[tokio::test]
async fn client_that_trusts_the_self_signed_certificate_can_verify_it() {
    let certificates = Certificates::self_signed().unwrap();
    let trusted = current_certificate(&certificates);
    connect(&certificates, &trusted, "localhost").await.unwrap();

    let error = connect(&certificates, &trusted, "elsewhere.example.com")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("not valid for name"), "{error}");
    let other = current_certificate(&Certificates::self_signed().unwrap());
    connect(&certificates, &other, "localhost")
        .await
        .expect_err("another key has not signed it");
}

/// Mimics a directory in which the kubelet mounts a Secret. The files are symlinks into `..data`,
/// which is itself a symlink to a directory, so it can be replaced atomically.
pub(crate) struct Secret {
    folder: TempDir,
    version: u32,
}

impl Secret {
    pub(crate) fn mount(certificate: &str, key: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in ["tls.crt", "tls.key"] {
            std::os::unix::fs::symlink(format!("..data/{file}"), folder.path().join(file)).unwrap();
        }
        let mut secret = Self { folder, version: 0 };
        secret.update(certificate, key);
        secret
    }

    pub(crate) fn update(&mut self, certificate: &str, key: &str) {
        self.version += 1;
        let (data, next) = (
            format!("..{}", self.version),
            self.folder.path().join("..data_tmp"),
        );
        let path = self.folder.path().join(&data);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("tls.crt"), certificate).unwrap();
        std::fs::write(path.join("tls.key"), key).unwrap();
        std::os::unix::fs::symlink(&data, &next).unwrap();
        std::fs::rename(next, self.folder.path().join("..data")).unwrap();
    }

    pub(crate) fn files(&self) -> Files {
        Files {
            certificate: self.folder.path().join("tls.crt"),
            key: self.folder.path().join("tls.key"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

pub(crate) fn localhost_pem() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

pub(crate) fn parse_certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// Loads the certificate from the files of a Secret, and keeps reloading it in the background.
fn watched(secret: &Secret, metrics: &Metrics) -> Arc<Certificates> {
    let (certificates, watch) = Certificates::from_files(secret.files(), metrics.clone()).unwrap();
    tokio::spawn(watch);
    certificates
}

fn reads(metrics: &Metrics) -> (String, String) {
    let text = metrics.text();
    let value = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    };
    (
        value("certwatcher_read_certificate_total"),
        value("certwatcher_read_certificate_errors_total"),
    )
}

/// The paused clock advances as soon as all tasks are idle.
async fn next_poll() {
    tokio::time::sleep(POLL_INTERVAL + Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn replaced_secret_is_served_without_a_restart() {
    let ((old, old_key), (new, new_key)) = (localhost_pem(), localhost_pem());
    let mut secret = Secret::mount(&old, &old_key);
    let metrics = Metrics::new();
    let certificates = watched(&secret, &metrics);
    assert_eq!(current_certificate(&certificates), parse_certificate(&old));
    connect(&certificates, &parse_certificate(&old), "localhost")
        .await
        .unwrap();

    secret.update(&new, &new_key);
    next_poll().await;
    assert_eq!(current_certificate(&certificates), parse_certificate(&new));
    connect(&certificates, &parse_certificate(&new), "localhost")
        .await
        .unwrap();
    assert_eq!(reads(&metrics).1, "0");
}

#[tokio::test(start_paused = true)]
async fn unusable_files_are_counted_and_the_old_certificate_stays() {
    let ((old, old_key), (new, new_key)) = (localhost_pem(), localhost_pem());
    let mut secret = Secret::mount(&old, &old_key);
    let metrics = Metrics::new();
    let certificates = watched(&secret, &metrics);
    for (certificate_text, key) in [("", &*new_key), (&*new, &*old_key), (&*new, "no key")] {
        let before = reads(&metrics).1.parse::<u32>().unwrap();
        secret.update(certificate_text, key);
        next_poll().await;
        assert_eq!(current_certificate(&certificates), parse_certificate(&old));
        assert!(reads(&metrics).1.parse::<u32>().unwrap() > before);
    }
    secret.update(&new, &new_key);
    next_poll().await;
    assert_eq!(current_certificate(&certificates), parse_certificate(&new));
}

#[tokio::test]
async fn unusable_files_at_startup_are_an_error_that_names_them() {
    let check = |certificate: &str, key: &str, expected: &str| {
        let secret = Secret::mount(certificate, key);
        let error = Certificates::from_files(secret.files(), Metrics::new())
            .map(drop)
            .unwrap_err()
            .to_string();
        let error = error.replace(secret.path().to_str().unwrap(), "DIR");
        assert!(error.starts_with(expected), "{error}");
    };
    let ((certificate, key), (_, other_key)) = (localhost_pem(), localhost_pem());
    check(
        "",
        &key,
        "DIR/tls.crt contains no certificate in PEM: there is no section of that kind",
    );
    check(&certificate, "", "DIR/tls.key contains no private key in PEM: ");
    check(
        &certificate,
        &other_key,
        "DIR/tls.crt and DIR/tls.key cannot be used together: ",
    );

    let missing = Files {
        certificate: "/no/such/tls.crt".into(),
        key: "/no/such/tls.key".into(),
    };
    let error = Certificates::from_files(missing, Metrics::new())
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cannot read /no/such/tls.crt: No such file"),
        "{error}"
    );
}

/// Unless they're symlinks, the files can't be replaced atomically. The old pair must stay in use
/// until both files have changed.
#[tokio::test(start_paused = true)]
async fn old_pair_stays_until_both_files_have_changed() {
    let ((old, old_key), (new, new_key)) = (localhost_pem(), localhost_pem());
    let folder = tempfile::tempdir().unwrap();
    let files = Files {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
    };
    std::fs::write(&files.certificate, &old).unwrap();
    std::fs::write(&files.key, &old_key).unwrap();
    let metrics = Metrics::new();
    let (certificates, watch) = Certificates::from_files(files.clone(), metrics.clone()).unwrap();
    tokio::spawn(watch);

    std::fs::write(&files.certificate, &new).unwrap();
    next_poll().await;
    assert_eq!(current_certificate(&certificates), parse_certificate(&old));
    assert_eq!(reads(&metrics).1, "1");
    connect(&certificates, &parse_certificate(&old), "localhost")
        .await
        .unwrap();

    std::fs::write(&files.key, &new_key).unwrap();
    next_poll().await;
    assert_eq!(current_certificate(&certificates), parse_certificate(&new));
    connect(&certificates, &parse_certificate(&new), "localhost")
        .await
        .unwrap();

    std::fs::remove_file(&files.key).unwrap();
    next_poll().await;
    assert_eq!(current_certificate(&certificates), parse_certificate(&new));
    assert!(reads(&metrics).1.parse::<u32>().unwrap() >= 2);
}
