//! The few parts of DER (X.690) that certificates take: written, and read back as far as a certificate's times.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, fmt::strtime};

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
/// The explicit tag of a certificate's version.
pub(super) const VERSION: u8 = 0xa0;

pub(super) fn oid(encoded: &[u8]) -> Vec<u8> {
    der(OBJECT_IDENTIFIER, &[encoded])
}

/// Whole bytes: no bits of the last one are unused.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    der(BIT_STRING, &[&[0], bytes])
}

/// A time to the second, in the form that RFC 5280 §4.1.2.5 asks for: years until 2049 have two digits.
pub(super) fn time(time: Timestamp) -> Vec<u8> {
    let (tag, format) = if (1950..2050).contains(&time.to_zoned(TimeZone::UTC).year()) {
        (UTC_TIME, "%y%m%d%H%M%SZ")
    } else {
        (GENERALIZED_TIME, "%Y%m%d%H%M%SZ")
    };
    // The format has nothing that a time in UTC lacks.
    let text = strtime::format(format, &time.to_zoned(TimeZone::UTC)).unwrap_or_default();
    der(tag, &[text.as_bytes()])
}

/// Tag, length and contents; the parts of the contents follow each other.
pub(super) fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
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

/// From when to when a certificate is valid; `None` when it is none.
pub(super) fn validity(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut content, _) = element(certificate)?;
    // Version (which may be absent), serial number, algorithm, issuer.
    if let (VERSION, _, rest) = element(content)? {
        content = rest;
    }
    for _ in 0..3 {
        content = element(content)?.2;
    }
    let (_, times, _) = element(content)?;
    let (tag, from, rest) = element(times)?;
    let from = read_time(tag, from)?;
    let (tag, until, _) = element(rest)?;
    Some((from, read_time(tag, until)?))
}

/// Tag and contents of the first element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short @ ..=0x7f => (usize::from(short), rest),
        long => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            if digits.len() > size_of::<u32>() {
                return None;
            }
            let length = digits
                .iter()
                .fold(0_usize, |length, digit| length << 8 | usize::from(*digit));
            (length, rest)
        }
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

fn read_time(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let time = match tag {
        // Two digits of the year mean 1950 to 2049.
        UTC_TIME => {
            let century = if text.get(..2)? < "50" { "20" } else { "19" };
            DateTime::strptime("%Y%m%d%H%M%SZ", format!("{century}{text}"))
        }
        GENERALIZED_TIME => DateTime::strptime("%Y%m%d%H%M%SZ", text),
        _ => return None,
    };
    Some(time.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp())
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
            let expected = Some((OCTET_STRING, &*contents, &[][..]));
            assert_eq!(element(&encoded), expected, "{length}");
        }
    }

    #[test]
    fn times_are_written_as_the_rfc_asks_and_read_back() {
        for (written, expected) in [
            ("1970-01-01T00:00:00Z", "\u{17}\r700101000000Z"),
            ("2049-12-31T23:59:59Z", "\u{17}\r491231235959Z"),
            ("2050-01-01T00:00:00Z", "\u{18}\u{f}20500101000000Z"),
            ("9999-12-30T22:00:00Z", "\u{18}\u{f}99991230220000Z"),
        ] {
            let timestamp: Timestamp = written.parse().unwrap();
            let encoded = time(timestamp);
            assert_eq!(encoded, expected.as_bytes(), "{written}");
            let (tag, text, _) = element(&encoded).unwrap();
            assert_eq!(read_time(tag, text), Some(timestamp), "{written}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_times() {
        for bytes in [
            &b""[..],
            b"\x30",
            b"\x30\x05\x30",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x89\x01\x01\x01\x01\x01\x01\x01\x01\x01",
            b"\x30\x02\x30\x00",
            b"\x30\x04\x30\x02\xa0\x00",
        ] {
            assert_eq!(validity(bytes), None, "{bytes:?}");
        }
    }
}
