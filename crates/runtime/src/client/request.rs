//! Classifies requests for retries and timeouts.

use http::header::CONTENT_TYPE;
use http::{Method, Request, Uri};

const JSON_PATCH: &str = "application/json-patch+json";

/// Returns `true` if a request has the same effect whether it's sent once or twice.
///
/// A second create fails with "already exists", or creates another object if the API server
/// generates the name. A second JSON patch might append an item twice, or remove the item that has
/// moved to the index of the removed one. Other patches are safe: they set fields to a value or,
/// with a resource version, fail with a conflict.
pub(super) fn is_idempotent<B>(request: &Request<B>) -> bool {
    match *request.method() {
        Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE => true,
        Method::PATCH => request
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|content_type| content_type != JSON_PATCH),
        _ => false,
    }
}

/// Subresources without a timeout in the API server, e.g. `log` and `exec`.
pub(super) fn is_streaming(path: &str) -> bool {
    let mut segments = path.trim_start_matches('/').split('/');
    // Paths start with `api/v1` or `apis/<group>/<version>`.
    let before = if segments.next() == Some("api") { 1 } else { 2 };
    let mut segments = segments.skip(before).peekable();
    if segments.peek() == Some(&"namespaces") {
        segments.next();
        segments.next();
    }
    // The subresource follows the resource and the name.
    let subresource = segments.nth(2);
    matches!(
        subresource,
        Some("attach" | "exec" | "log" | "portforward" | "proxy")
    )
}

/// Adds a query parameter `name=value`, unless the query already has one with this name.
pub(crate) fn add_parameter(uri: &mut Uri, parameter: &str) {
    let query = uri.query().unwrap_or_default();
    let name = |parameter: &str| parameter.split('=').next().map(str::to_owned);
    if query.split('&').any(|present| name(present) == name(parameter)) {
        return;
    }
    let separator = if query.is_empty() { "" } else { "&" };
    let target = format!("{}?{query}{separator}{parameter}", uri.path());
    let mut parts = uri.clone().into_parts();
    // Can't fail, since the parameter is valid in a query.
    let Ok(target) = target.parse() else { return };
    parts.path_and_query = Some(target);
    if let Ok(extended) = Uri::from_parts(parts) {
        *uri = extended;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_streaming_subresources_have_no_timeout() {
        let check = |path: &str, expected: bool| assert_eq!(is_streaming(path), expected, "{path}");
        check("/api/v1/namespaces/a/pods/web/log", true);
        check("/api/v1/namespaces/a/pods/web/exec", true);
        check("/api/v1/nodes/one/proxy/metrics", true);
        check("/api/v1/namespaces/a/services/web/proxy/x", true);
        check("/api/v1/namespaces/a/pods/log", false);
        check("/api/v1/namespaces/log/pods/exec", false);
        check("/api/v1/namespaces/a", false);
        check("/apis/apps/v1/namespaces/a/deployments/web/status", false);
        check("/apis/example.com/v1/namespaces/a/proxies/proxy", false);
        check("/readyz", false);
    }

    #[test]
    fn creates_and_json_patches_are_not_idempotent() {
        let check = |method: Method, content_type: &str, expected: bool| {
            let request = Request::builder()
                .method(&method)
                .header(CONTENT_TYPE, content_type);
            let request = request.body(()).unwrap();
            assert_eq!(is_idempotent(&request), expected, "{method} {content_type}");
        };
        check(Method::GET, "application/json", true);
        check(Method::PUT, "application/json", true);
        check(Method::DELETE, "application/json", true);
        check(Method::POST, "application/json", false);
        check(Method::PATCH, "application/apply-patch+yaml", true);
        check(Method::PATCH, "application/merge-patch+json", true);
        check(Method::PATCH, "application/strategic-merge-patch+json", true);
        check(Method::PATCH, JSON_PATCH, false);
        let unknown = Request::builder().method(Method::PATCH).body(()).unwrap();
        assert!(!is_idempotent(&unknown));
    }

    #[test]
    fn parameter_is_added_once() {
        let check = |uri: &str, expected: &str| {
            let mut uri: Uri = uri.parse().unwrap();
            add_parameter(&mut uri, "timeout=90s");
            assert_eq!(uri, expected);
        };
        check("/api/v1/pods", "/api/v1/pods?timeout=90s");
        check("/api/v1/pods?", "/api/v1/pods?timeout=90s");
        check("/api/v1/pods?limit=5", "/api/v1/pods?limit=5&timeout=90s");
        check("/api/v1/pods?timeout=5s", "/api/v1/pods?timeout=5s");
        check(
            "/api/v1/pods?timeoutSeconds=5",
            "/api/v1/pods?timeoutSeconds=5&timeout=90s",
        );
        check(
            "http://127.0.0.1:9/version",
            "http://127.0.0.1:9/version?timeout=90s",
        );
    }
}
