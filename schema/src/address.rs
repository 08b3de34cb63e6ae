//! Addresses of std: what its parsers take, and no more.
//!
//! A format lets other things through. The API server's `ipv4` takes `::ffff:1.2.3.4` and `01.2.3.4` too, there is none
//! for an address of either sort or for one with a port, and of a text with a format the server does not ask whether it is
//! one: it takes a list. So a pattern says it all.

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

/// Eight groups, or fewer with one `::`; the last two may be written as an IPv4 address after `::` or `::ffff:`, as std
/// writes them.
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
            "|::([fF]{4}:)?",
            v4!(),
            ")"
        )
    };
}

macro_rules! port {
    () => {
        "(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5]?[0-9]{1,4})"
    };
}

/// The address of an interface may name it by number.
macro_rules! scope {
    () => {
        "(%[0-9]{1,9})?"
    };
}

const V4: &str = concat!("^", v4!(), "$");
const V6: &str = concat!("^", v6!(), "$");
const IP: &str = concat!("^(", v4!(), "|", v6!(), ")$");
const SOCKET_V4: &str = concat!("^", v4!(), ":", port!(), "$");
const SOCKET_V6: &str = concat!(r"^\[", v6!(), scope!(), r"\]:", port!(), "$");
const SOCKET: &str = concat!("^(", v4!(), r"|\[", v6!(), scope!(), r"\]):", port!(), "$");

/// The schema of an address by its name in `std::net`.
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
        let pattern = crate::Pattern::parse(&pattern).expect("an expression");
        for text in TEXTS {
            assert_eq!(
                pattern.is_match(text),
                Some(text.parse::<T>().is_ok()),
                "{text} as {name}"
            );
        }
    }

    #[test]
    fn patterns_take_what_std_takes() {
        check::<IpAddr>("IpAddr");
        check::<Ipv4Addr>("Ipv4Addr");
        check::<Ipv6Addr>("Ipv6Addr");
        check::<SocketAddr>("SocketAddr");
        check::<SocketAddrV4>("SocketAddrV4");
        check::<SocketAddrV6>("SocketAddrV6");
    }
}
