//! New keys, and certificates for them: ECDSA P-256 in X.509, version 3.
//!
//! A crate that writes any certificate would bring half a dozen others into every operator, while the signature
//! algorithm is there already, for TLS.

use std::net::IpAddr;

use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::der::{BOOLEAN, INTEGER, OCTET_STRING, SEQUENCE, SET, UTF8_STRING, VERSION, bits, der, oid, time};

/// Alternatives of a general name, RFC 5280 §4.2.1.6.
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
/// The explicit tag of a certificate's extensions.
const EXTENSIONS: u8 = 0xa3;

// Object identifiers, encoded.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// `keyCertSign`, the sixth bit, of RFC 5280 §4.2.1.3; two bits of the byte are unused.
const MAY_SIGN_CERTIFICATES: [u8; 4] = [0x03, 0x02, 0x02, 0x04];

/// A key and what its owner is called.
pub(super) struct Identity {
    /// The common name.
    name: String,
    key: EcdsaKeyPair,
    /// The key, PKCS #8.
    document: Vec<u8>,
    random: SystemRandom,
}

/// What a certificate says of its subject.
pub(super) enum Purpose<'a> {
    /// It signs the certificates of servers.
    Authority,
    /// It is the server with these names, of hosts or addresses.
    Server(&'a [String]),
}

impl Identity {
    pub(super) fn new(name: impl Into<String>) -> Result<Self, &'static str> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(no_random)?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random)
            .map_err(|_| "the new key is no key")?;
        let (name, document) = (name.into(), document.as_ref().to_vec());
        Ok(Self {
            name,
            key,
            document,
            random,
        })
    }

    /// The key, PKCS #8.
    pub(super) fn into_key(self) -> Vec<u8> {
        self.document
    }

    /// A certificate for `subject`, signed by this one.
    pub(super) fn sign(
        &self,
        subject: &Identity,
        purpose: &Purpose<'_>,
        valid: (Timestamp, Timestamp),
    ) -> Result<CertificateDer<'static>, &'static str> {
        let mut serial = random_bytes(&self.random)?;
        // A positive number of full length.
        serial[0] = serial[0] & 0x7f | 0x40;
        let content = self.content(&serial, subject, purpose, valid);
        let signature = self.key.sign(&self.random, &content).map_err(no_random)?;
        let parts = [&*content, &signature_algorithm(), &bits(signature.as_ref())];
        Ok(der(SEQUENCE, &parts).into())
    }

    /// What is signed, RFC 5280 §4.1.2.
    fn content(
        &self,
        serial: &[u8],
        subject: &Identity,
        purpose: &Purpose<'_>,
        (from, until): (Timestamp, Timestamp),
    ) -> Vec<u8> {
        let key_type = der(SEQUENCE, &[&oid(EC_PUBLIC_KEY), &oid(PRIME256V1)]);
        let key = der(SEQUENCE, &[&key_type, &bits(subject.key.public_key().as_ref())]);
        der(
            SEQUENCE,
            &[
                &der(VERSION, &[&der(INTEGER, &[&[2]])]),
                &der(INTEGER, &[serial]),
                &signature_algorithm(),
                &name(&self.name),
                &der(SEQUENCE, &[&time(from), &time(until)]),
                &name(&subject.name),
                &key,
                &der(EXTENSIONS, &[&extensions(purpose)]),
            ],
        )
    }
}

fn no_random<E>(_: E) -> &'static str {
    "the system gives no random numbers"
}

fn random_bytes(random: &SystemRandom) -> Result<[u8; 16], &'static str> {
    let mut bytes = [0; 16];
    random.fill(&mut bytes).map_err(no_random)?;
    Ok(bytes)
}

/// A name that no other identity has: two authorities that are trusted at the same time must not be taken for one.
pub(super) fn unique(name: &str) -> Result<String, &'static str> {
    let bytes = random_bytes(&SystemRandom::new())?;
    let number = u64::from_be_bytes(std::array::from_fn(|at| bytes[at]));
    Ok(format!("{name} {number:016x}"))
}

fn name(common_name: &str) -> Vec<u8> {
    let parts = [&*oid(COMMON_NAME), &der(UTF8_STRING, &[common_name.as_bytes()])];
    der(SEQUENCE, &[&der(SET, &[&der(SEQUENCE, &parts)])])
}

fn signature_algorithm() -> Vec<u8> {
    der(SEQUENCE, &[&oid(ECDSA_WITH_SHA256)])
}

fn extensions(purpose: &Purpose<'_>) -> Vec<u8> {
    let yes = der(BOOLEAN, &[&[0xff]]);
    match purpose {
        Purpose::Authority => {
            // It signs servers only, no further authorities.
            let constraints = der(SEQUENCE, &[&yes, &der(INTEGER, &[&[0]])]);
            der(
                SEQUENCE,
                &[
                    &extension(BASIC_CONSTRAINTS, Some(&yes), &constraints),
                    &extension(KEY_USAGE, Some(&yes), &MAY_SIGN_CERTIFICATES),
                ],
            )
        }
        Purpose::Server(names) => {
            let names: Vec<Vec<u8>> = names.iter().map(|name| general_name(name)).collect();
            let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            let usage = der(SEQUENCE, &[&oid(SERVER_AUTH)]);
            der(
                SEQUENCE,
                &[
                    &extension(SUBJECT_ALT_NAME, None, &der(SEQUENCE, &names)),
                    &extension(EXTENDED_KEY_USAGE, None, &usage),
                ],
            )
        }
    }
}

fn extension(id: &[u8], critical: Option<&[u8]>, value: &[u8]) -> Vec<u8> {
    let critical = critical.unwrap_or_default();
    der(SEQUENCE, &[&oid(id), critical, &der(OCTET_STRING, &[value])])
}

fn general_name(name: &str) -> Vec<u8> {
    match name.parse() {
        Ok(IpAddr::V4(address)) => der(IP_ADDRESS, &[&address.octets()]),
        Ok(IpAddr::V6(address)) => der(IP_ADDRESS, &[&address.octets()]),
        Err(_) => der(DNS_NAME, &[name.as_bytes()]),
    }
}
