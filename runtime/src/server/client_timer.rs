//! How long the client of a connection has been idle or sending, which decides the connection that
//! a new one replaces.
//!
//! # Example: a body that arrives slowly
//! A client sends a head at 0 s and one byte of its body at 1 s. From 0 s on, the server waits for
//! this client, as it waits for one that is idle, so the connection may be replaced. The byte at 1
//! s changes nothing: the wait still began at 0 s. When the body is complete, the client waits for
//! the server, and the connection cannot be replaced.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Time to receive the head of a request, from its first byte or the start of the connection;
/// controller-runtime's.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Time between two requests; controller-runtime's. It is not shorter than the idle timeout of the
/// API server's client, which therefore never sends a request on a connection that is being closed.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Time to receive the response to a request after which the connection may be replaced. Most
/// responses fit into the buffers of the system, and larger ones are received at once by a client
/// that waits for them.
pub(super) const RECEIVE_PATIENCE: Duration = Duration::from_secs(1);

/// The state of a client while the server has no complete request of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientState {
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
    closed: Notify,
    /// Notified when the connection may be replaced, for the server.
    replaceable: Arc<Notify>,
}

struct Progress {
    /// Number of requests that the handler works on.
    answering: usize,
    /// Number of requests whose handler waits for the body.
    awaiting_body: usize,
    state: ClientState,
    /// The start of `state`. Of a request that is received or answered, it is the start of its
    /// head, moved by the time that the server took since then.
    since: Instant,
    /// Since when the server has been working on a request.
    working_since: Option<Instant>,
    /// The client has shown a certificate.
    is_authenticated: bool,
}

impl Progress {
    fn enter(&mut self, state: ClientState) {
        (self.state, self.since) = (state, Instant::now());
    }

    fn has_requests(&self) -> bool {
        self.answering + self.awaiting_body > 0
    }

    /// Returns since when the client has kept the server waiting; `None` while a request is
    /// answered.
    fn kept_waiting_since(&self) -> Option<Instant> {
        (self.answering == 0).then_some(self.since)
    }
}

impl ClientTimer {
    /// Creates the timer of a new connection.
    pub(super) fn new(replaceable: Arc<Notify>) -> Self {
        Self {
            progress: Mutex::new(Progress {
                answering: 0,
                awaiting_body: 0,
                state: ClientState::SendingHead,
                since: Instant::now(),
                working_since: None,
                is_authenticated: false,
            }),
            changed: Notify::new(),
            closed: Notify::new(),
            replaceable,
        }
    }

    /// Returns the priority of the connection if a new one may replace it: whether the client has
    /// shown a certificate, and since when it has kept the server waiting. The least is replaced
    /// first. `None` while a request is answered.
    pub(super) fn replaceable_since(&self) -> Option<(bool, Instant)> {
        let progress = self.progress();
        let since = progress.kept_waiting_since()?;
        let is_receiving = !progress.has_requests() && progress.state == ClientState::Receiving;
        let is_replaceable = !is_receiving || since.elapsed() >= RECEIVE_PATIENCE;
        is_replaceable.then_some((progress.is_authenticated, since))
    }

    /// Closes the connection at once.
    fn close(&self) {
        self.closed.notify_one();
    }

    /// Resolves when the connection is to be closed at once.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    pub(super) fn enter(&self, state: ClientState) {
        self.progress().enter(state);
        self.changed.notify_one();
    }

    /// Records that the client has shown a certificate of the configured authority.
    pub(super) fn set_authenticated(&self) {
        self.progress().is_authenticated = true;
    }

    /// Records that bytes have arrived.
    pub(super) fn record_bytes(&self) {
        let mut progress = self.progress();
        if !progress.has_requests() && progress.state == ClientState::Idle {
            progress.enter(ClientState::SendingHead);
            drop(progress);
            self.changed.notify_one();
        }
    }

    /// Records that everything written has been sent.
    pub(super) fn record_flush(&self) {
        let mut progress = self.progress();
        if !progress.has_requests() && progress.state == ClientState::Receiving {
            progress.enter(ClientState::Idle);
            drop(progress);
            self.changed.notify_one();
            self.replaceable.notify_one();
        }
    }

    /// Records a request, whose handler limits the time for its body. When the returned guard is
    /// dropped, the client enters the state `next`.
    pub(super) fn begin_request(self: &Arc<Self>, next: ClientState) -> OpenRequest {
        let mut progress = self.progress();
        progress.answering += 1;
        progress.working_since = Some(Instant::now());
        drop(progress);
        self.changed.notify_one();
        OpenRequest {
            timer: Arc::clone(self),
            next,
        }
    }

    /// Records that the handler of a request waits for the body, until the guard is dropped.
    pub(super) fn await_body(self: &Arc<Self>) -> AwaitedBody {
        let mut progress = self.progress();
        progress.answering -= 1;
        progress.awaiting_body += 1;
        if let Some(working) = progress.working_since.take() {
            progress.since += working.elapsed();
        }
        drop(progress);
        self.replaceable.notify_one();
        AwaitedBody(Arc::clone(self))
    }

    /// Resolves when the timeout of the client's state has passed.
    pub(super) async fn expired(&self) {
        loop {
            let deadline = {
                let progress = self.progress();
                (!progress.has_requests()).then(|| progress.since + progress.state.timeout())
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until_deadline(deadline) => return,
            }
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn sleep_until_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A request that is being received or answered.
pub(super) struct OpenRequest {
    timer: Arc<ClientTimer>,
    /// The state to enter.
    next: ClientState,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut progress = self.timer.progress();
        progress.answering -= 1;
        progress.enter(self.next);
        drop(progress);
        self.timer.changed.notify_one();
        self.timer.replaceable.notify_one();
    }
}

/// A request whose handler waits for the body.
pub(super) struct AwaitedBody(Arc<ClientTimer>);

impl Drop for AwaitedBody {
    fn drop(&mut self) {
        let mut progress = self.0.progress();
        progress.awaiting_body -= 1;
        progress.answering += 1;
        progress.working_since = Some(Instant::now());
    }
}

/// The connection of a request, for what must know how long the client takes.
#[derive(Clone)]
pub(crate) struct Connection(Arc<ClientTimer>);

impl Connection {
    pub(super) fn new(timer: &Arc<ClientTimer>) -> Self {
        Self(Arc::clone(timer))
    }

    /// Returns since when the client has kept the server waiting: for the rest of a body, or by not
    /// receiving a response. `None` while the server works on a request.
    pub(crate) fn kept_waiting_since(&self) -> Option<Instant> {
        self.0.progress().kept_waiting_since()
    }

    /// Closes the connection at once, without a response.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}
