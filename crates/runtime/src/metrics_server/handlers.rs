//! User-provided handlers on the metrics server.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;

use super::PATH;
use crate::server::Reply;

type Handler = Arc<dyn Fn(Request<()>) -> BoxFuture<'static, Reply> + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Handlers {
    by_path: BTreeMap<String, Handler>,
    /// The first path that couldn't be added, and the reason.
    error: Option<String>,
}

impl Handlers {
    /// An invalid path is reported by [`first_error`](Self::first_error).
    pub(crate) fn add<F, Fut, B>(&mut self, path: String, handler: F)
    where
        F: Fn(Request<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<B>> + Send + 'static,
        B: Into<Bytes>,
    {
        let reason = if !path.starts_with('/') {
            Some("expected a path that starts with `/`")
        } else if path == PATH {
            Some("the metrics are served there")
        } else if self.by_path.contains_key(&path) {
            Some("it already has a handler")
        } else {
            None
        };
        if let Some(reason) = reason {
            let error = format!("invalid path `{path}` of a handler: {reason}");
            self.error.get_or_insert(error);
            return;
        }
        let reply = move |request| {
            let response = handler(request);
            async move { response.await.map(|body| Full::new(body.into())) }.boxed()
        };
        self.by_path.insert(path, Arc::new(reply));
    }

    pub(crate) fn first_error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    pub(crate) fn at(&self, path: &str) -> Option<&Handler> {
        self.by_path.get(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_path_is_an_error() {
        let check = |paths: &[&str], expected: Option<&str>| {
            let mut handlers = Handlers::default();
            for path in paths {
                handlers.add((*path).to_owned(), async |_| Response::new(""));
            }
            assert_eq!(handlers.first_error(), expected, "{paths:?}");
        };
        check(&["/debug/a", "/debug/b", "/metrics/more"], None);
        check(
            &["debug"],
            Some("invalid path `debug` of a handler: expected a path that starts with `/`"),
        );
        check(
            &["/metrics"],
            Some("invalid path `/metrics` of a handler: the metrics are served there"),
        );
        check(
            &["/a", "/a", "b"],
            Some("invalid path `/a` of a handler: it already has a handler"),
        );
    }
}
