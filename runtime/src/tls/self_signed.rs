//! A certificate that signs itself: ECDSA P-256 in an X.509 certificate, version 3.
//!
//! The few parts of DER that this takes are written here. A crate that writes any certificate would bring half a dozen
//! others into every operator, while the signature algorithm is there already, for TLS.

use std::net::IpAddr;

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Alternatives of a general name, RFC 5280 §4.2.1.6.
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
/// Explicit tags of a certificate's version and extensions.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

// Object identifiers, encoded.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// A new key, and a server's certificate for `names` (of hosts, or addresses) that it has signed.
///
/// It is valid for ever (RFC 5280 §4.1.2.5): it lives in memory and is made anew with each process.
pub(super) fn generate(
    names: &[&str],
) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), &'static str> {
    let random = SystemRandom::new();
    let no_random = |_| "the system gives no random numbers";
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(no_random)?;
    let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random)
        .map_err(|_| "the new key is no key")?;
    let mut serial = [0; 16];
    random.fill(&mut serial).map_err(no_random)?;
    // A positive number of full length.
    serial[0] = serial[0] & 0x7f | 0x40;

    let content = content(&serial, key.public_key().as_ref(), names);
    let signature = key.sign(&random, &content).map_err(no_random)?;
    let certificate = der(
        SEQUENCE,
        &[&content, &signature_algorithm(), &bits(signature.as_ref())],
    );
    let key = PrivatePkcs8KeyDer::from(document.as_ref().to_vec());
    Ok((certificate.into(), key.into()))
}

/// What is signed, RFC 5280 §4.1.2.
fn content(serial: &[u8], public_key: &[u8], names: &[&str]) -> Vec<u8> {
    let version_3 = der(VERSION, &[&der(INTEGER, &[&[2]])]);
    let common_name = der(
        SEQUENCE,
        &[&oid(COMMON_NAME), &der(UTF8_STRING, &[b"rbuilder self-signed"])],
    );
    let name = der(SEQUENCE, &[&der(SET, &[&common_name])]);
    let validity = der(
        SEQUENCE,
        &[
            &der(UTC_TIME, &[b"700101000000Z"]),
            &der(GENERALIZED_TIME, &[b"99991231235959Z"]),
        ],
    );
    let key_type = der(SEQUENCE, &[&oid(EC_PUBLIC_KEY), &oid(PRIME256V1)]);
    let key = der(SEQUENCE, &[&key_type, &bits(public_key)]);
    let names: Vec<Vec<u8>> = names.iter().map(|name| general_name(name)).collect();
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let extensions = der(
        SEQUENCE,
        &[
            &extension(SUBJECT_ALT_NAME, &der(SEQUENCE, &names)),
            &extension(EXTENDED_KEY_USAGE, &der(SEQUENCE, &[&oid(SERVER_AUTH)])),
        ],
    );
    der(
        SEQUENCE,
        &[
            &version_3,
            &der(INTEGER, &[serial]),
            &signature_algorithm(),
            &name,
            &validity,
            &name,
            &key,
            &der(EXTENSIONS, &[&extensions]),
        ],
    )
}

fn signature_algorithm() -> Vec<u8> {
    der(SEQUENCE, &[&oid(ECDSA_WITH_SHA256)])
}

fn extension(id: &[u8], value: &[u8]) -> Vec<u8> {
    der(SEQUENCE, &[&oid(id), &der(OCTET_STRING, &[value])])
}

fn general_name(name: &str) -> Vec<u8> {
    match name.parse() {
        Ok(IpAddr::V4(address)) => der(IP_ADDRESS, &[&address.octets()]),
        Ok(IpAddr::V6(address)) => der(IP_ADDRESS, &[&address.octets()]),
        Err(_) => der(DNS_NAME, &[name.as_bytes()]),
    }
}

fn oid(encoded: &[u8]) -> Vec<u8> {
    der(OBJECT_IDENTIFIER, &[encoded])
}

/// Whole bytes: no bits of the last one are unused.
fn bits(bytes: &[u8]) -> Vec<u8> {
    der(BIT_STRING, &[&[0], bytes])
}

/// Tag, length and contents; the parts of the contents follow each other.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let mut encoded = vec![tag];
    let length = contents.len().to_be_bytes();
    let significant = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    match significant {
        [] => encoded.push(0),
        [short @ ..=0x7f] => encoded.push(*short),
        // A `usize` has at most eight bytes.
        long => {
            encoded.push(0x80 | long.len() as u8);
            encoded.extend(long);
        }
    }
    encoded.extend(contents);
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_as_few_bytes_as_they_can() {
        for (length, head) in [
            (0, &[0x04, 0x00][..]),
            (127, &[0x04, 0x7f]),
            (128, &[0x04, 0x81, 0x80]),
            (256, &[0x04, 0x82, 0x01, 0x00]),
            (65536, &[0x04, 0x83, 0x01, 0x00, 0x00]),
        ] {
            let contents = vec![7; length];
            let encoded = der(OCTET_STRING, &[&contents]);
            assert_eq!(encoded[..head.len()], *head, "{length}");
            assert_eq!(encoded.len(), head.len() + length);
        }
    }
}
