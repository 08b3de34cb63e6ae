//! IP addresses as in `ParseIPSloppy` and `ParseCIDRSloppy` of `k8s.io/utils/net`, which the API
//! server uses for old fields. Numbers may have leading zeros, as Go accepted them before 1.17.

/// Whether a text is an IPv4 address, possibly in IPv6 notation if it contains a dot.
#[must_use]
pub fn is_ipv4(text: &str) -> bool {
    text.contains('.')
        && match text.find(['.', ':']) {
            Some(first) if text.as_bytes()[first] == b'.' => is_loose_ipv4(text),
            Some(_) => is_loose_ipv6(text),
            None => false,
        }
}

/// Whether a text is a range of addresses.
#[must_use]
pub fn is_cidr(text: &str) -> bool {
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

/// Whether a text is an IPv4 or IPv6 address.
#[must_use]
pub fn is_ip(text: &str) -> bool {
    is_loose_ipv4(text) || is_loose_ipv6(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_are_accepted() {
        for (text, expected) in [
            ("10.0.0.1", true),
            ("010.000.0.01", true),
            ("10.0.0", false),
            ("10.0.0.256", false),
            ("::", true),
            ("00001::000a", true),
            ("::ffff:010.0.0.1", true),
            ("1::2::3", false),
            ("fe80::1%eth0", false),
            ("", false),
        ] {
            assert_eq!(is_ip(text), expected, "{text}");
        }
        assert!(is_cidr("010.0.0.0/08") && !is_cidr("10.0.0.0/33"));
    }
}
