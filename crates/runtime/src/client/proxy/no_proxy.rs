//! Parses `NO_PROXY`, the list of hosts to contact without a proxy. Same format as Go's `httpproxy`
//! package.

use std::net::IpAddr;

use http::Uri;

#[derive(Debug, Default, PartialEq)]
pub(super) struct NoProxy {
    /// Set if the list contains a `*`.
    all: bool,
    entries: Vec<Entry>,
}

#[derive(Debug, PartialEq)]
struct Entry {
    hosts: Hosts,
    /// `None` matches any port.
    port: Option<u16>,
}

#[derive(Debug, PartialEq)]
enum Hosts {
    Address(IpAddr),
    /// E.g. `10.0.0.0/8`.
    Network {
        address: IpAddr,
        bits: u32,
    },
    /// Matches all hosts that end with the suffix, which includes a leading dot.
    ///
    /// `with_parent` is set for `example.com`, which also matches the domain itself, but not for
    /// `.example.com` and `*.example.com`.
    Domain {
        suffix: String,
        with_parent: bool,
    },
}

impl NoProxy {
    /// Parses a comma-separated list. Invalid entries are ignored, as in Go.
    pub(super) fn parse(text: &str) -> Self {
        let entries = text.split(',').map(|entry| entry.trim().to_lowercase());
        let entries: Vec<String> = entries.collect();
        Self {
            all: entries.iter().any(|entry| entry == "*"),
            entries: entries.iter().filter_map(|entry| parse_entry(entry)).collect(),
        }
    }

    /// Returns `true` if the server should be contacted directly, which always applies to
    /// localhost.
    pub(super) fn excludes(&self, server: &Uri) -> bool {
        let host = server.host().unwrap_or_default().to_lowercase();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        let is_local = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        let port = port_of(server);
        let is_listed = |entry: &Entry| {
            entry.port.is_none_or(|expected| expected == port) && entry.hosts.contains(host, address)
        };
        is_local || self.all || self.entries.iter().any(is_listed)
    }
}

pub(super) fn port_of(server: &Uri) -> u16 {
    let default = match server.scheme_str() {
        Some("http") => 80,
        _ => 443,
    };
    server.port_u16().unwrap_or(default)
}

fn parse_entry(entry: &str) -> Option<Entry> {
    if let Some((address, bits)) = entry.split_once('/') {
        let address = address.parse::<IpAddr>().ok()?.to_canonical();
        let bits = bits.parse().ok().filter(|bits| *bits <= width(address))?;
        let hosts = Hosts::Network { address, bits };
        return Some(Entry { hosts, port: None });
    }
    // An IPv6 address with a port needs brackets; without them, every colon is part of the address.
    let is_address = entry.parse::<IpAddr>().is_ok();
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) if !is_address && !entry.ends_with(']') => (host, Some(port.parse().ok()?)),
        _ => (entry, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        let hosts = Hosts::Address(address.to_canonical());
        return Some(Entry { hosts, port });
    }
    let host = host
        .strip_prefix('*')
        .filter(|rest| rest.starts_with('.'))
        .unwrap_or(host);
    let hosts = match host {
        "" | "*" => return None,
        host if host.starts_with('.') => Hosts::Domain {
            suffix: host.to_owned(),
            with_parent: false,
        },
        host => Hosts::Domain {
            suffix: format!(".{host}"),
            with_parent: true,
        },
    };
    Some(Entry { hosts, port })
}

impl Hosts {
    fn contains(&self, host: &str, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Self::Address(expected), Some(address)) => *expected == address,
            (
                Self::Network {
                    address: network,
                    bits,
                },
                Some(address),
            ) => width(*network) == width(address) && prefix(*network, *bits) == prefix(address, *bits),
            (Self::Domain { suffix, with_parent }, None) => {
                host.ends_with(suffix.as_str()) || (*with_parent && host == &suffix[1..])
            }
            _ => false,
        }
    }
}

fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => u32::BITS,
        IpAddr::V6(_) => u128::BITS,
    }
}

fn prefix(address: IpAddr, bits: u32) -> u128 {
    let number = match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    // The shift overflows for an IPv6 prefix of 0 bits.
    number.checked_shr(width(address) - bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_excluded_like_in_go() {
        let check = |list: &str, server: &str, expected: bool| {
            let excludes = NoProxy::parse(list).excludes(&server.parse().unwrap());
            assert_eq!(excludes, expected, "{server} by {list:?}");
        };
        // Localhost.
        for local in [
            "https://localhost:6443",
            "https://127.0.0.1:6443",
            "https://127.9.9.9",
            "https://[::1]:6443",
        ] {
            check("", local, true);
        }
        check("", "https://api.example.com", false);
        check("localhost.example.com", "https://api.example.com", false);
        check("*", "https://api.example.com", true);
        check("a, *", "https://10.0.0.1", true);
        // A plain name matches the domain and its subdomains.
        check("example.com", "https://example.com:6443", true);
        check("example.com", "https://api.example.com", true);
        check("example.com", "https://notexample.com", false);
        check("EXAMPLE.com", "https://Api.Example.COM", true);
        // A leading dot or a wildcard restricts the match to subdomains.
        for list in [".example.com", "*.example.com"] {
            check(list, "https://api.example.com", true);
            check(list, "https://example.com", false);
        }
        check("svc", "https://kubernetes.default.svc", true);
        check(" a.com ,, example.com ,", "https://example.com", true);
        check("example.com:6443", "https://example.com:6443", true);
        check("example.com:6443", "https://example.com", false);
        check("example.com:443", "https://example.com", true);
        check("example.com:80", "http://example.com", true);
        check("10.96.0.1", "https://10.96.0.1", true);
        check("10.96.0.1:6443", "https://10.96.0.1", false);
        check("10.96.0.1", "https://10.96.0.10", false);
        check("10.96.0.0/12", "https://10.111.255.1:6443", true);
        check("10.96.0.0/12", "https://10.112.0.1", false);
        check("0.0.0.0/0", "https://10.112.0.1", true);
        check("10.0.0.0/8", "https://api.example.com", false);
        check("10.0.0.0/8", "https://[::ffff:10.1.2.3]", true);
        check("fd00::/8", "https://[fd00::1]:6443", true);
        check("fd00::/8", "https://[fe00::1]", false);
        check("fd00::1", "https://[fd00::1]:6443", true);
        check("[fd00::1]:6443", "https://[fd00::1]:6443", true);
        check("[fd00::1]:6443", "https://[fd00::1]", false);
        // Invalid entries.
        for list in [":443", "/8", "10.0.0.0/33", "fd00::/129", "example.com:x", "."] {
            check(list, "https://10.0.0.1", false);
            check(list, "https://example.com", false);
        }
    }
}
