//! IP addresses, parsed like Go's `netip.ParseAddr`.

use std::net::{Ipv4Addr, Ipv6Addr};

use rbuilder_kubernetes::go::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Ip {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

/// Parses an address like CEL's `ip`, with the API server's error messages.
pub(in super::super) fn parse_ip(text: &str) -> Result<Ip, String> {
    let quoted = quote(text);
    let (ip, zone) = parse_address(text)
        .map_err(|error| format!("IP Address {quoted} parse error during conversion from string: {error}"))?;
    if zone {
        return Err(format!("IP address {quoted} with zone value is not allowed"));
    }
    if ip.is_mapped() {
        return Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"));
    }
    Ok(ip)
}

/// Parses an address, with Go's error messages. The flag tells whether there was a zone.
pub(super) fn parse_address(text: &str) -> Result<(Ip, bool), String> {
    // The first of these characters decides, like in Go.
    let parsed = match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => parse_v4(text).map(|octets| (Ip::V4(octets.into()), false)),
        Some(b':') => parse_v6(text),
        Some(_) => Err(("missing IPv6 address", "")),
        None => Err(("unable to parse IP", "")),
    };
    parsed.map_err(|(message, at)| match at {
        "" => format!("ParseAddr({}): {message}", quote(text)),
        at => format!("ParseAddr({}): {message} (at {})", quote(text), quote(at)),
    })
}

/// Message, and the text it refers to.
type Problem<'t> = (&'static str, &'t str);

fn parse_v4(text: &str) -> Result<[u8; 4], Problem<'_>> {
    let mut octets = [0; 4];
    let (mut octet, mut digits, mut position) = (0_u32, 0, 0);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && octet == 0 {
                    return Err(("IPv4 field has octet with leading zero", ""));
                }
                octet = octet * 10 + u32::from(byte - b'0');
                digits += 1;
                if octet > 255 {
                    return Err(("IPv4 field has value >255", ""));
                }
            }
            b'.' => {
                if at == 0 || at + 1 == bytes.len() || bytes[at - 1] == b'.' {
                    return Err(("IPv4 field must have at least one digit", &text[at..]));
                }
                if position == 3 {
                    return Err(("IPv4 address too long", ""));
                }
                octets[position] = octet as u8;
                position += 1;
                (octet, digits) = (0, 0);
            }
            _ => return Err(("unexpected character", text.get(at..).unwrap_or_default())),
        }
    }
    if position < 3 {
        return Err(("IPv4 address too short", ""));
    }
    octets[3] = octet as u8;
    Ok(octets)
}

fn parse_v6(text: &str) -> Result<(Ip, bool), Problem<'_>> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut octets = [0; 16];
    let mut rest = address;
    let mut ellipsis = None;
    if let Some(after) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok((Ip::V6(Ipv6Addr::UNSPECIFIED), zone));
        }
    }
    let mut filled = 0;
    while filled < 16 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return Err(("each group must have 4 or less digits", rest));
        }
        if digits == 0 {
            return Err(("each colon-separated field must have at least one digit", rest));
        }
        if rest.as_bytes().get(digits) == Some(&b'.') {
            if ellipsis.is_none() && filled != 12 {
                let message = "embedded IPv4 address must replace the final 2 fields of the address";
                return Err((message, rest));
            }
            if filled + 4 > 16 {
                let message = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err((message, rest));
            }
            octets[filled..filled + 4].copy_from_slice(&parse_v4(rest)?);
            filled += 4;
            rest = "";
            break;
        }
        let group = u16::from_str_radix(&rest[..digits], 16).unwrap_or_default();
        octets[filled..filled + 2].copy_from_slice(&group.to_be_bytes());
        filled += 2;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        match rest.strip_prefix(':') {
            None => return Err(("unexpected character, want colon", rest)),
            Some("") => return Err(("colon must be followed by more characters", rest)),
            Some(after) => rest = after,
        }
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(("multiple :: in address", rest));
            }
            ellipsis = Some(filled);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    match ellipsis {
        None if filled < 16 => return Err(("address string too short", "")),
        Some(_) if filled == 16 => {
            return Err(("the :: must expand to at least one field of zeros", ""));
        }
        Some(start) => {
            octets.copy_within(start..filled, start + 16 - filled);
            octets[start..start + 16 - filled].fill(0);
        }
        None => {}
    }
    Ok((Ip::V6(octets.into()), zone))
}

impl Ip {
    pub(super) fn is_mapped(&self) -> bool {
        matches!(self, Ip::V6(ip) if ip.to_ipv4_mapped().is_some())
    }

    pub(in super::super) fn family(&self) -> i64 {
        match self {
            Ip::V4(_) => 4,
            Ip::V6(_) => 6,
        }
    }

    /// Size in bytes.
    pub(in super::super) fn size(&self) -> u64 {
        match self {
            Ip::V4(_) => 4,
            Ip::V6(_) => 16,
        }
    }

    /// Returns the address as a number, left-aligned so that v4 and v6 prefixes can be handled
    /// alike.
    pub(super) fn bits(&self) -> u128 {
        match self {
            Ip::V4(ip) => u128::from(ip.to_bits()) << 96,
            Ip::V6(ip) => ip.to_bits(),
        }
    }

    pub(in super::super) fn is_unspecified(&self) -> bool {
        match self {
            Ip::V4(ip) => ip.is_unspecified(),
            Ip::V6(ip) => ip.is_unspecified(),
        }
    }

    pub(in super::super) fn is_loopback(&self) -> bool {
        match self {
            Ip::V4(ip) => ip.is_loopback(),
            Ip::V6(ip) => ip.is_loopback(),
        }
    }

    pub(in super::super) fn is_link_local_multicast(&self) -> bool {
        match self {
            Ip::V4(ip) => ip.octets()[..3] == [224, 0, 0],
            Ip::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
        }
    }

    pub(in super::super) fn is_link_local_unicast(&self) -> bool {
        match self {
            Ip::V4(ip) => ip.is_link_local(),
            Ip::V6(ip) => ip.is_unicast_link_local(),
        }
    }

    pub(in super::super) fn is_global_unicast(&self) -> bool {
        // As in Go, private addresses count as global, but the broadcast address doesn't.
        let is_multicast = match self {
            Ip::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
            Ip::V6(ip) => ip.is_multicast(),
        };
        !(is_multicast || self.is_unspecified() || self.is_loopback() || self.is_link_local_unicast())
    }

    pub(in super::super) fn format(&self) -> String {
        match self {
            Ip::V4(ip) => ip.to_string(),
            Ip::V6(ip) => format_v6(ip),
        }
    }
}

/// Unlike std, Go never formats IPv6 addresses with a trailing IPv4 address.
fn format_v6(ip: &Ipv6Addr) -> String {
    let segments = ip.segments();
    let zeros = |start: usize| {
        segments[start..]
            .iter()
            .take_while(|segment| **segment == 0)
            .count()
    };
    // RFC 5952: `::` replaces the first of the longest runs of two or more zeros.
    let (start, length) = (0..8)
        .map(|start| (start, zeros(start)))
        .filter(|(_, length)| *length >= 2)
        .fold((8, 0), |best, run| if run.1 > best.1 { run } else { best });
    let join = |segments: &[u16]| {
        let texts: Vec<String> = segments.iter().map(|segment| format!("{segment:x}")).collect();
        texts.join(":")
    };
    match length {
        0 => join(&segments),
        length => format!(
            "{}::{}",
            join(&segments[..start]),
            join(&segments[start + length..])
        ),
    }
}
