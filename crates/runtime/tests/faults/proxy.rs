//! A proxy between an operator and the API server. It injects network and server faults into
//! requests, responses and connections.
//!
//! The operator connects without TLS, and the proxy connects to the API server as an administrator.
//! Random decisions are determined by a seed, so that failures are reproducible.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::{Method, Request, Response, StatusCode, header, request};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::lot::Lot;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// How long to wait for events before closing a watch.
const WATCH_LASTS: Duration = Duration::from_millis(300);

/// Sent by some servers when the resource version of a watch has expired.
const EXPIRED: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"too old resource version: 1 (2)","reason":"Expired","code":410}}"#,
    "\n"
);

/// Fault of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The proxy responds with this status and doesn't forward the request. For a 429,
    /// `Retry-After` is one second.
    Refuse(StatusCode),
    Delay(Duration),
    /// The connection is reset before the request is forwarded.
    Reset,
    /// The server processes the request, but the connection is reset instead of sending a response.
    LoseAnswer,
    /// The connection is reset in the middle of the response, which may be between two events of a
    /// watch.
    CutAnswer,
    /// A watch is closed after a few events.
    EndWatch,
    /// A watch is closed after a few events, because its resource version is too old.
    ExpireWatch,
}

impl Fault {
    fn is_for(self, is_watch: bool) -> bool {
        is_watch || !matches!(self, Self::EndWatch | Self::ExpireWatch)
    }
}

/// Selects the requests that can be affected by faults.
type Only = fn(&request::Parts) -> bool;

/// A running proxy, which is stopped on drop.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    _accepting: JoinSet<()>,
}

struct Shared {
    upstream: Client,
    lot: Mutex<Lot>,
    /// Each fault with its probability.
    faults: Mutex<(Only, Vec<(f64, Fault)>)>,
    connections: Mutex<HashMap<usize, Arc<Connection>>>,
    /// Whether new connections are silent from the start.
    silent: watch::Sender<bool>,
    /// How many times all watches were expired.
    expiries: watch::Sender<usize>,
    accepted: AtomicUsize,
    requests: AtomicUsize,
    writes: Mutex<Vec<Write>>,
    injected: AtomicUsize,
    expired: AtomicUsize,
}

/// A request that may have modified an object.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    /// The method and the path, e.g. `DELETE /api/v1/namespaces/default/pods/a`.
    pub(crate) request: String,
    /// When the request was forwarded.
    pub(crate) sent: Instant,
    /// When the response started, or the operator closed the connection.
    pub(crate) ended: Option<Instant>,
}

/// Marks a write as in progress until dropped.
struct Writing {
    shared: Arc<Shared>,
    index: usize,
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.shared.writes.lock().unwrap()[self.index].ended = Some(Instant::now());
    }
}

struct Connection {
    reset: Notify,
    /// While `true`, no data is transferred in either direction, which the peer can't detect.
    silent: watch::Sender<bool>,
}

