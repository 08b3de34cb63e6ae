//! Server that exposes [`Metrics`] to authorized clients.

mod access;
mod handlers;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, StatusCode};
use kube::Client;
use tokio_rustls::TlsAcceptor;

use access::{Access, AccessDecision};
pub(crate) use handlers::Handlers;

use crate::args::ManagerArgs;
use crate::metrics::{Metrics, TEXT_FORMAT};
use crate::server::{BindError, Reply, Server, ServerThreads, text_reply};
use crate::tls::{CertificateError, Certificates, Files};

const PATH: &str = "/metrics";

#[derive(Debug, thiserror::Error)]
pub(crate) enum MetricsServerError {
    /// The address cannot be bound.
    #[error("--metrics-bind-address: {0}")]
    Bind(#[from] BindError),
    /// The certificate can't be used.
    #[error("--metrics-cert-path: {0}")]
    Certificate(#[from] CertificateError),
}

pub(crate) struct MetricsServer {
    server: Server,
    tls: Option<TlsAcceptor>,
    /// Reloads the certificate, and never resolves.
    watch: BoxFuture<'static, ()>,
    handler: MetricsHandler,
}

struct MetricsHandler {
    metrics: Metrics,
    /// `None` if anyone may read the metrics.
    access: Option<Access>,
    handlers: Handlers,
}

impl MetricsServer {
    /// Returns `None` if the flags disable the server.
    pub(crate) async fn bind(
        args: &ManagerArgs,
        metrics: Metrics,
        client: Client,
    ) -> Result<Option<Self>, MetricsServerError> {
        let Some(server) = Server::bind(&args.metrics_bind_address).await? else {
            return Ok(None);
        };
        if !args.metrics_secure {
            let handler = MetricsHandler {
                metrics,
                access: None,
                handlers: Handlers::default(),
            };
            return Ok(Some(Self {
                server,
                tls: None,
                watch: Box::pin(std::future::pending()),
                handler,
            }));
        }
        let (certificates, watch) = load_certificates(args, &metrics)?;
        let tls = Some(certificates.acceptor(None, args.enable_http2)?);
        let handler = MetricsHandler {
            metrics,
            access: Some(Access::new(client)),
            handlers: Handlers::default(),
        };
        Ok(Some(Self {
            server,
            tls,
            watch,
            handler,
        }))
    }

    /// The minimum is one.
    pub(crate) fn with_max_connections(mut self, max: usize) -> Self {
        self.server = self.server.with_max_connections(max);
        self
    }

    pub(crate) fn on_threads(mut self, threads: &ServerThreads) -> io::Result<Self> {
        self.server = threads.adopt(self.server)?;
        Ok(self)
    }

    /// Clients need to be authorized for each handler's path.
    pub(crate) fn with_handlers(mut self, handlers: Handlers) -> Self {
        self.handler.handlers = handlers;
        self
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.server.address()
    }

    pub(crate) async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self {
            server,
            tls,
            watch,
            handler,
        } = self;
        let handler = Arc::new(handler);
        let handler = move |request: http::Request<_>| {
            let handler = Arc::clone(&handler);
            async move {
                let (parts, _) = request.into_parts();
                handler.answer(http::Request::from_parts(parts, ())).await
            }
        };
        tokio::select! {
            () = server.serve(tls, handler, shutdown) => {}
            () = watch => {}
        }
    }
}

/// Returns the certificate in the flags and a future that reloads it. Without flags, creates a
/// self-signed certificate.
fn load_certificates(
    args: &ManagerArgs,
    metrics: &Metrics,
) -> Result<(Arc<Certificates>, BoxFuture<'static, ()>), CertificateError> {
    match args
        .metrics_cert_path
        .as_deref()
        .filter(|folder| *folder != Path::new(""))
    {
        Some(folder) => {
            let files = Files {
                certificate: folder.join(&args.metrics_cert_name),
                key: folder.join(&args.metrics_cert_key),
            };
            let (certificates, watch) = Certificates::from_files(files, metrics.clone())?;
            Ok((certificates, Box::pin(watch)))
        }
        None => Ok((Certificates::self_signed()?, Box::pin(std::future::pending()))),
    }
}

impl MetricsHandler {
    async fn answer(&self, request: http::Request<()>) -> Reply {
        let (method, path) = (request.method(), request.uri().path());
        let handler = self.handlers.at(path);
        if handler.is_none() && path != PATH {
            return text_reply(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        if handler.is_none() && !matches!(*method, Method::GET | Method::HEAD) {
            return text_reply(StatusCode::METHOD_NOT_ALLOWED, "expected method GET\n");
        }
        match self.check_access(method, path, request.headers()).await {
            Some(rejection) => rejection,
            None => match handler {
                Some(handler) => handler(request).await,
                None => self.metrics_reply(),
            },
        }
    }

    fn metrics_reply(&self) -> Reply {
        let mut reply = text_reply(StatusCode::OK, self.metrics.text());
        reply
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
        reply
    }

    /// Returns an error response unless the client is authorized.
    async fn check_access(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Reply> {
        let verb = method.as_str().to_ascii_lowercase();
        match self.access.as_ref()?.check(headers, &verb, path).await {
            Ok(AccessDecision::Allowed) => None,
            Ok(AccessDecision::Unauthenticated) => {
                let mut reply = text_reply(StatusCode::UNAUTHORIZED, "expected a valid bearer token\n");
                reply
                    .headers_mut()
                    .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                Some(reply)
            }
            Ok(AccessDecision::Denied(user)) => {
                let reason = format!("user `{user}` cannot {verb} path {path}\n");
                Some(text_reply(StatusCode::FORBIDDEN, reason))
            }
            Err(error) => {
                tracing::error!(%error, "failed to authorize metrics request");
                Some(text_reply(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "failed to authorize the request\n",
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests;
