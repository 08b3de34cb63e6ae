//! Patterns for the addresses in `std::net` that match exactly what its parsers accept.
//!
//! The API server's formats aren't exact: its `ipv4` also accepts `::ffff:1.2.3.4` and `01.2.3.4`,
//! and there is no format for "IPv4 or IPv6" or for an address with a port. A schema with a format
//! also accepts a list.

use crate::build::of_type;
use crate::{Schema, SchemaType};

macro_rules! octet {
    () => {
        "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
    };
}

macro_rules! v4 {
    () => {
        concat!("(", octet!(), r"\.){3}", octet!())
    };
}

/// Eight groups, or fewer with a `::`. The last two groups may be an IPv4 address, e.g.
/// `::ffff:1.2.3.4`.
macro_rules! v6 {
    () => {
        concat!(
            "(",
            "([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}",
            "|([0-9a-fA-F]{1,4}:){1,7}:",
            "|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}",
            "|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}",
            "|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}",
            "|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}",
            "|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}",
            "|[0-9a-fA-F]{1,4}:(:[0-9a-fA-F]{1,4}){1,6}",
            "|:((:[0-9a-fA-F]{1,4}){1,7}|:)",
            "|(([0-9a-fA-F]{1,4}:){6}",
            "|::([0-9a-fA-F]{1,4}:){0,5}",
            "|[0-9a-fA-F]{1,4}::([0-9a-fA-F]{1,4}:){0,4}",
            "|([0-9a-fA-F]{1,4}:){2}:([0-9a-fA-F]{1,4}:){0,3}",
            "|([0-9a-fA-F]{1,4}:){3}:([0-9a-fA-F]{1,4}:){0,2}",
            "|([0-9a-fA-F]{1,4}:){4}:([0-9a-fA-F]{1,4}:)?",
            "|([0-9a-fA-F]{1,4}:){5}:)",
            v4!(),
            ")"
        )
    };
}

macro_rules! port {
    () => {
        "0*(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5]?[0-9]{1,4})"
    };
}

/// The zone of an IPv6 address. `std::net` only parses the number of an interface (`%2`), not its
/// name.
macro_rules! scope {
    () => {
        concat!(
            "(%0*([0-9]{1,9}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}",
            "|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5]))?"
        )
    };
}

const V4: &str = concat!("^", v4!(), "$");
const V6: &str = concat!("^", v6!(), "$");
const IP: &str = concat!("^(", v4!(), "|", v6!(), ")$");
const SOCKET_V4: &str = concat!("^", v4!(), ":", port!(), "$");
const SOCKET_V6: &str = concat!(r"^\[", v6!(), scope!(), r"\]:", port!(), "$");
const SOCKET: &str = concat!("^(", v4!(), r"|\[", v6!(), scope!(), r"\]):", port!(), "$");