impl Proxy {
    pub(crate) async fn start(upstream: Client, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            upstream,
            lot: Mutex::new(Lot::new(seed)),
            faults: Mutex::new((|_| true, Vec::new())),
            connections: Mutex::default(),
            silent: watch::channel(false).0,
            expiries: watch::channel(0).0,
            accepted: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            writes: Mutex::default(),
            injected: AtomicUsize::new(0),
            expired: AtomicUsize::new(0),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&shared)));
        Self {
            shared,
            port,
            _accepting: accepting,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn config(&self) -> Config {
        Config::new(self.url().parse().unwrap())
    }

    /// Makes each fault happen with the given probability from now on.
    pub(crate) fn inject(&self, faults: impl Into<Vec<(f64, Fault)>>) {
        self.inject_where(|_| true, faults);
    }

    pub(crate) fn inject_where(&self, only: Only, faults: impl Into<Vec<(f64, Fault)>>) {
        *self.shared.faults.lock().unwrap() = (only, faults.into());
    }

    /// Doesn't affect silenced connections.
    pub(crate) fn heal(&self) {
        self.inject([]);
        self.shared.silent.send_replace(false);
    }

    pub(crate) fn reset_all(&self) {
        self.reset_some(1.0);
    }

    /// Resets each connection with the given probability.
    pub(crate) fn reset_some(&self, share: f64) {
        for connection in self.connections() {
            if self.shared.lot.lock().unwrap().falls(share) {
                self.shared.count_fault();
                connection.reset.notify_one();
            }
        }
    }

    /// Closes all watches, because their resource version is too old.
    pub(crate) fn expire_watches(&self) {
        self.shared.expiries.send_modify(|count| *count += 1);
    }

    /// Stops all transfer of data until [`heal`](Self::heal) or [`restore`](Self::restore) is
    /// called.
    pub(crate) fn fall_silent(&self) {
        self.shared.silent.send_replace(true);
        self.silence_connections();
    }

    /// Stops the transfer of data on existing connections, while new ones work. Mimics a router
    /// that has lost its connection table.
    pub(crate) fn silence_connections(&self) {
        for connection in self.connections() {
            self.shared.count_fault();
            connection.silent.send_replace(true);
        }
    }

    /// Resumes the transfer of data, starting with the delayed data.
    pub(crate) fn restore(&self) {
        self.heal();
        for connection in self.connections() {
            connection.silent.send_replace(false);
        }
    }

    pub(crate) fn open(&self) -> usize {
        self.connections().len()
    }

    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns all writes forwarded so far, except for the lease and its events.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.shared.writes.lock().unwrap().clone()
    }

    /// Asserts that all writes by this operator ended before the first write of its successor.
    pub(crate) fn assert_handed_over_to(&self, successor: &Self) {
        let successors = successor.writes();
        let first = successors.iter().min_by_key(|write| write.sent);
        let first = first.expect("the successor writes");
        let is_before = |write: &Write| write.ended.is_some_and(|ended| ended < first.sent);
        let writes = self.writes();
        let late: Vec<_> = writes
            .iter()
            .filter(|write| !is_before(write))
            .map(|write| &write.request)
            .collect();
        assert!(late.is_empty(), "beside or after {}: {late:?}", first.request);
    }

    pub(crate) fn injected(&self) -> usize {
        self.shared.injected.load(Ordering::Relaxed)
    }

    /// Returns how often the API server itself reported an expired version, with status 410 or in a
    /// watch.
    pub(crate) fn expired(&self) -> usize {
        self.shared.expired.load(Ordering::Relaxed)
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        let mut connections: Vec<_> = self
            .shared
            .connections
            .lock()
            .unwrap()
            .clone()
            .into_iter()
            .collect();
        connections.sort_unstable_by_key(|(id, _)| *id);
        connections
            .into_iter()
            .map(|(_, connection)| connection)
            .collect()
    }
}

impl Shared {
    fn draw(&self, parts: &request::Parts, is_watch: bool) -> Option<Fault> {
        let (only, faults) = self.faults.lock().unwrap().clone();
        if !only(parts) {
            return None;
        }
        let mut lot = self.lot.lock().unwrap();
        let mut faults = faults.into_iter().filter(|(_, fault)| fault.is_for(is_watch));
        let (_, fault) = faults.find(|(share, _)| lot.falls(*share))?;
        self.count_fault();
        Some(fault)
    }

    fn count_fault(&self) {
        self.injected.fetch_add(1, Ordering::Relaxed);
    }

    fn record(self: &Arc<Self>, parts: &request::Parts) -> Option<Writing> {
        let path = parts.uri.path();
        if parts.method == Method::GET || path.contains("/leases") || path.contains("/events") {
            return None;
        }
        let mut writes = self.writes.lock().unwrap();
        writes.push(Write {
            request: format!("{} {path}", parts.method),
            sent: Instant::now(),
            ended: None,
        });
        Some(Writing {
            shared: Arc::clone(self),
            index: writes.len() - 1,
        })
    }

    fn up_to(&self, most: u64) -> u64 {
        self.lot.lock().unwrap().below(most)
    }
}

