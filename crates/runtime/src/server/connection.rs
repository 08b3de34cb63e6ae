//! A single connection, from the TLS handshake to its end.

use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use http::header::HOST;
use http::{Request, StatusCode, Version};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::body::RequestBody;
use super::client_timer::{ClientState, ClientTimer};
use super::{Reply, text_reply};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Grace period for a graceful close after another timeout.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum size of a request's head. Also the buffer size per connection, so hyper's default of 400
/// KiB might exceed the memory limit of a container.
const BUFFER: usize = 64 * 1024;

/// Serves a connection until the client closes it, a timeout expires, or `stopped` changes.
pub(super) async fn serve_connection<H, F>(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    handler: Arc<H>,
    timer: Arc<ClientTimer>,
    stopped: watch::Receiver<()>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    H: Fn(Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let serving = async {
        match tls {
            None => Ok(serve_http1(stream, handler, Arc::clone(&timer), stopped).await?),
            Some(tls) => serve_tls(stream, tls, handler, Arc::clone(&timer), stopped).await,
        }
    };
    tokio::select! {
        served = serving => served,
        () = timer.closed() => Ok(()),
    }
}

async fn serve_tls<H, F>(
    stream: TcpStream,
    tls: TlsAcceptor,
    handler: Arc<H>,
    timer: Arc<ClientTimer>,
    stopped: watch::Receiver<()>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    H: Fn(Request<RequestBody>) -> F + Send + Sync + 'static,
    F: Future<Output = Reply> + Send + 'static,
{
    let handshake = timeout(HANDSHAKE_TIMEOUT, tls.accept(stream));
    let stream = handshake.await.map_err(|_| "TLS handshake timed out")??;
    if stream.get_ref().1.peer_certificates().is_some() {
        timer.set_authenticated();
    }
    #[cfg(feature = "http2")]
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        timer.enter(ClientState::Idle);
        return Ok(serve_http2(stream, handler, timer, stopped).await?);
    }
    timer.enter(ClientState::SendingHead);
    Ok(serve_http1(stream, handler, timer, stopped).await?)
}

/// hyper responds with a 431 if a head exceeds the buffer or has more than 100 headers.
async fn serve_http1<I, H, F>(
    io: I,
    handler: Arc<H>,
    timer: Arc<ClientTimer>,
    mut stopped: watch::Receiver<()>,
) -> hyper::Result<()>
where
    I: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<RequestBody>) -> F,
    F: Future<Output = Reply>,
{
    let io = TimedIo {
        io,
        timer: Arc::clone(&timer),
    };
    let service = service_fn(|request| answer(&*handler, request, &timer, ClientState::Receiving));
    let mut builder = http1::Builder::new();
    // Don't use hyper's own timeout, which includes the time before a request.
    builder.timer(TokioTimer::new()).header_read_timeout(None);
    builder.max_buf_size(BUFFER);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        // Nothing is sent on this channel. It's closed when the server stops.
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            return connection.await;
        }
        () = timer.expired() => connection.as_mut().graceful_shutdown(),
    }
    timeout(CLOSE_TIMEOUT, connection).await.unwrap_or(Ok(()))
}

/// hyper and h2 limit streams that are opened and immediately reset.
#[cfg(feature = "http2")]
async fn serve_http2<I, H, F>(
    io: I,
    handler: Arc<H>,
    timer: Arc<ClientTimer>,
    mut stopped: watch::Receiver<()>,
) -> hyper::Result<()>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<RequestBody>) -> F + Send + Sync + 'static,
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
    // How much a client may send before the handler reads it. hyper's default is 1 MiB.
    let window = u32::try_from(BUFFER).ok();
    builder
        .initial_stream_window_size(window)
        .initial_connection_window_size(window);
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
    timer: &Arc<ClientTimer>,
    next: ClientState,
) -> Result<Reply, std::convert::Infallible>
where
    H: Fn(Request<RequestBody>) -> F,
    F: Future<Output = Reply>,
{
    let _open = timer.begin_request(next);
    if let Err(reason) = check_host(&request) {
        return Ok(text_reply(StatusCode::BAD_REQUEST, reason));
    }
    let path = request.uri().path().to_owned();
    let request = request.map(|body| RequestBody::new(body, Arc::clone(timer)));
    // Unwind safe, because none of our handlers leaves shared state inconsistent at an await point
    // or on a panic.
    let reply = AssertUnwindSafe(async { handler(request).await })
        .catch_unwind()
        .await;
    Ok(reply.unwrap_or_else(|_| {
        tracing::error!(path, "request handler panicked");
        text_reply(StatusCode::INTERNAL_SERVER_ERROR, "internal server error\n")
    }))
}

/// Checks the `Host` of a request ([RFC 9112, section
/// 3.2](https://www.rfc-editor.org/rfc/rfc9112#section-3.2)). As in Go's server, HTTP/1.1 requires
/// exactly one, and other versions at most one. Otherwise a proxy might see a different host than
/// we do.
fn check_host<B>(request: &Request<B>) -> Result<(), &'static str> {
    match request.headers().get_all(HOST).iter().count() {
        0 if request.version() == Version::HTTP_11 => Err("missing required Host header\n"),
        0 | 1 => Ok(()),
        _ => Err("too many Host headers\n"),
    }
}

/// Notifies a connection's timer of received bytes and of completed writes.
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
