//! Says in the log what the API server warns of.
//!
//! An answer may carry [warnings] although the request was done: a version that will not be served much longer, a field
//! that nobody knows, what an admission webhook has to say. They are for whoever maintains the operator, so each text
//! is said once per client, as controller-runtime does, however often a reconcile repeats its request.
//!
//! [warnings]: https://kubernetes.io/blog/2020/09/03/warnings/

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::header::WARNING;
use http::{HeaderMap, Request, Response};
use tower::Service;

/// The code of what Kubernetes says; others are those of HTTP caches.
const CODE: &str = "299";
/// How many texts are remembered. Those that name objects are without end: then all may be said once more.
const REMEMBERED: usize = 1000;

/// A client's service that logs warnings.
#[derive(Clone)]
pub(super) struct Warned<S> {
    inner: S,
    said: Arc<Said>,
}

impl<S> Warned<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner,
            said: Arc::default(),
        }
    }
}

impl<S, A, B> Service<Request<A>> for Warned<S>
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
        let said = Arc::clone(&self.said);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let answered = self.inner.call(request);
        Box::pin(async move {
            let answer = answered.await?;
            for text in warnings(answer.headers()).filter(|text| said.is_new(text)) {
                let request = format_args!("{method} {}", uri.path());
                tracing::warn!(%request, warning = %text, "warning from the API server");
            }
            Ok(answer)
        })
    }
}

/// What has been said.
#[derive(Default)]
struct Said(Mutex<HashSet<String>>);

impl Said {
    /// Whether this was not said before; from now on it was.
    fn is_new(&self, text: &str) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == REMEMBERED && !said.contains(text) {
            said.clear();
        }
        said.insert(text.to_owned())
    }
}

/// The texts of all warnings of an answer.
fn warnings(headers: &HeaderMap) -> impl Iterator<Item = String> {
    headers
        .get_all(WARNING)
        .into_iter()
        // Texts may be UTF-8, which `to_str` refuses.
        .filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
        .flat_map(texts)
}

/// The texts in one header, `<code> <agent> "<text>"` by [RFC 7234], with or without a date behind, separated by
/// commas. What does not read so ends the list: nobody can tell where the next one begins.
///
/// [RFC 7234]: https://www.rfc-editor.org/rfc/rfc7234#section-5.5
fn texts(header: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = header;
    while let Some((code, text, behind)) = one(rest) {
        if code == CODE && !text.is_empty() {
            texts.push(text);
        }
        let next = date(behind).trim_start();
        let Some(next) = next.strip_prefix(',') else {
            break;
        };
        rest = next;
    }
    texts
}

/// Code and text of the first warning, and what is behind it.
fn one(header: &str) -> Option<(&str, String, &str)> {
    let (code, rest) = header.trim_start().split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let (text, behind) = quoted(rest)?;
    Some((code, text, behind))
}

/// A quoted string, in which a backslash stands before what is meant as it is; and what is behind it.
fn quoted(header: &str) -> Option<(String, &str)> {
    let inner = header.strip_prefix('"')?;
    let mut text = String::new();
    let mut characters = inner.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, &inner[at + 1..])),
            '\\' => text.push(characters.next()?.1),
            // What a server passes on from others must not begin lines in a log.
            character if character.is_control() => text.push(' '),
            character => text.push(character),
        }
    }
    None
}

/// What is behind a date, if there is one; it is quoted and has a comma of its own.
fn date(header: &str) -> &str {
    quoted(header.trim_start()).map_or(header, |(_, behind)| behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_headers() {
        let check = |header: &str, expected: &[&str]| assert_eq!(texts(header), expected, "{header}");
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
        for broken in ["", "299", "299 -", "299 - a", r#"299 - "a"#, r#"299 - "a\"#] {
            check(broken, &[]);
        }
    }

    #[test]
    fn a_text_is_new_once() {
        let said = Said::default();
        assert!(said.is_new("a"));
        assert!(!said.is_new("a"));
        for other in 1..REMEMBERED {
            assert!(said.is_new(&other.to_string()));
        }
        assert!(!said.is_new("a"));
        assert!(said.is_new("one too many"));
        assert!(said.is_new("a"));
    }
}