/// Dropping the future closes all connections.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let id = shared.accepted.fetch_add(1, Ordering::Relaxed);
    let connection = Arc::new(Connection {
        reset: Notify::new(),
        silent: watch::channel(*shared.silent.borrow()).0,
    });
    shared
        .connections
        .lock()
        .unwrap()
        .insert(id, Arc::clone(&connection));

    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut serving = JoinSet::new();
    serving.spawn(speak(far, Arc::clone(&shared), Arc::clone(&connection)));
    let is_reset = tokio::select! {
        _ = pass(&mut stream, near, &connection.silent) => false,
        () = connection.reset.notified() => true,
    };
    serving.shutdown().await;
    if is_reset {
        stream.set_zero_linger().unwrap();
    }
    // Until it's dropped, the connection counts as open.
    drop(stream);
    shared.connections.lock().unwrap().remove(&id);
}

/// Copies data in both directions, unless the connection is silent.
async fn pass(stream: &mut TcpStream, near: DuplexStream, silent: &watch::Sender<bool>) -> io::Result<()> {
    let (from_operator, to_operator) = stream.split();
    let (from_server, to_server) = tokio::io::split(near);
    tokio::try_join!(
        carry(from_operator, to_server, silent.subscribe()),
        carry(from_server, to_operator, silent.subscribe()),
    )?;
    Ok(())
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut silent: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        // Can't fail, since the caller owns the sender.
        let _ = silent.wait_for(|silent| !*silent).await;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
    }
}

async fn speak(far: DuplexStream, shared: Arc<Shared>, connection: Arc<Connection>) {
    let service = service_fn(|request| answer(request, Arc::clone(&shared), Arc::clone(&connection)));
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(far), service)
        .await;
}

/// Resets the connection, and waits for the task to be cancelled.
async fn reset<T>(connection: &Connection) -> T {
    connection.reset.notify_one();
    std::future::pending().await
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    connection: Arc<Connection>,
) -> Result<Response<Body>, Infallible> {
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let (mut parts, body) = request.into_parts();
    let is_watch = parts
        .uri
        .query()
        .is_some_and(|query| query.contains("watch=true"));
    let fault = shared.draw(&parts, is_watch);
    match fault {
        Some(Fault::Refuse(status)) => return Ok(refusal(status)),
        Some(Fault::Delay(longer)) => sleep(longer).await,
        Some(Fault::Reset) => return reset(&connection).await,
        _ => {}
    }
    let Ok(body) = body.collect().await else {
        return reset(&connection).await;
    };
    parts.headers.remove(header::HOST);
    let writing = shared.record(&parts);
    let forwarded = Request::from_parts(parts, body.to_bytes().into());
    let answered = shared.upstream.send(forwarded).await;
    drop(writing);
    // To the operator, a failing proxy should look like a broken connection.
    let Ok(answered) = answered else {
        return reset(&connection).await;
    };
    if answered.status() == StatusCode::GONE {
        shared.expired.fetch_add(1, Ordering::Relaxed);
    }
    let (mut head, body) = answered.into_parts();
    for hop in [header::CONNECTION, header::TRANSFER_ENCODING] {
        head.headers.remove(hop);
    }
    let body = body.into_data_stream().map(|part| part.map_err(io::Error::other));
    let body: BoxStream<'static, _> = match fault {
        Some(Fault::LoseAnswer) => return reset(&connection).await,
        Some(Fault::CutAnswer) => cut(body.boxed(), shared.up_to(2000)).boxed(),
        Some(Fault::EndWatch) => ended(body.boxed(), shared.up_to(4), "").boxed(),
        Some(Fault::ExpireWatch) => ended(body.boxed(), shared.up_to(4), EXPIRED).boxed(),
        _ if is_watch => {
            let expiries = shared.expiries.subscribe();
            let counted = counting_expiries(body.boxed(), Arc::clone(&shared));
            expiring(counted.boxed(), expiries).boxed()
        }
        _ => body.boxed(),
    };
    let body = body.then(move |part| {
        let connection = Arc::clone(&connection);
        async move {
            match part {
                Ok(part) => Ok(Frame::data(part)),
                Err(_) => reset(&connection).await,
            }
        }
    });
    Ok(Response::from_parts(
        head,
        BodyExt::boxed_unsync(StreamBody::new(body)),
    ))
}

