//! Addresses and names: `ipv6`, `mac`, `hostname`, `k8s-short-name`, `k8s-long-name`.

use std::net::Ipv6Addr;

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
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
