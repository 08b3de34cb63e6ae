//! One connection, from its handshake to its end.

use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::{Reply, text};

/// Longest wait for a request's head once it has begun, or the connection has. controller-runtime's.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Longest wait between two requests. controller-runtime's, and no less than what the API server's client waits, which
/// so never sends a request on a connection that is being closed.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last words of a connection that is given up may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Shakes hands and answers requests until the client goes, is too slow, or `stopped` says so.
pub(super) async fn connect<H, F>(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    handler: Arc<H>,
    stopped: watch::Receiver<()>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let Some(tls) = tls else {
        return Ok(speak(stream, handler, stopped).await?);
    };
    let handshake = timeout(HANDSHAKE_TIMEOUT, tls.accept(stream));
    let stream = handshake.await.map_err(|_| "TLS handshake timed out")??;
    #[cfg(feature = "http2")]
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        return Ok(speak_http2(stream, handler, stopped).await?);
    }
    Ok(speak(stream, handler, stopped).await?)
}

/// HTTP/1.1. A head of more than hyper's 400 KiB, or with more than 100 fields, is answered with 431.
async fn speak<I, H, F>(io: I, handler: Arc<H>, mut stopped: watch::Receiver<()>) -> hyper::Result<()>
where
    I: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    let pace = Arc::new(Pace::new(State::Head));
    let io = Paced {
        io,
        pace: Arc::clone(&pace),
    };
    let service = service_fn(|request| answer(&*handler, request, &pace));
    let mut builder = http1::Builder::new();
    // hyper would count the time between two requests as time for the head of the second.
    builder.timer(TokioTimer::new()).header_read_timeout(None);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        // Nothing is ever sent: an error says that the server stops.
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            return connection.await;
        }
        () = pace.overdue() => connection.as_mut().graceful_shutdown(),
    }
    timeout(CLOSE_TIMEOUT, connection).await.unwrap_or(Ok(()))
}

/// HTTP/2, whose streams that a client opens and resets at once are bounded by hyper and h2.
#[cfg(feature = "http2")]
async fn speak_http2<I, H, F>(io: I, handler: Arc<H>, mut stopped: watch::Receiver<()>) -> hyper::Result<()>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    use hyper::server::conn::http2;
    use hyper_util::rt::TokioExecutor;

    let pace = Arc::new(Pace::new(State::Idle));
    let watched = Arc::clone(&pace);
    let service = service_fn(move |request| {
        let (handler, pace) = (Arc::clone(&handler), Arc::clone(&pace));
        async move { answer(&*handler, request, &pace).await }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new());
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            return connection.await;
        }
        () = watched.overdue() => connection.as_mut().graceful_shutdown(),
    }
    timeout(CLOSE_TIMEOUT, connection).await.unwrap_or(Ok(()))
}

async fn answer<H, F>(
    handler: &H,
    request: Request<Incoming>,
    pace: &Pace,
) -> Result<Reply, std::convert::Infallible>
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    let _answering = pace.answering();
    let path = request.uri().path().to_owned();
    // The handler's state is shared with later requests; those of this crate hold no half-made changes over
    // an await.
    let reply = AssertUnwindSafe(async { handler(request).await })
        .catch_unwind()
        .await;
    Ok(reply.unwrap_or_else(|_| {
        tracing::error!(path, "request handler panicked");
        text(StatusCode::INTERNAL_SERVER_ERROR, "internal server error\n")
    }))
}

/// What is waited for, while no request is being answered.
#[derive(Clone, Copy)]
enum State {
    /// The next request.
    Idle,
    /// The rest of a request's head.
    Head,
}

impl State {
    fn limit(self) -> Duration {
        match self {
            State::Idle => IDLE_TIMEOUT,
            State::Head => HEADER_TIMEOUT,
        }
    }
}

/// Whose turn it is on a connection, and since when.
struct Pace {
    now: Mutex<Now>,
    changed: Notify,
}

struct Now {
    /// Requests that are being answered; the clock stands while there are any.
    answering: usize,
    state: State,
    since: Instant,
}

impl Pace {
    fn new(state: State) -> Self {
        Self {
            now: Mutex::new(Now {
                answering: 0,
                state,
                since: Instant::now(),
            }),
            changed: Notify::new(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Bytes have come.
    fn heard(&self) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.answering == 0 && matches!(now.state, State::Idle) {
            (now.state, now.since) = (State::Head, Instant::now());
            self.changed.notify_one();
        }
    }

    /// The clock stands until what is returned is dropped.
    fn answering(&self) -> impl Drop + '_ {
        self.change(|now| now.answering += 1);
        Answering(self)
    }

    /// Resolves when the client has taken longer than it may.
    async fn overdue(&self) {
        loop {
            let deadline = {
                let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
                (now.answering == 0).then(|| now.since + now.state.limit())
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = until(deadline) => return,
            }
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

struct Answering<'a>(&'a Pace);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.change(|now| {
            now.answering -= 1;
            (now.state, now.since) = (State::Idle, Instant::now());
        });
    }
}

/// A connection whose client's bytes are noticed.
struct Paced<I> {
    io: I,
    pace: Arc<Pace>,
}

impl<I: AsyncRead + Unpin> AsyncRead for Paced<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.pace.heard();
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Paced<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
