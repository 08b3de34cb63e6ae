//! Connects to the API server, either directly or through a proxy.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::rustls::ClientConfig;
use tower::{BoxError, Service};

use super::{Protocol, Proxy, port_of, socks};

/// A connection to the API server, before the TLS handshake.
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

#[derive(Debug, thiserror::Error)]
#[error("{proxy} {failure}; {advice}")]
struct ProxyFailed {
    proxy: String,
    failure: String,
    advice: &'static str,
    source: Option<BoxError>,
}

#[derive(Clone)]
pub(in crate::client) struct Connector {
    tcp: HttpConnector,
    /// Connects to the proxy, using TLS if its URL starts with `https`.
    to_proxy: HttpsConnector<HttpConnector>,
    proxy: Option<Arc<Proxy>>,
}

impl Connector {
    /// `tls` is used for both the API server and an `https` proxy, as in Go.
    pub(in crate::client) fn new(proxy: Option<Proxy>, tls: ClientConfig) -> Self {
        let mut tcp = HttpConnector::new();
        // API server URLs usually start with `https`.
        tcp.enforce_http(false);
        Self {
            to_proxy: HttpsConnector::from((tcp.clone(), tls)),
            tcp,
            proxy: proxy.map(Arc::new),
        }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Stream, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self.proxy.clone() {
            None => {
                let connecting = self.tcp.call(server);
                Box::pin(async move { Ok(MaybeHttpsStream::Http(connecting.await?)) })
            }
            Some(proxy) => {
                let to_proxy = self.to_proxy.clone();
                Box::pin(async move { Ok(connect(to_proxy, &proxy, &server).await?) })
            }
        }
    }
}

async fn connect(
    mut to_proxy: HttpsConnector<HttpConnector>,
    proxy: &Proxy,
    server: &Uri,
) -> Result<Stream, ProxyFailed> {
    let new_failure = |failure: String, source: Option<BoxError>| ProxyFailed {
        proxy: proxy.to_string(),
        failure,
        advice: proxy.advice(),
        source,
    };
    let scheme = match proxy.protocol {
        Protocol::Https => "https",
        Protocol::Http | Protocol::Socks5 => "http",
    };
    let uri = Uri::builder().scheme(scheme).authority(proxy.address.clone());
    let uri = uri
        .path_and_query("/")
        .build()
        .map_err(|error| new_failure("has an invalid address".to_owned(), Some(error.into())))?;
    let unreachable = |error: BoxError| {
        let causes = crate::causes::describe_causes(&*error);
        new_failure(format!("cannot be reached: {causes}"), Some(error))
    };
    std::future::poll_fn(|context| to_proxy.poll_ready(context))
        .await
        .map_err(unreachable)?;
    let stream = to_proxy.call(uri).await.map_err(unreachable)?;
    let host = server.host().unwrap_or_default();
    let target = format!("{host}:{}", port_of(server));
    let tunnel = match (proxy.protocol, stream) {
        (Protocol::Socks5, MaybeHttpsStream::Http(stream)) => {
            // Unlike URLs, SOCKS doesn't put IPv6 addresses in brackets.
            let host = host.trim_start_matches('[').trim_end_matches(']');
            socks::connect(stream.into_inner(), proxy, host, port_of(server))
                .await
                .map(|stream| MaybeHttpsStream::Http(TokioIo::new(stream)))
        }
        (_, stream) => open_tunnel(stream, proxy, &target).await,
    };
    tunnel.map_err(|failure| new_failure(format!("did not connect to {target}: {failure}"), None))
}

/// Opens a tunnel with `CONNECT`. If the proxy rejects it, the error contains the proxy's response.
async fn open_tunnel(stream: Stream, proxy: &Proxy, target: &str) -> Result<Stream, String> {
    let failed = |error: hyper::Error| crate::causes::describe_causes(&error);
    let (mut sender, connection) = http1::handshake(stream).await.map_err(failed)?;
    // The task ends once the tunnel is established or the sender is dropped.
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::connect(target).header(HOST, target);
    if let Some(authorization) = proxy.authorization() {
        request = request.header(PROXY_AUTHORIZATION, authorization);
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(failed)?;
    match response.status() {
        status if status.is_success() => {}
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            return Err(
                "it asks for a user and a password (407); write them into its URL, as in \
                        `http://user:password@proxy.example.com:3128`"
                    .to_owned(),
            );
        }
        status => return Err(format!("it answered {status}")),
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(failed)?;
    match upgraded.downcast::<Stream>() {
        Ok(parts) if parts.read_buf.is_empty() => Ok(parts.io),
        // A TLS server sends nothing before the client does.
        _ => Err("it sent data before the TLS handshake".to_owned()),
    }
}
