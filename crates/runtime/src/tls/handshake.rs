//! TLS handshakes with a server in the same process, for checking that it's ready.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use super::Certificates;

/// Same as in controller-runtime.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Checks that the server completes a TLS handshake within ten seconds, using the current
/// certificate.
pub(crate) async fn check_handshake(
    address: SocketAddr,
    certificates: &Arc<Certificates>,
) -> Result<(), String> {
    let finished = timeout(TIMEOUT, connect(address, certificates)).await;
    finished.map_err(|_| format!("no TLS handshake on {address} within {TIMEOUT:?}"))?
}

async fn connect(address: SocketAddr, certificates: &Arc<Certificates>) -> Result<(), String> {
    // A server bound to all interfaces also listens on the loopback address.
    let own: &[SocketAddr] = if address.ip().is_unspecified() {
        let port = address.port();
        &[
            (Ipv4Addr::LOCALHOST, port).into(),
            (Ipv6Addr::LOCALHOST, port).into(),
        ]
    } else {
        &[address]
    };
    let stream = TcpStream::connect(own).await;
    let stream = stream.map_err(|error| format!("cannot connect to {address}: {error}"))?;
    let provider = Arc::new(ring::default_provider());
    let only = Arc::new(OnlyCurrent {
        certificates: Arc::clone(certificates),
        provider: Arc::clone(&provider),
    });
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let config = config
        .dangerous()
        .with_custom_certificate_verifier(only)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::from(address.ip());
    let connected = connector.connect(name, stream).await;
    connected
        .map(drop)
        .map_err(|error| format!("no TLS handshake on {address}: {error}"))
}

/// Accepts only the current certificate. Its name and validity aren't checked, since that's up to
/// real clients.
#[derive(Debug)]
struct OnlyCurrent {
    certificates: Arc<Certificates>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OnlyCurrent {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificates.current().cert.first() == Some(certificate) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::General("another certificate is served".to_owned()))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::server::{Server, text_reply};

    #[tokio::test]
    async fn server_must_present_the_current_certificate() {
        let (own, other) = (
            Certificates::self_signed().unwrap(),
            Certificates::self_signed().unwrap(),
        );
        let server = Server::bind(":0").await.unwrap().unwrap();
        let address = server.address().unwrap();
        let tls = own.acceptor(None, false).unwrap();
        let ok = |_| async { text_reply(StatusCode::OK, "ok") };
        let serving = tokio::spawn(server.serve(Some(tls), ok, std::future::pending()));
        check_handshake(address, &own).await.unwrap();
        let error = check_handshake(address, &other).await.unwrap_err();
        assert!(error.contains("another certificate is served"), "{error}");
        serving.abort();
        let _ = serving.await;
        let error = check_handshake(address, &own).await.unwrap_err();
        assert!(error.starts_with("cannot connect to "), "{error}");
    }

    #[tokio::test]
    async fn server_without_tls_fails_the_check() {
        let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
        let address = server.address().unwrap();
        let ok = |_| async { text_reply(StatusCode::OK, "ok") };
        let serving = tokio::spawn(server.serve(None, ok, std::future::pending()));
        let own = Certificates::self_signed().unwrap();
        let error = check_handshake(address, &own).await.unwrap_err();
        assert!(error.starts_with("no TLS handshake on "), "{error}");
        serving.abort();
    }
}
