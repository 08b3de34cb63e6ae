//! Certificates for servers whose clients get the CA in some other way, along with their key and
//! the certificate of the CA.
//!
//! Each certificate gets a new CA, whose key is dropped right after signing. Since nothing else can
//! be signed with it, trusting the CA for longer than necessary is harmless.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pem::{EncodeConfig, LineEnding, Pem};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::issue::{Validity, issue_authority, issue_server_certificate, read_validity};
use crate::causes::describe;

/// Certificates are backdated, because the clocks of some clients are slow.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);

#[derive(Debug)]
pub(crate) struct Issued {
    /// In PEM.
    pub(crate) certificate: String,
    /// PKCS #8 in PEM.
    pub(crate) key: String,
    pub(crate) authority: Authority,
    pub(crate) pair: Arc<CertifiedKey>,
    pub(crate) valid: Validity,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    pub(crate) expires: Timestamp,
}

impl Issued {
    /// Issues a certificate for a server with the given names, signed by a new CA. Both are valid
    /// for `lifetime`.
    pub(crate) fn new(names: &[String], lifetime: Duration, now: Timestamp) -> Result<Self, String> {
        let lifetime = SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX);
        let until = now.checked_add(lifetime).unwrap_or(Timestamp::MAX);
        let from = now.checked_sub(BACKDATED).unwrap_or(now);
        let issue = || {
            let authority = issue_authority("rbuilder webhook authority", (from, until))?;
            let (certificate, key) =
                issue_server_certificate("rbuilder webhook server", names, (from, until), Some(&authority))?;
            Ok((authority, certificate, key))
        };
        let (authority, certificate, key) = issue().map_err(|error: rcgen::Error| error.to_string())?;
        let authority =
            Authority::new(authority.der().clone()).ok_or("the new authority's certificate is invalid")?;
        Self::read(&certificate.pem(), &key.serialize_pem(), authority)
    }

    /// Fails if the certificate or the key is malformed, or if they don't match.
    pub(crate) fn read(certificate: &str, key: &str, authority: Authority) -> Result<Self, String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
        let chain = chain.map_err(|error| format!("the certificate is not PEM: {}", describe(&error)))?;
        let first = chain.first().ok_or("there is no certificate")?;
        let valid = read_validity(first).ok_or("the certificate is not X.509")?;
        let private = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|error| format!("the key is not PEM: {}", describe(&error)))?;
        let pair = CertifiedKey::from_der(chain, private, &ring::default_provider())
            .map_err(|error| format!("certificate and key do not match: {error}"))?;
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            authority,
            pair: Arc::new(pair),
            valid,
        })
    }

    /// Verifies the certificate like a client that connects to the given server name and trusts the
    /// CA. The error says why such a client would reject the certificate.
    pub(crate) fn verify(&self, name: &str, now: Timestamp) -> Result<(), String> {
        let mut roots = RootCertStore::empty();
        let added = roots.add(self.authority.certificate.clone());
        added.map_err(|error| error.to_string())?;
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| error.to_string())?;
        let name = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let chain = &self.pair.cert;
        let intermediates = chain.get(1..).unwrap_or_default();
        let (Some(certificate), verify) = (chain.first(), &verifier) else {
            return Err("there is no certificate".to_owned());
        };
        let verified = verify.verify_server_cert(certificate, intermediates, &name, &[], now);
        verified.map(drop).map_err(|error| error.to_string())
    }

    /// Time at which to replace the certificate, i.e. after two thirds of its lifetime.
    pub(crate) fn due(&self) -> Timestamp {
        let until = self.valid.1;
        until - until.duration_since(self.made()) / 3
    }

    /// Time at which the certificate was issued, without the backdating.
    pub(crate) fn made(&self) -> Timestamp {
        (self.valid.0 + BACKDATED).min(self.valid.1)
    }

    pub(crate) fn is(&self, other: &Issued) -> bool {
        self.pair.cert == other.pair.cert
    }
}

impl Authority {
    fn new(certificate: CertificateDer<'static>) -> Option<Self> {
        let (_, expires) = read_validity(&certificate)?;
        Some(Self { certificate, expires })
    }

    /// Ignores everything except certificates.
    pub(crate) fn read_all(text: &str) -> Vec<Self> {
        CertificateDer::pem_slice_iter(text.as_bytes())
            .filter_map(|certificate| Self::new(certificate.ok()?))
            .collect()
    }

    pub(crate) fn pem(&self) -> String {
        encode_certificate(&self.certificate)
    }
}

fn encode_certificate(der: &[u8]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", der), config)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "webhooks.system.svc";

    fn issued(lifetime: u64, now: Timestamp) -> Issued {
        Issued::new(&[NAME.to_owned()], Duration::from_secs(lifetime), now).unwrap()
    }

    #[test]
    fn trusting_client_accepts_the_server_while_both_certificates_are_valid() {
        let now = Timestamp::now();
        let made = issued(60, now);
        let check = |name: &str, seconds: i64, expected: Option<&str>| {
            let found = made.verify(name, now + SignedDuration::from_secs(seconds)).err();
            match (&found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) if found.contains(expected) => {}
                _ => panic!("{name} after {seconds} s: {found:?}"),
            }
        };
        check(NAME, 0, None);
        check(NAME, -290, None);
        check(NAME, 59, None);
        check(NAME, 61, Some("expired"));
        check(NAME, -310, Some("not valid yet"));
        check("elsewhere.system.svc", 0, Some("not valid for name"));
        assert_eq!(made.valid.1, made.authority.expires);
    }

    #[test]
    fn authority_does_not_vouch_for_other_authorities_servers() {
        let now = Timestamp::now();
        let (first, second) = (issued(60, now), issued(60, now));
        assert!(!first.is(&second));
        let crossed = Issued::read(&first.certificate, &first.key, second.authority).unwrap();
        assert!(crossed.verify(NAME, now).unwrap_err().contains("UnknownIssuer"));
    }

    #[test]
    fn stored_certificate_is_read_back() {
        let made = issued(60, Timestamp::now());
        let authority = Authority::read_all(&format!("{}no PEM\n", made.authority.pem()));
        assert_eq!(authority, std::slice::from_ref(&made.authority));
        let read = Issued::read(&made.certificate, &made.key, authority[0].clone()).unwrap();
        assert!(read.is(&made));
        assert_eq!(read.valid, made.valid);
    }

    #[test]
    fn rejects_invalid_keys_and_certificates() {
        let now = Timestamp::now();
        let (made, other) = (issued(60, now), issued(60, now));
        let check = |certificate: &str, key: &str, expected: &str| {
            let found = Issued::read(certificate, key, made.authority.clone()).unwrap_err();
            assert!(found.starts_with(expected), "{found}");
        };
        check("", &made.key, "there is no certificate");
        check(&made.certificate, "", "the key is not PEM: ");
        check(
            &made.certificate,
            &other.key,
            "certificate and key do not match: ",
        );
        let nonsense = encode_certificate(b"abc");
        check(&nonsense, &made.key, "the certificate is not X.509");
    }
}
