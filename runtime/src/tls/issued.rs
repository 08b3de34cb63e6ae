//! Certificates that are made here for a server whose clients are told whom to trust: a certificate, its key, and the
//! authority that has signed it.
//!
//! Each certificate has an authority of its own, whose key is forgotten as soon as it has signed: nobody can sign
//! anything else with it, so trusting it longer than needed costs nothing.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime,
};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::der::validity;
use super::issue::{Identity, Purpose, unique};

/// Clocks of other machines may be behind by this much.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);

/// A certificate with its key, ready to serve with, and whom to trust to accept it.
#[derive(Debug)]
pub(crate) struct Issued {
    /// PEM.
    pub(crate) certificate: String,
    /// PEM, PKCS #8.
    pub(crate) key: String,
    pub(crate) authority: Authority,
    pub(crate) pair: Arc<CertifiedKey>,
    /// From when to when the certificate is valid.
    pub(crate) valid: (Timestamp, Timestamp),
}

/// A certificate that vouches for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    certificate: CertificateDer<'static>,
    /// After that it vouches for nobody.
    pub(crate) expires: Timestamp,
}

impl Issued {
    /// A new certificate for a server of these names, by a new authority; both end with `lifetime`.
    pub(crate) fn new(names: &[String], lifetime: Duration, now: Timestamp) -> Result<Self, String> {
        let lifetime = SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX);
        let until = now.checked_add(lifetime).unwrap_or(Timestamp::MAX);
        let from = now.checked_sub(BACKDATED).unwrap_or(now);
        let made = || {
            let authority = Identity::new(unique("rbuilder webhook authority")?)?;
            let signed = authority.sign(&authority, &Purpose::Authority, (from, until))?;
            let server = Identity::new("rbuilder webhook server")?;
            let certificate = authority.sign(&server, &Purpose::Server(names), (from, until))?;
            Ok((signed, certificate, server.into_key()))
        };
        let made: Result<_, &'static str> = made();
        let (authority, certificate, key) = made.map_err(str::to_owned)?;
        let authority = Authority::new(authority).ok_or("the new authority cannot be read")?;
        let certificate = pem("CERTIFICATE", &certificate);
        let key = pem("PRIVATE KEY", PrivatePkcs8KeyDer::from(key).secret_pkcs8_der());
        Self::read(&certificate, &key, authority)
    }

    /// What was written down earlier; an error says what is wrong with it.
    pub(crate) fn read(certificate: &str, key: &str, authority: Authority) -> Result<Self, String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
        let chain = chain.map_err(|error| format!("the certificate is not PEM: {error}"))?;
        let first = chain.first().ok_or("there is no certificate")?;
        let valid = validity(first).ok_or("the certificate is none")?;
        let private = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|error| format!("the key is not PEM: {error}"))?;
        let pair = CertifiedKey::from_der(chain, private, &ring::default_provider())
            .map_err(|error| format!("certificate and key do not belong together: {error}"))?;
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            authority,
            pair: Arc::new(pair),
            valid,
        })
    }

    /// Whether a client that trusts the authority would accept the certificate for a server of this name; an error
    /// says why not.
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

    /// When it should be replaced: two thirds of its life are over then.
    pub(crate) fn due(&self) -> Timestamp {
        let until = self.valid.1;
        until - until.duration_since(self.made()) / 3
    }

    /// When it was made.
    pub(crate) fn made(&self) -> Timestamp {
        (self.valid.0 + BACKDATED).min(self.valid.1)
    }

    /// Whether this is the same certificate.
    pub(crate) fn is(&self, other: &Issued) -> bool {
        self.pair.cert == other.pair.cert
    }
}

impl Authority {
    fn new(certificate: CertificateDer<'static>) -> Option<Self> {
        let (_, expires) = validity(&certificate)?;
        Some(Self { certificate, expires })
    }

    /// Those in a PEM text, in their order. What is none is left out.
    pub(crate) fn read_all(text: &str) -> Vec<Self> {
        CertificateDer::pem_slice_iter(text.as_bytes())
            .filter_map(|certificate| Self::new(certificate.ok()?))
            .collect()
    }

    /// PEM.
    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }
}

/// RFC 7468: lines of 64 characters.
fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut lines = vec![format!("-----BEGIN {label}-----")];
    let mut rest = text.as_str();
    while !rest.is_empty() {
        // Base64 is ASCII.
        let (line, further) = rest.split_at(rest.len().min(64));
        lines.push(line.to_owned());
        rest = further;
    }
    lines.push(format!("-----END {label}-----\n"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "webhooks.system.svc";

    fn issued(lifetime: u64, now: Timestamp) -> Issued {
        Issued::new(&[NAME.to_owned()], Duration::from_secs(lifetime), now).unwrap()
    }

    #[test]
    fn a_client_that_trusts_the_authority_accepts_the_server_as_long_as_both_live() {
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
    fn one_authority_does_not_vouch_for_the_servers_of_another() {
        let now = Timestamp::now();
        let (first, second) = (issued(60, now), issued(60, now));
        assert!(!first.is(&second));
        let crossed = Issued::read(&first.certificate, &first.key, second.authority).unwrap();
        assert!(crossed.verify(NAME, now).unwrap_err().contains("UnknownIssuer"));
    }

    #[test]
    fn what_was_written_down_is_read_back() {
        let made = issued(60, Timestamp::now());
        let authority = Authority::read_all(&format!("{}no PEM\n", made.authority.pem()));
        assert_eq!(authority, std::slice::from_ref(&made.authority));
        let read = Issued::read(&made.certificate, &made.key, authority[0].clone()).unwrap();
        assert!(read.is(&made));
        assert_eq!(read.valid, made.valid);
    }

    #[test]
    fn what_cannot_be_used_is_said() {
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
            "certificate and key do not belong together: ",
        );
        let nonsense = pem("CERTIFICATE", b"abc");
        check(&nonsense, &made.key, "the certificate is none");
    }
}
