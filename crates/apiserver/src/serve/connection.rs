//! Accepts connections and speaks HTTP on them.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{http, server};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::login::Login;

/// Further clients wait until one of these connections ends.
const MOST_CONNECTIONS: usize = 1000;
/// Requests at a time on a single HTTP/2 connection, as in kube-apiserver.
const MOST_STREAMS: u32 = 100;
/// Limit for a TLS handshake, and for the head of a request.
const LONGEST_HEAD: Duration = Duration::from_secs(10);
/// How often HTTP/2 clients must prove that they are alive.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Pause after an error that isn't about a single client, such as a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) enum Listener {
    Tls(TcpListener, TlsAcceptor),
    Plain(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection, before its TLS handshake.
struct Accepted {
    stream: Box<dyn Stream>,
    acceptor: Option<TlsAcceptor>,
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        let accepted = |stream, acceptor: Option<&TlsAcceptor>| Accepted {
            stream,
            acceptor: acceptor.cloned(),
        };
        Ok(match self {
            Self::Tls(listener, acceptor) => accepted(Box::new(tcp(listener).await?), Some(acceptor)),
            Self::Plain(listener) => accepted(Box::new(tcp(listener).await?), None),
            #[cfg(unix)]
            Self::Unix(listener) => accepted(Box::new(listener.accept().await?.0), None),
        })
    }
}

async fn tcp(listener: &TcpListener) -> io::Result<tokio::net::TcpStream> {
    let (stream, _) = listener.accept().await?;
    // Watches send small messages that must not wait for more. The connection works without it.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

#[derive(Clone)]
pub(super) struct Connections {
    login: Arc<Login>,
    stopped: watch::Receiver<bool>,
}

impl Connections {
    pub(super) fn new(login: Login, stopped: watch::Receiver<bool>) -> Self {
        Self {
            login: Arc::new(login),
            stopped,
        }
    }
}

/// Accepts connections until the server stops, then waits for their responses.
pub(super) async fn accept(listener: Listener, connections: Connections) {
    let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut stopped = connections.stopped.clone();
    let mut tasks = JoinSet::new();
    loop {
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            next = next => next,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        match (slot, accepted) {
            (Ok(slot), Ok(accepted)) => {
                tasks.spawn(serve_connection(accepted, connections.clone(), slot));
            }
            _ => sleep(PAUSE).await,
        }
        // Free the results of connections that have ended.
        while tasks.try_join_next().is_some() {}
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

/// Errors only concern this client, which sees them as well.
async fn serve_connection(accepted: Accepted, connections: Connections, _slot: OwnedSemaphorePermit) {
    let Accepted { stream, acceptor } = accepted;
    let Some(acceptor) = acceptor else {
        return serve_http1(stream, connections).await;
    };
    let Ok(Ok(stream)) = timeout(LONGEST_HEAD, acceptor.accept(stream)).await else {
        return;
    };
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => serve_http2(stream, connections).await,
        _ => serve_http1(stream, connections).await,
    }
}

/// Runs a connection, and lets it finish its responses once the server stops.
macro_rules! run_connection {
    ($connection:expr, $stopped:expr) => {{
        let mut connection = pin!($connection);
        let stopped = tokio::select! {
            _ = connection.as_mut() => false,
            _ = $stopped.wait_for(|stopped| *stopped) => true,
        };
        if stopped {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }};
}

async fn serve_http1(stream: impl Stream + 'static, connections: Connections) {
    let Connections { login, mut stopped } = connections;
    let service = service_fn(move |request: http::Request<Incoming>| {
        let login = Arc::clone(&login);
        async move { login.answer(request).await }
    });
    let mut builder = server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(LONGEST_HEAD);
    run_connection!(builder.serve_connection(TokioIo::new(stream), service), stopped);
}

async fn serve_http2(stream: impl Stream + 'static, connections: Connections) {
    let Connections { login, mut stopped } = connections;
    let service = service_fn(move |request: http::Request<Incoming>| {
        let login = Arc::clone(&login);
        async move { login.answer(request).await }
    });
    let mut builder = server::conn::http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .keep_alive_interval(PING_INTERVAL);
    run_connection!(builder.serve_connection(TokioIo::new(stream), service), stopped);
}
