//! `uri`: whatever Go's `url.ParseRequestURI` accepts.

/// An absolute URI or an absolute path. Returns `None` for a host in brackets or with several
/// colons, where the result depends on the version of Go.
pub(super) fn is_request_uri(text: &str) -> Option<bool> {
    if text.is_empty() || text.bytes().any(|c| c.is_ascii_control()) {
        return Some(false);
    }
    // `OPTIONS *` is a request without a path.
    if text == "*" {
        return Some(true);
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return Some(false);
    };
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    // E.g. `mailto:jane@example.com`. Go calls such a URI opaque and doesn't parse it any further.
    if !rest.starts_with('/') {
        return Some(scheme.is_some());
    }
    match (scheme, rest.strip_prefix("//")) {
        (Some(_), Some(after)) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            if !is_escaped(path) {
                return Some(false);
            }
            is_authority(authority)
        }
        _ => Some(is_escaped(rest)),
    }
}

/// Splits off the scheme, if any. Returns `None` if the text starts with a colon.
fn split_scheme(text: &str) -> Option<(Option<&str>, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    match end {
        Some(0) if text.starts_with(':') => None,
        Some(end) if text[end..].starts_with(':') && text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Some((Some(&text[..end]), &text[end + 1..]))
        }
        _ => Some((None, text)),
    }
}

fn is_authority(authority: &str) -> Option<bool> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let is_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if user.is_some_and(|user| !user.chars().all(is_user) || !is_escaped(user)) {
        return Some(false);
    }
    if host.contains(['[', ']']) || host.matches(':').count() > 1 {
        return None;
    }
    let is_port = |port: &str| port.bytes().all(|c| c.is_ascii_digit());
    if host.split_once(':').is_some_and(|(_, port)| !is_port(port)) {
        return Some(false);
    }
    Some(is_host(host))
}

/// In a host, Go only allows non-ASCII characters and `%25` to be escaped.
fn is_host(host: &str) -> bool {
    let is_escape =
        |part: &str| part.starts_with("25") || part.as_bytes().first().is_some_and(|c| *c >= b'8');
    is_escaped(host)
        && host.split('%').skip(1).all(is_escape)
        && !host.contains([' ', '#', '\\', '^', '`', '{', '|', '}'])
}

fn is_escaped(text: &str) -> bool {
    let is_escape = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    text.split('%').skip(1).all(is_escape)
}
