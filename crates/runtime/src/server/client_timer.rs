//! Tracks how long the client of a connection has been idle or sending, which decides which
//! connection a new one replaces.
//!
//! # Example: a body that arrives slowly
//! A client sends a head at 0 s and one byte of its body at 1 s. From 0 s on, the server waits for
//! this client, just as for an idle one, so the connection may be replaced. The byte at 1 s changes
//! nothing: the wait still started at 0 s. Once the body is complete, the client waits for the
//! server, and the connection cannot be replaced.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Timeout for the head of a request, from its first byte or the start of the connection. Same as
/// in controller-runtime.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Timeout between two requests, as in controller-runtime. At least as long as the idle timeout of
/// the API server's client, so that it never sends a request on a connection that is about to be
/// closed.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a client may take to receive a response before its connection may be replaced. Most
/// responses fit into the system's buffers, and a client that waits for a larger one receives it
/// immediately.
pub(super) const RECEIVE_PATIENCE: Duration = Duration::from_secs(1);

/// The state of a client from which the server has no complete request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientState {
    /// Between two requests.
    Idle,
    /// Receiving a response over HTTP/1.1.
    Receiving,
    /// Sending the head of a request, or performing a TLS handshake.
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

/// Measures how long the client of a connection takes, not counting the time spent on responses.
pub(super) struct ClientTimer {
    progress: Mutex<Progress>,
    changed: Notify,
    closed: Notify,
    /// Notified when the connection may be replaced. Shared with the server.
    replaceable: Arc<Notify>,
}

struct Progress {
    /// Number of requests that a handler is processing.
    answering: usize,
    /// Number of requests whose handler waits for the body.
    awaiting_body: usize,
    state: ClientState,
    /// Start of `state`. For a request that is being received or answered, the start of its head,
    /// shifted by the time that the server has taken since.
    since: Instant,
    /// Since when the server has been processing a request.
    working_since: Option<Instant>,
    /// Whether the client has presented a certificate.
    is_authenticated: bool,
}

impl Progress {
    fn enter(&mut self, state: ClientState) {
        (self.state, self.since) = (state, Instant::now());
    }

    fn has_requests(&self) -> bool {
        self.answering + self.awaiting_body > 0
    }

    /// Returns since when the client has kept the server waiting, or `None` while a request is
    /// being answered.
    fn kept_waiting_since(&self) -> Option<Instant> {
        (self.answering == 0).then_some(self.since)
    }
}

impl ClientTimer {
    /// Creates the timer for a new connection.
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

    /// Returns the rank of the connection for replacement by a new one: whether the client has
    /// presented a certificate, and since when it has kept the server waiting. The lowest rank is
    /// replaced first. `None` while a request is being answered.
    pub(super) fn replaceable_since(&self) -> Option<(bool, Instant)> {
        let progress = self.progress();
        let since = progress.kept_waiting_since()?;
        let is_receiving = !progress.has_requests() && progress.state == ClientState::Receiving;
        let is_replaceable = !is_receiving || since.elapsed() >= RECEIVE_PATIENCE;
        is_replaceable.then_some((progress.is_authenticated, since))
    }

    /// Closes the connection immediately.
    fn close(&self) {
        self.closed.notify_one();
    }

    /// Resolves when the connection should be closed immediately.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    pub(super) fn enter(&self, state: ClientState) {
        self.progress().enter(state);
        self.changed.notify_one();
    }

    /// Records that the client has presented a certificate of the configured CA.
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

    /// Records the start of a request. Its handler limits the time for its body. When the returned
    /// guard is dropped, the client enters the state `next`.
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

    /// Records that the handler of a request is waiting for the body, until the guard is dropped.
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

    /// Resolves when the timeout of the client's state has expired.
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
    /// The state to enter afterwards.
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

/// A request whose handler is waiting for the body.
pub(super) struct AwaitedBody(Arc<ClientTimer>);

impl Drop for AwaitedBody {
    fn drop(&mut self) {
        let mut progress = self.0.progress();
        progress.awaiting_body -= 1;
        progress.answering += 1;
        progress.working_since = Some(Instant::now());
    }
}

/// A handle to the connection of a request, for tracking how long its client takes.
#[derive(Clone)]
pub(crate) struct Connection(Arc<ClientTimer>);

impl Connection {
    pub(super) fn new(timer: &Arc<ClientTimer>) -> Self {
        Self(Arc::clone(timer))
    }

    /// Returns since when the client has kept the server waiting, by not sending the rest of a body
    /// or not receiving a response. `None` while the server processes a request.
    pub(crate) fn kept_waiting_since(&self) -> Option<Instant> {
        self.0.progress().kept_waiting_since()
    }

    /// Closes the connection immediately, without a response.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}
