//! HTTP servers for `probes`, `metrics` and `webhook`, with graceful shutdown and protection from
//! slow clients.

mod body;
mod client_timer;
mod connection;
mod connections;
mod threads;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

pub(crate) use body::RequestBody;
pub(crate) use client_timer::Connection;
use connections::Connections;
pub(crate) use threads::{ServerThreads, operator_runtime};

/// A response with a complete body.
pub(crate) type Reply = Response<Full<Bytes>>;

/// Default for the maximum number of connections. The kubelet, Prometheus and a few API servers
/// need far fewer, and a process can usually open twice as many files. A connection takes about 50
/// KiB of memory.
pub(crate) const MAX_CONNECTIONS: usize = 512;
/// Grace period for pending requests on shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after an error of `accept`, which usually means that we have run out of file descriptors.
/// Gives other tasks a chance to close some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub(crate) enum BindError {
    #[error(
        "invalid bind address `{0}`: expected `:8081`, `127.0.0.1:8081` or `[::1]:8081`, or `0` to disable the server"
    )]
    Address(String),
    #[error("failed to listen on {address}: {source}")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
}

/// A server that's bound to an address. Binding is separate from serving, so that a port in use is
/// detected before anything is started.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    max_connections: usize,
}

impl Server {
    /// Binds to an address in Go's format, where `:8081` stands for all interfaces (both IPv4 and
    /// IPv6). Returns `None` if the server is disabled, i.e. if the address is empty or `0`.
    pub(crate) async fn bind(address: &str) -> Result<Option<Self>, BindError> {
        if matches!(address, "" | "0") {
            return Ok(None);
        }
        let (host, port) = parse_address(address).ok_or_else(|| BindError::Address(address.to_owned()))?;
        let listener = listen(host, port).await;
        let listener = listener.map_err(|source| BindError::Listen {
            address: address.to_owned(),
            source,
        })?;
        Ok(Some(Self {
            listener,
            max_connections: MAX_CONNECTIONS,
        }))
    }

    /// The minimum is one.
    pub(crate) fn with_max_connections(mut self, max: usize) -> Self {
        self.max_connections = max.max(1);
        self
    }

    /// Returns the actual port if the port was 0.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Moves the listener to the current runtime.
    fn rebind(self) -> io::Result<Self> {
        let listener = TcpListener::from_std(self.listener.into_std()?)?;
        Ok(Self { listener, ..self })
    }

    /// Serves requests until `shutdown` resolves, then waits for pending requests. Uses HTTPS if
    /// `tls` is set.
    ///
    /// At the limit, a new connection replaces the one whose client has kept us waiting the
    /// longest: idle between two requests, sending a request or its body, or doing a TLS handshake.
    /// Clients with a certificate are replaced last. If all connections are processing requests,
    /// the new one has to wait.
    ///
    /// If `handler` panics, the panic is logged and the response is a 500. The connection and the
    /// server are not affected.
    pub(crate) async fn serve<H, F>(
        self,
        tls: Option<TlsAcceptor>,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) where
        H: Fn(Request<RequestBody>) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let (stop, stopped) = watch::channel(());
        let mut connections = Connections::new(self.max_connections);
        // A connection that was accepted but can't be served yet.
        let mut waiting = None;
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = self.listener.accept(), if waiting.is_none() => match accepted {
                    Ok(accepted) => waiting = Some(accepted),
                    Err(error) => {
                        tracing::warn!(%error, "failed to accept connection");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                () = connections.changed() => {}
            }
            if let Some((stream, peer)) = waiting.take_if(|_| connections.has_capacity()) {
                connections.open(|timer| {
                    let (tls, handler, stopped) = (tls.clone(), handler.clone(), stopped.clone());
                    let connection = connection::serve_connection(stream, tls, handler, timer, stopped);
                    async move {
                        if let Err(error) = connection.await {
                            tracing::debug!(%peer, %error, "connection failed");
                        }
                    }
                });
            }
        }
        drop(waiting);
        // Refuse new connections while the open ones are draining.
        drop(self.listener);
        drop(stop);
        let drained = timeout(DRAIN_TIMEOUT, async {
            while connections.len() > 0 {
                connections.changed().await;
            }
        });
        if drained.await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                timeout = ?DRAIN_TIMEOUT,
                "closing connections that did not drain in time"
            );
        }
    }
}

/// Tells the client not to sniff the content type of this plain text response.
pub(crate) fn text_reply(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        header::HeaderValue::from_static("nosniff"),
    );
    reply
}

/// An address without a host means all interfaces.
fn parse_address(address: &str) -> Option<(Option<&str>, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .filter(|ip| ip.parse::<Ipv6Addr>().is_ok())?,
        None if host.contains(':') => return None,
        None => host,
    };
    Some((Some(bare).filter(|host| !host.is_empty()), port))
}

async fn listen(host: Option<&str>, port: u16) -> io::Result<TcpListener> {
    match host {
        Some(host) => TcpListener::bind((host, port)).await,
        // Accepts IPv4 as well, unless the machine doesn't support IPv6.
        None => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
            }
            bound => bound,
        },
    }
}

#[cfg(test)]
pub(crate) mod tests;
