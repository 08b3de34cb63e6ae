//! CIDR ranges, parsed like Go's `netip.ParsePrefix`.

use super::ip::{Ip, parse_address};
use rbuilder_kubernetes::go::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Cidr {
    pub(in super::super) ip: Ip,
    pub(in super::super) bits: u8,
}

/// Parses a range like CEL's `cidr`, with the API server's error messages.
pub(in super::super) fn parse_cidr(text: &str) -> Result<Cidr, String> {
    const CONTEXT: &str = "network address parse error during conversion from string";
    let cidr = parse_prefix(text).map_err(|reason| {
        format!(
            "{CONTEXT}: {CONTEXT}: netip.ParsePrefix({}): {reason}",
            quote(text)
        )
    })?;
    match cidr.ip.is_mapped() {
        true => Err(format!(
            "{CONTEXT}: IPv4-mapped IPv6 address {} is not allowed",
            quote(text)
        )),
        false => Ok(cidr),
    }
}

fn parse_prefix(text: &str) -> Result<Cidr, String> {
    let (address, bits) = text.rsplit_once('/').ok_or("no '/'")?;
    let (ip, zone) = parse_address(address)?;
    if zone {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let is_number = bits.bytes().all(|byte| byte.is_ascii_digit()) && !bits.is_empty();
    if !is_number || (bits.len() > 1 && bits.starts_with('0')) || bits.parse::<i64>().is_err() {
        return Err(format!("bad bits after slash: {}", quote(bits)));
    }
    match bits.parse::<u8>() {
        Ok(bits) if u64::from(bits) <= ip.size() * 8 => Ok(Cidr { ip, bits }),
        _ => Err("prefix length out of range".to_owned()),
    }
}

fn masked(ip: Ip, bits: u8) -> u128 {
    match bits {
        0 => 0,
        bits => ip.bits() & (u128::MAX << (128 - u32::from(bits))),
    }
}

impl Cidr {
    pub(in super::super) fn contains_ip(&self, ip: Ip) -> bool {
        self.ip.family() == ip.family() && masked(self.ip, self.bits) == masked(ip, self.bits)
    }

    pub(in super::super) fn contains(&self, other: Cidr) -> bool {
        self.bits <= other.bits && self.contains_ip(other.ip)
    }

    pub(in super::super) fn masked(&self) -> Cidr {
        let bits = masked(self.ip, self.bits);
        let ip = match self.ip {
            Ip::V4(_) => Ip::V4(((bits >> 96) as u32).into()),
            Ip::V6(_) => Ip::V6(bits.into()),
        };
        Cidr { ip, bits: self.bits }
    }

    /// Size in bytes.
    pub(in super::super) fn size(&self) -> u64 {
        u64::from(self.bits).div_ceil(8)
    }

    pub(in super::super) fn format(&self) -> String {
        format!("{}/{}", self.ip.format(), self.bits)
    }
}
