//! Addresses and names: `ipv4`, `ipv6`, `cidr`, `mac`, `hostname`, `k8s-short-name`,
//! `k8s-long-name`.

use std::net::Ipv6Addr;

/// An IPv4 address, possibly in IPv6 notation if it contains a dot. Leading zeros are fine, as Go
/// accepted them before 1.17.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.')
        && match text.find(['.', ':']) {
            Some(first) if text.as_bytes()[first] == b'.' => is_loose_ipv4(text),
            Some(_) => is_loose_ipv6(text),
            None => false,
        }
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match (is_loose_ipv4(address), is_loose_ipv6(address)) {
        (true, _) => 32,
        (false, true) => 128,
        (false, false) => return false,
    };
    loose_number(bits, 10).is_some_and(|bits| bits <= most)
}

/// Parses a number with any number of leading zeros. Go gives up at `0xFFFFFF`.
fn loose_number(text: &str, radix: u32) -> Option<u32> {
    const BIG: u32 = 0xFF_FFFF;
    if text.is_empty() {
        return None;
    }
    text.chars().try_fold(0, |number: u32, digit| {
        let number = number * radix + digit.to_digit(radix)?;
        (number < BIG).then_some(number)
    })
}

fn is_loose_ipv4(text: &str) -> bool {
    let is_octet = |part| loose_number(part, 10).is_some_and(|octet| octet <= 0xFF);
    text.split('.').count() == 4 && text.split('.').all(is_octet)
}

fn is_loose_ipv6(text: &str) -> bool {
    match text.split_once("::") {
        Some((head, tail)) => {
            // `::` stands for at least one group.
            let head = if head.is_empty() {
                Some(0)
            } else {
                groups(head, false)
            };
            let tail = if tail.is_empty() {
                Some(0)
            } else {
                groups(tail, true)
            };
            matches!((head, tail), (Some(head), Some(tail)) if head + tail <= 7)
        }
        None => groups(text, true) == Some(8),
    }
}

/// Counts groups of 16 bits. A trailing IPv4 address counts twice.
fn groups(text: &str, ipv4_is_last: bool) -> Option<usize> {
    let mut count = 0;
    let mut parts = text.split(':').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        count += if is_last && ipv4_is_last && is_loose_ipv4(part) {
            2
        } else {
            loose_number(part, 16)
                .filter(|group| *group <= 0xFFFF)
                .map(|_| 1)?
        };
    }
    Some(count)
}

/// 6, 8 or 20 bytes, written as `01:23`, `01-23` or `0123.4567`. Returns `None` without separators,
/// which only newer API servers accept.
pub(super) fn is_mac(text: &str) -> Option<bool> {
    let is_size = |bytes: usize| matches!(bytes, 6 | 8 | 20);
    let is_hex =
        |part: &str, digits: usize| part.len() == digits && part.bytes().all(|c| c.is_ascii_hexdigit());
    if is_size(text.len() / 2) && is_hex(text, text.len() / 2 * 2) {
        return None;
    }
    let matches = |separator: char, digits: usize| {
        let parts = text.split(separator);
        is_size(parts.clone().count() * digits / 2) && parts.clone().all(|part| is_hex(part, digits))
    };
    Some(matches(':', 2) || matches('-', 2) || matches('.', 4))
}

/// Either a single label, which can only have a dash after its first letter, or several labels
/// followed by an alphabetic top-level domain. Returns `None` for non-ASCII strings, because it
/// isn't known which characters the API server treats as letters or symbols.
pub(super) fn is_hostname(text: &str) -> Option<bool> {
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return Some(false);
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || "$+<=>^`|~".contains(c);
    let is_possible = |c: char| is_word(c) || c == '-' || c == '.' || !c.is_ascii();
    if !text.chars().all(is_possible) {
        return Some(false);
    }
    if !text.is_ascii() {
        return None;
    }
    let is_single = || {
        let mut rest = text.chars();
        rest.next().is_some_and(is_word)
            && rest
                .as_str()
                .strip_prefix('-')
                .unwrap_or(rest.as_str())
                .chars()
                .all(is_word)
    };
    let is_dotted = || {
        let Some((labels, top)) = text.rsplit_once('.') else {
            return false;
        };
        let is_label = |label: &str| {
            label.starts_with(is_word)
                && label.ends_with(is_word)
                && label.chars().all(|c| is_word(c) || c == '-')
        };
        top.len() >= 2 && top.chars().all(|c| c.is_ascii_alphabetic()) && labels.split('.').all(is_label)
    };
    Some(is_single() || is_dotted())
}
