//! Logs warnings sent by the API server.
//!
//! Even a successful response may contain [warnings], e.g. about deprecated versions or unknown
//! fields, or from an admission webhook. They're intended for the operator's developers. As in
//! controller-runtime, each warning is logged once per client, no matter how often a request is
//! repeated.
//!
//! [warnings]: https://kubernetes.io/blog/2020/09/03/warnings/

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::header::WARNING;
use http::{HeaderMap, Request, Response};
use tower::Service;

/// The code that Kubernetes uses. All others are meant for HTTP caches.
const CODE: &str = "299";
/// Number of warnings to remember. Unlimited, this would grow forever, because warnings may contain
/// object names. Once full, we start over, so a warning may be logged again.
const MAX_LOGGED: usize = 1000;

#[derive(Clone)]
pub(super) struct LogWarnings<S> {
    inner: S,
    logged: Arc<LoggedTexts>,
}

impl<S> LogWarnings<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner,
            logged: Arc::default(),
        }
    }
}

impl<S, A, B> Service<Request<A>> for LogWarnings<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let logged = Arc::clone(&self.logged);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            for text in read_warnings(response.headers()).filter(|text| logged.insert(text)) {
                let request = format_args!("{method} {}", uri.path());
                tracing::warn!(%request, warning = %text, "warning from the API server");
            }
            Ok(response)
        })
    }
}

#[derive(Default)]
struct LoggedTexts(Mutex<HashSet<String>>);

impl LoggedTexts {
    fn insert(&self, text: &str) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() == MAX_LOGGED && !logged.contains(text) {
            logged.clear();
        }
        logged.insert(text.to_owned())
    }
}

fn read_warnings(headers: &HeaderMap) -> impl Iterator<Item = String> {
    headers
        .get_all(WARNING)
        .into_iter()
        // `to_str` only accepts ASCII, but warnings may contain UTF-8.
        .filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
        .flat_map(parse_warnings)
}

/// Parses a comma-separated list of `<code> <agent> "<text>"` with an optional date, see [RFC
/// 7234].
///
/// [RFC 7234]: https://www.rfc-editor.org/rfc/rfc7234#section-5.5
fn parse_warnings(header: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = header;
    while let Some((code, text, after)) = parse_warning(rest) {
        if code == CODE && !text.is_empty() {
            texts.push(text);
        }
        let next = skip_date(after).trim_start();
        // Stop at the first malformed warning, since we can't tell where the next one starts.
        let Some(next) = next.strip_prefix(',') else {
            break;
        };
        rest = next;
    }
    texts
}

fn parse_warning(header: &str) -> Option<(&str, String, &str)> {
    let (code, rest) = header.trim_start().split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let (text, after) = parse_quoted(rest)?;
    Some((code, text, after))
}

/// Returns the string without its quotes and escapes, and the remaining input.
fn parse_quoted(header: &str) -> Option<(String, &str)> {
    let inner = header.strip_prefix('"')?;
    let mut text = String::new();
    let mut characters = inner.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, &inner[at + 1..])),
            '\\' => text.push(characters.next()?.1),
            // Don't let a webhook inject lines into our log.
            character if character.is_control() => text.push(' '),
            character => text.push(character),
        }
    }
    None
}

/// The optional date is quoted, and contains a comma itself.
fn skip_date(header: &str) -> &str {
    parse_quoted(header.trim_start()).map_or(header, |(_, after)| after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_parsed_from_headers() {
        let check =
            |header: &str, expected: &[&str]| assert_eq!(parse_warnings(header), expected, "{header}");
        check(r#"299 - "v1beta1 is deprecated""#, &["v1beta1 is deprecated"]);
        check(
            r#"299 - "unknown field \"spec.sise\"", 299 - "b\\c""#,
            &[r#"unknown field "spec.sise""#, r"b\c"],
        );
        check(
            r#"299 host:443 "a, b" "Sat, 21 Nov 2026 08:12:31 GMT",299 - "c""#,
            &["a, b", "c"],
        );
        check(r#"110 - "stale", 299 - "für alle""#, &["für alle"]);
        check("299 - \"a\tb\"", &["a b"]);
        check(r#"299 - """#, &[]);
        for malformed in ["", "299", "299 -", "299 - a", r#"299 - "a"#, r#"299 - "a\"#] {
            check(malformed, &[]);
        }
    }

    #[test]
    fn warning_is_new_once_until_the_limit_is_reached() {
        let logged = LoggedTexts::default();
        assert!(logged.insert("a"));
        assert!(!logged.insert("a"));
        for other in 1..MAX_LOGGED {
            assert!(logged.insert(&other.to_string()));
        }
        assert!(!logged.insert("a"));
        assert!(logged.insert("one too many"));
        assert!(logged.insert("a"));
    }
}
