//! `/metrics` on the address that the flags give.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, StatusCode};
use kube::Client;
use tokio_rustls::TlsAcceptor;

use super::Metrics;
use super::access::{Access, Verdict};
use super::exposition;
use crate::args::ManagerArgs;
use crate::server::{BindError, Reply, Server, text};
use crate::tls::{CertificateError, Certificates, Files};

const PATH: &str = "/metrics";

/// Why the metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    /// The message names the address.
    #[error("--metrics-bind-address: {0}")]
    Bind(#[from] BindError),
    /// The message names the file.
    #[error("--metrics-cert-path: {0}")]
    Certificate(#[from] CertificateError),
}

/// The metrics' server. It listens already; it answers once it is served.
pub(crate) struct Endpoint {
    server: Server,
    tls: Option<TlsAcceptor>,
    /// Keeps the certificate up to date; never resolves.
    watch: BoxFuture<'static, ()>,
    pages: Pages,
}

/// What is answered, and to whom.
struct Pages {
    metrics: Metrics,
    /// Absent when everyone may read.
    access: Option<Access>,
}

impl Endpoint {
    /// Listens where the flags say; `None` when they say that there is no such server.
    pub(crate) async fn bind(
        args: &ManagerArgs,
        metrics: Metrics,
        client: Client,
    ) -> Result<Option<Self>, EndpointError> {
        let Some(server) = Server::bind(&args.metrics_bind_address).await? else {
            return Ok(None);
        };
        if !args.metrics_secure {
            let pages = Pages {
                metrics,
                access: None,
            };
            return Ok(Some(Self {
                server,
                tls: None,
                watch: Box::pin(std::future::pending()),
                pages,
            }));
        }
        let (certificates, watch) = certificates(args, &metrics)?;
        let tls = Some(certificates.acceptor(None, args.enable_http2)?);
        let pages = Pages {
            metrics,
            access: Some(Access::new(client)),
        };
        Ok(Some(Self {
            server,
            tls,
            watch,
            pages,
        }))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.server.address()
    }

    /// Answers until `shutdown` resolves and what was asked before is answered.
    pub(crate) async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self {
            server,
            tls,
            watch,
            pages,
        } = self;
        let pages = Arc::new(pages);
        let handler = move |request: http::Request<_>| {
            let pages = Arc::clone(&pages);
            async move {
                let (parts, _) = request.into_parts();
                pages
                    .answer(&parts.method, parts.uri.path(), &parts.headers)
                    .await
            }
        };
        tokio::select! {
            () = server.serve(tls, handler, shutdown) => {}
            () = watch => {}
        }
    }
}

/// The certificate that the flags name, or one made for the occasion; and what keeps it up to date.
fn certificates(
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

impl Pages {
    async fn answer(&self, method: &Method, path: &str, headers: &HeaderMap) -> Reply {
        if path != PATH {
            return text(StatusCode::NOT_FOUND, "404 page not found\n");
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "expected method GET\n");
        }
        match self.refusal(method, path, headers).await {
            Some(refusal) => refusal,
            None => {
                let mut reply = text(StatusCode::OK, self.metrics.text());
                reply
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static(exposition::CONTENT_TYPE));
                reply
            }
        }
    }

    /// What those get who may not read; `None` for those who may.
    async fn refusal(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Reply> {
        let verb = method.as_str().to_ascii_lowercase();
        match self.access.as_ref()?.check(headers, &verb, path).await {
            Ok(Verdict::Allowed) => None,
            Ok(Verdict::Unknown) => {
                let mut reply = text(StatusCode::UNAUTHORIZED, "expected a valid bearer token\n");
                reply
                    .headers_mut()
                    .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                Some(reply)
            }
            Ok(Verdict::Denied(user)) => {
                let reason = format!("user `{user}` cannot {verb} path {path}\n");
                Some(text(StatusCode::FORBIDDEN, reason))
            }
            Err(error) => {
                tracing::error!(%error, "failed to authorize metrics request");
                Some(text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "failed to authorize the request\n",
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests;
