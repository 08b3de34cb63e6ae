//! Issues keys and certificates (X.509 v3 with ECDSA P-256) using rcgen, and parses the validity of
//! certificates.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, Error,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use yasna::tags::TAG_UTCTIME;
use yasna::{ASN1Result, BERReader, BERReaderSeq, Tag};

/// A CA that signs server certificates, including its key.
pub(super) type Issuer = CertifiedIssuer<'static, KeyPair>;

pub(super) type Validity = (Timestamp, Timestamp);

/// Issues a self-signed CA certificate, which can sign certificates for servers but not for other
/// CAs.
pub(super) fn issue_authority(name: &str, validity: Validity) -> Result<Issuer, Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    // Include a hash of the key to make the name unique. Clients may trust two of our CAs at once,
    // and must not mix them up.
    let hash = params.key_identifier(&key);
    let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    set_subject(&mut params, &format!("{name} {hash}"), validity);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, key)
}

/// Issues a certificate for a server with the given host names and IP addresses. Self-signed
/// without an `issuer`.
pub(super) fn issue_server_certificate(
    name: &str,
    hosts: &[String],
    validity: Validity,
    issuer: Option<&Issuer>,
) -> Result<(Certificate, KeyPair), Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(hosts)?;
    set_subject(&mut params, name, validity);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = match issuer {
        Some(issuer) => params.signed_by(&key, issuer)?,
        None => params.self_signed(&key)?,
    };
    Ok((certificate, key))
}

fn set_subject(params: &mut CertificateParams, name: &str, (from, until): Validity) {
    // rcgen uses timestamps of a different crate. Certificates have no fractions of a second.
    let time = |time: Timestamp| {
        let seconds = u64::try_from(time.as_second()).unwrap_or_default();
        date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    params.distinguished_name.push(DnType::CommonName, name);
    (params.not_before, params.not_after) = (time(from), time(until));
}

/// Returns `None` if this isn't a DER-encoded certificate.
pub(super) fn read_validity(certificate: &[u8]) -> Option<Validity> {
    let validity = yasna::parse_der(certificate, |reader| {
        reader.read_sequence(|certificate| {
            let validity = certificate.next().read_sequence(|content| {
                content.read_optional(|version| {
                    version.read_tagged(Tag::context(0), |reader| reader.read_u8())
                })?;
                // Skip the serial number, the algorithm, and the issuer.
                for _ in 0..3 {
                    content.next().read_der()?;
                }
                let validity = content
                    .next()
                    .read_sequence(|times| Ok((read_time(times.next())?, read_time(times.next())?)))?;
                skip_rest(content)?;
                Ok(validity)
            })?;
            skip_rest(certificate)?;
            Ok(validity)
        })
    });
    let (from, until) = validity.ok()?;
    Some((
        Timestamp::from_second(from).ok()?,
        Timestamp::from_second(until).ok()?,
    ))
}

/// Returns a Unix timestamp. Certificates use UTCTime until 2049, and GeneralizedTime from 2050 on
/// ([RFC 5280, section 4.1.2.5](https://www.rfc-editor.org/rfc/rfc5280#section-4.1.2.5)).
fn read_time(reader: BERReader<'_, '_>) -> ASN1Result<i64> {
    if reader.lookahead_tag()? == TAG_UTCTIME {
        Ok(reader.read_utctime()?.datetime().unix_timestamp())
    } else {
        Ok(reader.read_generalized_time()?.datetime().unix_timestamp())
    }
}

fn skip_rest(sequence: &mut BERReaderSeq<'_, '_>) -> ASN1Result<()> {
    while sequence.read_optional(|reader| reader.read_der())?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_round_trips_in_both_time_formats() {
        for (from, until) in [
            ("1970-01-01T00:00:00Z", "2049-12-31T23:59:59Z"),
            ("2026-01-31T12:00:01Z", "2050-01-01T00:00:00Z"),
            ("2050-01-01T00:00:00Z", "9999-12-30T22:00:00Z"),
        ] {
            let validity = (from.parse().unwrap(), until.parse().unwrap());
            let (certificate, _) = issue_server_certificate("test", &[], validity, None).unwrap();
            assert_eq!(read_validity(certificate.der()), Some(validity), "{from}");
        }
    }

    #[test]
    fn each_authority_has_a_unique_name() {
        let validity = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        let [one, two] = [(); 2].map(|()| issue_authority("authority", validity).unwrap());
        // The certificate contains the subject verbatim.
        let count = |certificate: &[u8]| {
            certificate
                .windows(10)
                .filter(|part| part == b"authority ")
                .count()
        };
        assert_eq!((count(one.der()), count(two.der())), (2, 2), "subject and issuer");
        let name = |certificate: &[u8]| {
            let at = certificate
                .windows(10)
                .position(|part| part == b"authority ")
                .unwrap();
            certificate[at..at + 26].to_vec()
        };
        assert_ne!(name(one.der()), name(two.der()));
    }

    #[test]
    fn invalid_certificate_has_no_validity() {
        for bytes in [
            &b""[..],
            b"\x30",
            b"\x30\x05\x30",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x89\x01\x01\x01\x01\x01\x01\x01\x01\x01",
            b"\x30\x02\x30\x00",
            b"\x30\x04\x30\x02\xa0\x00",
        ] {
            assert_eq!(read_validity(bytes), None, "{bytes:?}");
        }
    }
}
