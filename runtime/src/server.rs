//! Small HTTP/1.1 servers: where to listen, when to stop, and what a slow or broken client may cost.
//!
//! What is answered is a function from request to response, given by `probes` and `metrics`.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// What a handler gives back; bodies here are small enough to be whole.
pub(crate) type Reply = Response<Full<Bytes>>;

/// Longest wait for a request's head, idle time between two requests included. controller-runtime's.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests in flight may take after the server was asked to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// After a failed accept, most often for want of file descriptors, some should be given back first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BindError {
    #[error(
        "`{0}` is not an address to listen on: write `:8081`, `127.0.0.1:8081`, `[::1]:8081`, or `0` for none"
    )]
    Address(String),
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
}

/// A socket that listens already, so that a port in use is an error before anything has started.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
}

impl Server {
    /// Listens on an address as Go writes it: `:8081` is every interface, IPv6 and IPv4, and `0` or nothing
    /// is no server at all (`None`).
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
        Ok(Some(Self { listener }))
    }

    /// Where it listens; tells the port when `:0` left the choice to the system.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until `shutdown` resolves and those in flight are answered. With `tls` it speaks
    /// HTTPS.
    ///
    /// A panic of `handler` is answered with 500 and logged; it ends neither the server nor the connection.
    pub(crate) async fn serve<H, F>(
        self,
        tls: Option<TlsAcceptor>,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) where
        H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let (stop, stopped) = watch::channel(());
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let connection = connect(stream, tls.clone(), handler.clone(), stopped.clone());
                        connections.spawn(async move {
                            if let Err(error) = connection.await {
                                tracing::debug!(%peer, "connection ended: {error}");
                            }
                        });
                    }
                    Err(error) => {
                        tracing::warn!("cannot accept a connection: {error}");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                // Ended connections are let go as they end, not kept until the server stops.
                Some(_) = connections.join_next() => {}
            }
        }
        drop(self.listener);
        drop(stop);
        let drained = timeout(DRAIN_TIMEOUT, async {
            while connections.join_next().await.is_some() {}
        });
        if drained.await.is_err() {
            tracing::warn!(
                "{} connections were cut off: they did not end within {DRAIN_TIMEOUT:?}",
                connections.len()
            );
        }
    }
}

/// A plain-text answer that no browser takes for anything else.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Reply {
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

/// Host and port; no host means every interface.
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
        // `[::]` takes IPv4 too, except on machines that have no IPv6 at all.
        None => match TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
            }
            bound => bound,
        },
    }
}

/// One connection, from its handshake to its end.
async fn connect<H, F>(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    handler: Arc<H>,
    stopped: watch::Receiver<()>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    match tls {
        None => speak(stream, handler, stopped).await?,
        Some(tls) => {
            let handshake = timeout(HANDSHAKE_TIMEOUT, tls.accept(stream));
            let stream = handshake.await.map_err(|_| "the TLS handshake took too long")??;
            speak(stream, handler, stopped).await?;
        }
    }
    Ok(())
}

async fn speak<I, H, F>(io: I, handler: Arc<H>, mut stopped: watch::Receiver<()>) -> hyper::Result<()>
where
    I: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    let service = service_fn(|request| answer(&*handler, request));
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        // Nothing is ever sent: an error says that the server stops.
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

async fn answer<H, F>(handler: &H, request: Request<Incoming>) -> Result<Reply, std::convert::Infallible>
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    let path = request.uri().path().to_owned();
    // The handler's state is shared with later requests; those of this crate hold no half-made changes over
    // an await.
    let reply = AssertUnwindSafe(async { handler(request).await })
        .catch_unwind()
        .await;
    Ok(reply.unwrap_or_else(|_| {
        tracing::error!(path, "a request handler panicked");
        text(StatusCode::INTERNAL_SERVER_ERROR, "internal server error\n")
    }))
}

#[cfg(test)]
pub(crate) mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    use super::*;

    /// The whole answer to `GET path` on a connection of its own.
    pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", address.port())).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[test]
    fn addresses_are_read_as_go_writes_them() {
        let check = |address: &str, expected: Option<(Option<&str>, u16)>| {
            assert_eq!(parse_address(address), expected, "{address}");
        };
        check(":8081", Some((None, 8081)));
        check("127.0.0.1:8081", Some((Some("127.0.0.1"), 8081)));
        check("localhost:0", Some((Some("localhost"), 0)));
        check("[::1]:443", Some((Some("::1"), 443)));
        check("::1:443", None);
        check("[localhost]:443", None);
        check("8081", None);
        check(":", None);
        check(":80810", None);
        check("http://localhost", None);
    }

    #[tokio::test]
    async fn zero_and_nothing_are_no_server() {
        for address in ["0", ""] {
            assert!(Server::bind(address).await.unwrap().is_none());
        }
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_had_is_named() {
        let first = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
        let taken = first.address().unwrap().to_string();
        let error = Server::bind(&taken).await.unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot listen on {taken}: Address already in use")),
            "{error}"
        );

        let error = Server::bind("8081").await.unwrap_err().to_string();
        assert!(
            error.starts_with("`8081` is not an address to listen on: write `:8081`"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn every_interface_answers() {
        let server = Server::bind(":0").await.unwrap().unwrap();
        let address = server.address().unwrap();
        let serving = tokio::spawn(server.serve(None, ok, std::future::pending()));
        assert!(get(address, "/").await.starts_with("HTTP/1.1 200 OK\r\n"));
        serving.abort();
    }

    async fn ok(_: Request<Incoming>) -> Reply {
        text(StatusCode::OK, "ok")
    }

    #[tokio::test]
    async fn a_panic_is_answered_with_500_and_the_server_goes_on() {
        let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
        let address = server.address().unwrap();
        let handler = |request: Request<Incoming>| async move {
            assert_ne!(request.uri().path(), "/panic");
            text(StatusCode::OK, "ok")
        };
        let serving = tokio::spawn(server.serve(None, handler, std::future::pending()));
        assert!(get(address, "/panic").await.starts_with("HTTP/1.1 500 "));
        assert!(get(address, "/").await.starts_with("HTTP/1.1 200 "));
        serving.abort();
    }

    #[tokio::test]
    async fn a_stopping_server_answers_what_it_has_begun_and_nothing_more() {
        let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
        let address = server.address().unwrap();
        let (begun, has_begun) = oneshot::channel();
        let begun = Arc::new(std::sync::Mutex::new(Some(begun)));
        let (go_on, may_go_on) = watch::channel(false);
        let handler = move |_| {
            if let Some(begun) = begun.lock().unwrap().take() {
                begun.send(()).unwrap();
            }
            let mut may_go_on = may_go_on.clone();
            async move {
                may_go_on.wait_for(|go| *go).await.unwrap();
                text(StatusCode::OK, "slow")
            }
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(None, handler, stopped.map(drop)));
        // An idle connection must not hold the server up.
        let _idle = TcpStream::connect(address).await.unwrap();
        let request = tokio::spawn(async move { get(address, "/").await });
        has_begun.await.unwrap();

        stop.send(()).unwrap();
        timeout(Duration::from_secs(5), async {
            while TcpStream::connect(address).await.is_ok() {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .expect("a stopping server takes no more connections");
        go_on.send(true).unwrap();
        assert!(request.await.unwrap().ends_with("slow"));
        timeout(Duration::from_secs(5), serving)
            .await
            .expect("the server ends")
            .unwrap();
    }
}