/// `name` is the name of a type in `std::net`, e.g. `Ipv4Addr`.
pub(crate) fn address_schema(name: &str) -> Option<Schema> {
    let pattern = match name {
        "Ipv4Addr" => V4,
        "Ipv6Addr" => V6,
        "IpAddr" => IP,
        "SocketAddrV4" => SOCKET_V4,
        "SocketAddrV6" => SOCKET_V6,
        "SocketAddr" => SOCKET,
        _ => return None,
    };
    Some(Schema {
        pattern: Some(pattern.into()),
        ..of_type(SchemaType::String)
    })
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

    use super::*;

    const TEXTS: &[&str] = &[
        "1.2.3.4",
        "0.0.0.0",
        "255.255.255.255",
        "256.1.1.1",
        "1.2.3",
        "01.2.3.4",
        "1.2.3.4.",
        "1.2.3.4/8",
        "::1",
        "::",
        "",
        " 1.2.3.4",
        "::ffff:1.2.3.4",
        "fe80::1%1",
        "1.2.3.4:80",
        "1.2.3.4:65535",
        "1.2.3.4:65536",
        "1.2.3.4:",
        ":80",
        "1.2.3.4:+80",
        "[::1]:80",
        "[::1]:99999",
        "[::]:0",
        "::1:80",
        "[fe80::1%1]:80",
        "[fe80::1%eth0]:80",
        "[1:2:3:4:5:6:7:8]:80",
        "[1:2:3:4:5:6:7::]:80",
        "[1:2:3:4:5:6:7:8::]:80",
        "[::2:3:4:5:6:7:8]:80",
        "[1::3:4:5:6:7:8]:80",
        "[1::2:3:4:5:6:7:8]:80",
        "[::ffff:1.2.3.4]:80",
        "[::FFFF:1.2.3.4]:80",
        "[::1.2.3.4]:80",
        "64:ff9b::192.0.2.33",
        "1:2:3:4:5:6:192.0.2.33",
        "1:2:3:4:5:6:7:192.0.2.33",
        "1:2:3:4:5::192.0.2.33",
        "1:2:3:4:5:6::192.0.2.33",
        "[fe80::1%4294967295]:80",
        "[fe80::1%4294967296]:80",
        "1.2.3.4:000080",
        "[12345::]:80",
        "[1::2::3]:80",
        "[g::]:80",
        "[::1]",
        "[1.2.3.4]:80",
        "localhost:80",
    ];

    fn check<T: std::str::FromStr>(name: &str) {
        let pattern = address_schema(name)
            .and_then(|schema| schema.pattern)
            .expect("a pattern");
        let pattern = rbuilder_re2::Pattern::parse(&pattern).expect("an expression");
        for text in TEXTS {
            assert_eq!(
                pattern.is_match(text),
                Some(text.parse::<T>().is_ok()),
                "{text} as {name}"
            );
        }
    }

    /// Random strings that resemble addresses, because they are composed of parts of addresses. The
    /// xorshift64 has a fixed seed, so that failures are reproducible.
    fn random_texts(count: usize) -> impl Iterator<Item = String> {
        const PARTS: &[&str] = &[
            "0",
            "1",
            "25",
            "255",
            "256",
            "01",
            "a",
            "ffff",
            "12345",
            "00000080",
            "65535",
            "65536",
            "4294967295",
            "4294967296",
            "%",
            ":",
            ":",
            ":",
            "::",
            "::",
            ".",
            ".",
            ".",
            "[",
            "]",
            "1.2.3.4",
            "1:2:3",
            "x",
        ];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = move |limit: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % limit as u64) as usize
        };
        (0..count).map(move |_| {
            let mut text = String::new();
            // Build half of the strings as lists of groups, a form that random parts rarely have.
            if below(2) == 0 {
                let groups = below(9);
                for group in 0..groups {
                    text += ["1", "ab", "0", "ffff", ""][below(5)];
                    text += if group + 1 < groups || below(4) == 0 {
                        ":"
                    } else {
                        ""
                    };
                }
                text += ["", "", "1.2.3.4", "255.0.0.10", "::"][below(5)];
                return match below(3) {
                    0 => format!("[{text}]:{}", below(70_000)),
                    1 => format!("[{text}%{}]:1", PARTS[below(14)]),
                    _ => text,
                };
            }
            for _ in 0..=below(9) {
                text += PARTS[below(PARTS.len())];
            }
            text
        })
    }

    #[test]
    fn patterns_match_std_parsers_on_random_strings() {
        fn hold<T: std::str::FromStr>(name: &str) {
            let pattern = address_schema(name)
                .and_then(|schema| schema.pattern)
                .expect("a pattern");
            let pattern = rbuilder_re2::Pattern::parse(&pattern).expect("an expression");
            let mut accepted = 0;
            for text in random_texts(TEXTS_OF_EACH) {
                let is_read = text.parse::<T>().is_ok();
                accepted += usize::from(is_read);
                assert_eq!(pattern.is_match(&text), Some(is_read), "{text} as {name}");
            }
            assert!(accepted > 0, "no text is an address of {name}");
        }
        const TEXTS_OF_EACH: usize = 10_000;
        hold::<IpAddr>("IpAddr");
        hold::<Ipv6Addr>("Ipv6Addr");
        hold::<SocketAddr>("SocketAddr");
        hold::<SocketAddrV6>("SocketAddrV6");
    }

    #[test]
    fn patterns_match_std_parsers() {
        check::<IpAddr>("IpAddr");
        check::<Ipv4Addr>("Ipv4Addr");
        check::<Ipv6Addr>("Ipv6Addr");
        check::<SocketAddr>("SocketAddr");
        check::<SocketAddrV4>("SocketAddrV4");
        check::<SocketAddrV6>("SocketAddrV6");
    }
}
