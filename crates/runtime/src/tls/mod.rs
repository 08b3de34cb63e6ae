//! Certificates and TLS configuration of an operator's servers.
//!
//! Certificates are either loaded from files, which are reloaded when they change, or issued by
//! this module, self-signed or signed by a dedicated CA (see [`issued`]). HTTP is implemented on
//! top of this in the module `server`.

mod handshake;
mod issue;
pub(crate) mod issued;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use crate::causes::describe;
use crate::metrics::Metrics;

pub(crate) use handshake::check_handshake;
use issue::issue_server_certificate;

/// Interval between checks of the files. Watching the file system wouldn't help, since the kubelet
/// takes up to a minute to update a mounted Secret.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("cannot read {}: {source}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} contains no {what} in PEM: {reason}", path.display())]
    Parse {
        path: PathBuf,
        what: &'static str,
        reason: String,
    },
    #[error("{} and {} cannot be used together: {reason}", certificate.display(), key.display())]
    Pair {
        certificate: PathBuf,
        key: PathBuf,
        reason: rustls::Error,
    },
    #[error("cannot issue a self-signed certificate: {0}")]
    SelfSigned(#[source] rcgen::Error),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// In PEM, including intermediate certificates.
    pub(crate) certificate: PathBuf,
    /// The private key in PEM.
    pub(crate) key: PathBuf,
}

impl Files {
    fn read(&self) -> Result<Contents, CertificateError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| CertificateError::Read {
                path: path.to_owned(),
                source,
            })
        };
        Ok(Contents {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
        })
    }

    fn parse(&self, contents: &Contents) -> Result<Arc<CertifiedKey>, CertificateError> {
        let parse_error = |path: &Path, what, reason: String| {
            let path = path.to_owned();
            Err(CertificateError::Parse { path, what, reason })
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&contents.certificate).collect();
        let chain = match chain {
            Ok(chain) if chain.is_empty() => {
                return parse_error(
                    &self.certificate,
                    "certificate",
                    "there is no section of that kind".to_owned(),
                );
            }
            Ok(chain) => chain,
            Err(error) => return parse_error(&self.certificate, "certificate", describe(&error)),
        };
        let key = match PrivateKeyDer::from_pem_slice(&contents.key) {
            Ok(key) => key,
            Err(error) => return parse_error(&self.key, "private key", describe(&error)),
        };
        let pair = CertifiedKey::from_der(chain, key, &ring::default_provider());
        pair.map(Arc::new).map_err(|reason| CertificateError::Pair {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            reason,
        })
    }
}

#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate for new connections. Can be replaced while connections are open.
#[derive(Debug)]
pub(crate) struct Certificates {
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Issues a self-signed certificate for `localhost`. Connections are encrypted, but clients
    /// can't verify the server.
    pub(crate) fn self_signed() -> Result<Arc<Self>, CertificateError> {
        // The certificate needn't expire (before 9999-12-30), because it's only kept in this
        // process.
        let forever = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        let hosts = ["localhost".to_owned()];
        let (certificate, key) = issue_server_certificate("rbuilder self-signed", &hosts, forever, None)
            .map_err(CertificateError::SelfSigned)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let pair = CertifiedKey::from_der(
            vec![certificate.der().clone()],
            key.into(),
            &ring::default_provider(),
        )?;
        Ok(Self::new(Arc::new(pair)))
    }

    /// Loads a certificate from files.
    ///
    /// The returned future reloads the files when they change, and never resolves. Only new
    /// connections use the new certificate. Unusable files are logged and counted, and the current
    /// certificate stays in use.
    pub(crate) fn from_files(
        files: Files,
        metrics: Metrics,
    ) -> Result<(Arc<Self>, impl Future<Output = ()> + Send), CertificateError> {
        let first = files.read().and_then(|contents| {
            let pair = files.parse(&contents)?;
            Ok((contents, pair))
        });
        metrics.certificate_read(first.is_ok());
        let (contents, pair) = first?;
        let certificates = Self::new(pair);
        let watched = Arc::clone(&certificates);
        Ok((certificates, async move {
            watched.watch(&files, contents, &metrics).await
        }))
    }

    pub(crate) fn new(pair: Arc<CertifiedKey>) -> Arc<Self> {
        Arc::new(Self {
            current: RwLock::new(pair),
        })
    }

    /// Open connections are not affected.
    pub(crate) fn replace(&self, pair: Arc<CertifiedKey>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = pair;
    }

    pub(crate) fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Accepts TLS 1.2 and 1.3 with this certificate. ALPN offers HTTP/1.1 and, if `http2` is set,
    /// HTTP/2 (preferred).
    ///
    /// If `client_authorities` is set, clients must present a certificate signed by a CA in this
    /// file.
    pub(crate) fn acceptor(
        self: &Arc<Self>,
        client_authorities: Option<&Path>,
        http2: bool,
    ) -> Result<TlsAcceptor, CertificateError> {
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let config = match client_authorities {
            None => config.with_no_client_auth(),
            Some(path) => config.with_client_cert_verifier(client_verifier(path, provider)?),
        };
        let mut config = config.with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        let protocols: &[&[u8]] = if http2 {
            &[b"h2", b"http/1.1"]
        } else {
            &[b"http/1.1"]
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    async fn watch(&self, files: &Files, mut known: Contents, metrics: &Metrics) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            // Compare contents rather than modification times: in a mounted Secret, the files are
            // symlinks with times of their own.
            let read = files.read().and_then(|contents| {
                let changed = contents != known;
                let pair = if changed {
                    Some(files.parse(&contents)?)
                } else {
                    None
                };
                Ok((contents, pair))
            });
            metrics.certificate_read(read.is_ok());
            match read {
                Ok((contents, Some(pair))) => {
                    self.replace(pair);
                    known = contents;
                    tracing::info!(certificate = %files.certificate.display(), "reloaded certificate");
                }
                Ok((_, None)) => {}
                // Unless the files are symlinks, they can't be replaced atomically. The next read
                // will see a matching pair.
                Err(error) => {
                    tracing::error!(%error, "failed to reload certificate, keeping the current one")
                }
            }
        }
    }
}

fn client_verifier(
    path: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
    let unusable = |reason: String| CertificateError::Parse {
        path: path.to_owned(),
        what: "certificate authority",
        reason,
    };
    let contents = std::fs::read(path).map_err(|source| CertificateError::Read {
        path: path.to_owned(),
        source,
    })?;
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&contents) {
        let certificate = certificate.map_err(|error| unusable(describe(&error)))?;
        let added = authorities.add(certificate);
        added.map_err(|error| unusable(error.to_string()))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider)
        .build()
        .map_err(|error| unusable(error.to_string()))
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

#[cfg(test)]
pub(crate) mod tests;
