//! A proxy between an operator and the API server that does to requests, answers and connections what networks and
//! servers do.
//!
//! The operator talks plain HTTP to it; it talks to the API server as the administrator. Whatever is drawn by lot
//! comes from a seed, so that a failure can be looked at again.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::{Request, Response, StatusCode, header, request};
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

/// How long a watch that is to end goes on when nothing happens in it.
const WATCH_LASTS: Duration = Duration::from_millis(300);

/// What a server of old sends in a watch whose version it no longer has.
const EXPIRED: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"too old resource version: 1 (2)","reason":"Expired","code":410}}"#,
    "\n"
);

/// What may happen to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It is answered with this status, and never reaches the API server. 429 says to come back in a second.
    Refuse(StatusCode),
    /// The answer takes this much longer.
    Delay(Duration),
    /// The connection is reset, and the request never reaches the API server.
    Reset,
    /// The API server does what it was asked; the connection is reset in place of the answer.
    LoseAnswer,
    /// The connection is reset in the midst of the answer, in a watch between two events or within one.
    CutAnswer,
    /// A watch ends in order after an event or a few.
    EndWatch,
    /// A watch ends after an event or a few, because what it starts from is too old.
    ExpireWatch,
}

impl Fault {
    fn is_for(self, is_watch: bool) -> bool {
        is_watch || !matches!(self, Self::EndWatch | Self::ExpireWatch)
    }
}

/// Says of requests whether they may meet a fault.
type Only = fn(&request::Parts) -> bool;

/// A running proxy; it ends when this is dropped.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    _accepting: JoinSet<()>,
}

struct Shared {
    upstream: Client,
    lot: Mutex<Lot>,
    /// Each fault with the share of requests that meet it.
    faults: Mutex<(Only, Vec<(f64, Fault)>)>,
    connections: Mutex<HashMap<usize, Arc<Connection>>>,
    /// Whether new connections are silent from the first.
    silent: watch::Sender<bool>,
    /// Counts the times that all watches were told to expire.
    expiries: watch::Sender<usize>,
    accepted: AtomicUsize,
    requests: AtomicUsize,
    injected: AtomicUsize,
}

/// A connection of the operator.
struct Connection {
    reset: Notify,
    /// Nothing passes, in neither direction; the peer is not told.
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
            injected: AtomicUsize::new(0),
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

    /// What an operator needs to come through here.
    pub(crate) fn config(&self) -> Config {
        Config::new(self.url().parse().unwrap())
    }

    /// From now on these shares of the requests meet these faults.
    pub(crate) fn inject(&self, faults: impl Into<Vec<(f64, Fault)>>) {
        self.inject_where(|_| true, faults);
    }

    pub(crate) fn inject_where(&self, only: Only, faults: impl Into<Vec<(f64, Fault)>>) {
        *self.shared.faults.lock().unwrap() = (only, faults.into());
    }

    /// No faults any more; connections that were cut off stay so.
    pub(crate) fn heal(&self) {
        self.inject([]);
        self.shared.silent.send_replace(false);
    }

    /// Resets every connection.
    pub(crate) fn reset_all(&self) {
        self.reset_some(1.0);
    }

    /// Resets about this share of the connections.
    pub(crate) fn reset_some(&self, share: f64) {
        for connection in self.connections() {
            if self.shared.lot.lock().unwrap().falls(share) {
                self.shared.count_fault();
                connection.reset.notify_one();
            }
        }
    }

    /// Ends every watch, because what it knows is too old.
    pub(crate) fn expire_watches(&self) {
        self.shared.expiries.send_modify(|count| *count += 1);
    }

    /// From now on nothing passes, on no connection, until it is [healed](Self::heal) or [restored](Self::restore).
    pub(crate) fn fall_silent(&self) {
        self.shared.silent.send_replace(true);
        self.silence_connections();
    }

    /// Nothing passes any more on the connections there are; new ones are not concerned. So a router behaves that has
    /// forgotten its connections.
    pub(crate) fn silence_connections(&self) {
        for connection in self.connections() {
            self.shared.count_fault();
            connection.silent.send_replace(true);
        }
    }

    /// Lets everything pass again, what has waited first.
    pub(crate) fn restore(&self) {
        self.heal();
        for connection in self.connections() {
            connection.silent.send_replace(false);
        }
    }

    /// How many connections there are.
    pub(crate) fn open(&self) -> usize {
        self.connections().len()
    }

    /// How many requests there were.
    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// How many faults there were.
    pub(crate) fn injected(&self) -> usize {
        self.shared.injected.load(Ordering::Relaxed)
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

    fn up_to(&self, most: u64) -> u64 {
        self.lot.lock().unwrap().below(most)
    }
}

/// Each connection ends with the proxy.
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
    // Not counted any more only when it is closed.
    drop(stream);
    shared.connections.lock().unwrap().remove(&id);
}

/// Carries bytes both ways, but for the time of a silence.
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
        // The sender lives as long as this does.
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

/// Resets the connection; the task that waits for this ends with it.
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
    let forwarded = Request::from_parts(parts, body.to_bytes().into());
    // Whatever the proxy cannot do, the operator sees as a broken connection.
    let Ok(answered) = shared.upstream.send(forwarded).await else {
        return reset(&connection).await;
    };
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
        _ if is_watch => expiring(body.boxed(), shared.expiries.subscribe()).boxed(),
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

/// The first bytes, and then a broken connection.
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

/// So many events of a watch, or those of a short time, and then a last one.
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

/// A watch that ends when it is told to.
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

/// A watch event by event, so that it can end between two.
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

/// Waits until there are no connections any more.
pub(crate) async fn closed(proxy: &Proxy, within: Duration) -> bool {
    timeout(within, async {
        while proxy.open() > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .is_ok()
}