fn refusal(status: StatusCode) -> Response<Body> {
    let code = status.as_u16();
    let text = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the proxy says no", "reason": "", "code": code,
    });
    let mut refusal = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/json");
    if status == StatusCode::TOO_MANY_REQUESTS {
        refusal = refusal.header(header::RETRY_AFTER, "1");
    }
    let body = Full::new(Bytes::from(text.to_string()));
    refusal.body(BodyExt::boxed_unsync(body)).unwrap()
}

type Parts = BoxStream<'static, io::Result<Bytes>>;

/// Sends the first bytes of a response, and then breaks the connection.
fn cut(body: Parts, bytes: u64) -> impl futures::Stream<Item = io::Result<Bytes>> + Send {
    let broken = || io::Error::from(io::ErrorKind::ConnectionReset);
    futures::stream::unfold((body, Some(bytes)), move |(mut body, left)| async move {
        let left = usize::try_from(left?).unwrap();
        match body.next().await? {
            Ok(part) if part.len() < left => {
                let rest = left - part.len();
                Some((Ok(part), (body, Some(rest as u64))))
            }
            Ok(part) if left > 0 => Some((Ok(part.slice(..left)), (body, Some(0)))),
            _ => Some((Err(broken()), (body, None))),
        }
    })
}

/// Sends the first events of a watch, or those that arrive within a short time, followed by a final
/// event.
fn ended(
    body: Parts,
    events: u64,
    last: &'static str,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send {
    let deadline = Instant::now() + WATCH_LASTS;
    futures::stream::unfold((lines(body), Some(events)), move |(mut lines, left)| async move {
        let left = left?;
        let next = async {
            match left {
                0 => None,
                _ => tokio::time::timeout_at(deadline, lines.next())
                    .await
                    .ok()
                    .flatten(),
            }
        };
        match next.await {
            Some(line) => Some((line, (lines, Some(left - 1)))),
            None => Some((Ok(Bytes::from_static(last.as_bytes())), (lines, None))),
        }
    })
}

/// Counts the events that report an expired version.
fn counting_expiries(
    body: Parts,
    shared: Arc<Shared>,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send {
    lines(body).inspect(move |line| {
        let is_expiry =
            |line: &Bytes| line.starts_with(b"{\"type\":\"ERROR\"") && contains(line, b"\"code\":410");
        if line.as_ref().is_ok_and(is_expiry) {
            shared.expired.fetch_add(1, Ordering::Relaxed);
        }
    })
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn expiring(
    body: Parts,
    expiries: watch::Receiver<usize>,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send {
    futures::stream::unfold(
        (lines(body), Some(expiries)),
        |(mut lines, expiries)| async move {
            let mut expiries = expiries?;
            let line = tokio::select! {
                line = lines.next() => line,
                _ = expiries.changed() => return Some((Ok(Bytes::from_static(EXPIRED.as_bytes())), (lines, None))),
            };
            Some((line?, (lines, Some(expiries))))
        },
    )
}

/// Splits a watch into events, so that it can be closed between two of them.
fn lines(body: Parts) -> Parts {
    let lines = futures::stream::unfold(
        (body, Vec::new()),
        |(mut body, mut buffer): (Parts, Vec<u8>)| async move {
            loop {
                if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    let rest = buffer.split_off(end + 1);
                    return Some((Ok(Bytes::from(buffer)), (body, rest)));
                }
                match body.next().await {
                    Some(Ok(part)) => buffer.extend_from_slice(&part),
                    Some(Err(error)) => return Some((Err(error), (body, buffer))),
                    None if buffer.is_empty() => return None,
                    None => return Some((Ok(Bytes::from(std::mem::take(&mut buffer))), (body, buffer))),
                }
            }
        },
    );
    lines.boxed()
}

/// Waits until all connections are closed.
pub(crate) async fn closed(proxy: &Proxy, within: Duration) -> bool {
    timeout(within, async {
        while proxy.open() > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .is_ok()
}
