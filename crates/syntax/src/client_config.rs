//! Addresses of admission and conversion webhooks, validated like a `WebhookClientConfig` in the
//! API server.

use rbuilder_reader::Span;

use crate::Session;
use rbuilder_kubernetes::names;

pub(crate) fn check_webhook_url(url: &str, at: Span, session: &mut Session) {
    if let Some(problem) = url_problem(url) {
        session.error_help(at, format!("`{url}` {problem}"), "write `https://host:port/path`");
    }
}

fn url_problem(url: &str) -> Option<&'static str> {
    let Some(rest) = url.strip_prefix("https://") else {
        return Some("is not an `https://` URL");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, ""),
    };
    if host.is_empty() {
        Some("has no host")
    } else if authority.contains('@') {
        Some("contains a user, which the API server rejects")
    } else if rest.contains(['?', '#']) {
        Some("has a query or a fragment, which the API server rejects")
    } else if rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
        Some("contains a space")
    } else if !is_host(host) {
        Some("has an invalid host")
    } else if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        Some("has an invalid port")
    } else {
        None
    }
}

fn is_host(host: &str) -> bool {
    match host.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok()),
        None => host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)),
    }
}

pub(crate) fn check_service_path(path: &str, at: Span, session: &mut Session) {
    let Some(rest) = path.strip_prefix('/') else {
        let message = format!("expected a path that begins with `/`, found `{path}`");
        return session.error_help(at, message, format!("write `/{path}`"));
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if path != "/" && !rest.split('/').all(names::is_subdomain) {
        let help = "use lower-case letters, digits, `-` and `.` between slashes";
        session.error_help(at, format!("the API server rejects the path `{path}`"), help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_urls_that_the_api_server_rejects() {
        for (url, problem) in [
            ("https://a", None),
            ("https://a.b:443/c", None),
            ("https://[::1]:9443/", None),
            ("https://10.0.0.1/a/B_c", None),
            ("http://a", Some("is not an `https://` URL")),
            ("https://", Some("has no host")),
            ("https:///a", Some("has no host")),
            ("https://:443", Some("has no host")),
            (
                "https://u@a",
                Some("contains a user, which the API server rejects"),
            ),
            (
                "https://a?b",
                Some("has a query or a fragment, which the API server rejects"),
            ),
            (
                "https://a/#b",
                Some("has a query or a fragment, which the API server rejects"),
            ),
            ("https://a b", Some("contains a space")),
            ("https://a:b", Some("has an invalid port")),
            ("https://[::g]", Some("has an invalid host")),
            ("https://a{b}", Some("has an invalid host")),
        ] {
            assert_eq!(url_problem(url), problem, "{url}");
        }
    }
}
