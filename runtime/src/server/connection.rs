//! One connection, from TLS handshake to close.

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

use super::{Reply, text_reply};

/// Time to receive the head of a request, from its first byte or the start of the connection; controller-runtime's.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Time between two requests; controller-runtime's. It is not shorter than the idle timeout of the API server's client,
/// which therefore never sends a request on a connection that is being closed.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to close a connection gracefully after a timeout.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the requests of a connection until the client closes it, a timeout passes, or `stopped` changes.
pub(super) async fn serve_connection<H, F>(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    handler: Arc<H>,
    timer: Arc<ClientTimer>,
    stopped: watch::Receiver<()>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let Some(tls) = tls else {
        return Ok(serve_http1(stream, handler, timer, stopped).await?);
    };
    let handshake = timeout(HANDSHAKE_TIMEOUT, tls.accept(stream));
    let stream = handshake.await.map_err(|_| "TLS handshake timed out")??;
    #[cfg(feature = "http2")]
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        timer.enter(ClientState::Idle);
        return Ok(serve_http2(stream, handler, timer, stopped).await?);
    }
    timer.enter(ClientState::SendingHead);
    Ok(serve_http1(stream, handler, timer, stopped).await?)
}

/// Serves HTTP/1.1. hyper answers a request head of more than 400 KiB or 100 headers with 431.
async fn serve_http1<I, H, F>(
    io: I,
    handler: Arc<H>,
    timer: Arc<ClientTimer>,
    mut stopped: watch::Receiver<()>,
) -> hyper::Result<()>
where
    I: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    let io = TimedIo {
        io,
        timer: Arc::clone(&timer),
    };
    let service = service_fn(|request| answer(&*handler, request, &timer, ClientState::Receiving));
    let mut builder = http1::Builder::new();
    // Disabled: hyper counts the idle time between two requests towards the header timeout of the second.
    builder.timer(TokioTimer::new()).header_read_timeout(None);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        // The channel carries no values: it closes when the server stops.
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            return connection.await;
        }
        () = timer.expired() => connection.as_mut().graceful_shutdown(),
    }
    timeout(CLOSE_TIMEOUT, connection).await.unwrap_or(Ok(()))
}

/// Serves HTTP/2. hyper and h2 limit streams that a client opens and immediately resets.
#[cfg(feature = "http2")]
async fn serve_http2<I, H, F>(
    io: I,
    handler: Arc<H>,
    timer: Arc<ClientTimer>,
    mut stopped: watch::Receiver<()>,
) -> hyper::Result<()>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    use hyper::server::conn::http2;
    use hyper_util::rt::TokioExecutor;

    let idle_timer = Arc::clone(&timer);
    let service = service_fn(move |request| {
        let (handler, timer) = (Arc::clone(&handler), Arc::clone(&timer));
        async move { answer(&*handler, request, &timer, ClientState::Idle).await }
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
        () = idle_timer.expired() => connection.as_mut().graceful_shutdown(),
    }
    timeout(CLOSE_TIMEOUT, connection).await.unwrap_or(Ok(()))
}

async fn answer<H, F>(
    handler: &H,
    request: Request<Incoming>,
    timer: &ClientTimer,
    next: ClientState,
) -> Result<Reply, std::convert::Infallible>
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    let _paused = timer.pause(next);
    let path = request.uri().path().to_owned();
    // Unwind safe: the handlers of this crate leave no shared state inconsistent at an await or a panic.
    let reply = AssertUnwindSafe(async { handler(request).await })
        .catch_unwind()
        .await;
    Ok(reply.unwrap_or_else(|_| {
        tracing::error!(path, "request handler panicked");
        text_reply(StatusCode::INTERNAL_SERVER_ERROR, "internal server error\n")
    }))
}

/// The state of a client while no request is being answered.
#[derive(Clone, Copy)]
enum ClientState {
    /// Between two requests.
    Idle,
    /// Receiving the response to a request, over HTTP/1.1.
    Receiving,
    /// Sending the head of a request, or a TLS handshake.
    SendingHead,
}

impl ClientState {
    fn timeout(self) -> Duration {
        match self {
            ClientState::Idle | ClientState::Receiving => IDLE_TIMEOUT,
            ClientState::SendingHead => HEADER_TIMEOUT,
        }
    }
}

/// Measures how long the client of a connection takes, except while requests are being answered.
pub(super) struct ClientTimer {
    progress: Mutex<Progress>,
    changed: Notify,
    /// Notified when the client becomes idle, for the server.
    idle: Arc<Notify>,
}

struct Progress {
    /// Number of requests being answered; the timer is paused while there are any.
    answering: usize,
    state: ClientState,
    since: Instant,
}

impl ClientTimer {
    /// Creates the timer of a new connection.
    pub(super) fn new(idle: Arc<Notify>) -> Self {
        Self {
            progress: Mutex::new(Progress {
                answering: 0,
                state: ClientState::SendingHead,
                since: Instant::now(),
            }),
            changed: Notify::new(),
            idle,
        }
    }

    /// Returns the time since which the client has been silent or sending; `None` until a request is answered.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let is_waiting = progress.answering == 0 && !matches!(progress.state, ClientState::Receiving);
        is_waiting.then_some(progress.since)
    }

    fn enter(&self, state: ClientState) {
        self.update(|progress| (progress.state, progress.since) = (state, Instant::now()));
    }

    fn update(&self, update: impl FnOnce(&mut Progress)) {
        update(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Records that bytes have arrived.
    fn record_bytes(&self) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.answering == 0 && matches!(progress.state, ClientState::Idle) {
            (progress.state, progress.since) = (ClientState::SendingHead, Instant::now());
            self.changed.notify_one();
        }
    }

    /// Records that everything written has been sent.
    fn record_flush(&self) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.answering == 0 && matches!(progress.state, ClientState::Receiving) {
            (progress.state, progress.since) = (ClientState::Idle, Instant::now());
            self.changed.notify_one();
            self.idle.notify_one();
        }
    }

    /// Pauses the timer until the returned guard is dropped, when the client enters the state `next`.
    fn pause(&self, next: ClientState) -> impl Drop + '_ {
        self.update(|progress| progress.answering += 1);
        PausedTimer { timer: self, next }
    }

    /// Resolves when the timeout of the client's state has passed.
    async fn expired(&self) {
        loop {
            let deadline = {
                let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
                (progress.answering == 0).then(|| progress.since + progress.state.timeout())
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until_deadline(deadline) => return,
            }
        }
    }
}

async fn sleep_until_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

struct PausedTimer<'a> {
    timer: &'a ClientTimer,
    /// The state to enter.
    next: ClientState,
}

impl Drop for PausedTimer<'_> {
    fn drop(&mut self) {
        self.timer.update(|progress| {
            progress.answering -= 1;
            (progress.state, progress.since) = (self.next, Instant::now());
        });
        self.timer.idle.notify_one();
    }
}

/// A connection that records arriving bytes in its timer.
struct TimedIo<I> {
    io: I,
    timer: Arc<ClientTimer>,
}

impl<I: AsyncRead + Unpin> AsyncRead for TimedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.timer.record_bytes();
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for TimedIo<I> {
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
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.timer.record_flush();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
