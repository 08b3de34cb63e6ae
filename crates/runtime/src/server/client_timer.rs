//! Keeps track of how long a connection's client has been idle or sending. This determines which
//! connection is replaced by a new one.
//!
//! # Example: a slow body
//!
//! A client sends the head of a request at 0 s, and the first byte of the body at 1 s. Starting at
//! 0 s, we're waiting for the client, just as if the connection was idle, so it may be replaced.
//! The byte at 1 s doesn't change that: we have been waiting since 0 s. As soon as the body is
//! complete, it is the client that is waiting for us, and the connection can't be replaced anymore.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How long the head of a request may take. We start to count at its first byte, or when the
/// connection is opened. Same as in controller-runtime.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// How long a connection may be idle between two requests. Same as in controller-runtime.
///
/// The API server's client closes idle connections no later than that. This makes sure that it
/// never sends a request on a connection that we're about to close.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a client may take to receive a response before we can replace its connection. This is
/// plenty, because most responses fit into the buffers of the operating system, and a client that's
/// waiting for its response is going to read it immediately.
pub(super) const RECEIVE_PATIENCE: Duration = Duration::from_secs(1);

/// What a client is doing while we don't have a complete request to process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientState {
    Idle,
    /// Receiving a response over HTTP/1.1.
    Receiving,
    /// Sending the head of a request, or doing a TLS handshake.
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

/// Measures how long we've been waiting for the client of a connection. The time that we take
/// ourselves doesn't count.
pub(super) struct ClientTimer {
    progress: Mutex<Progress>,
    changed: Notify,
    closed: Notify,
    /// The server waits for this in order to replace a connection.
    replaceable: Arc<Notify>,
}

struct Progress {
    /// How many requests the handlers are processing.
    answering: usize,
    /// How many of the requests are still waiting for their body.
    awaiting_body: usize,
    state: ClientState,
    /// When the client entered this state. During a request, it's when the head started, plus the
    /// time that we've taken since then.
    since: Instant,
    /// Set while we are processing a request.
    working_since: Option<Instant>,
    /// The client has shown a valid certificate.
    is_authenticated: bool,
}

impl Progress {
    fn enter(&mut self, state: ClientState) {
        (self.state, self.since) = (state, Instant::now());
    }

    fn has_requests(&self) -> bool {
        self.answering + self.awaiting_body > 0
    }

    /// `None` if we're processing a request.
    fn kept_waiting_since(&self) -> Option<Instant> {
        (self.answering == 0).then_some(self.since)
    }
}

impl ClientTimer {
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

    /// The connection with the lowest value is the first to be replaced. Clients without a
    /// certificate come first, and then those we've been waiting for the longest. Returns `None` if
    /// we're processing a request.
    pub(super) fn replaceable_since(&self) -> Option<(bool, Instant)> {
        let progress = self.progress();
        let since = progress.kept_waiting_since()?;
        let is_receiving = !progress.has_requests() && progress.state == ClientState::Receiving;
        let is_replaceable = !is_receiving || since.elapsed() >= RECEIVE_PATIENCE;
        is_replaceable.then_some((progress.is_authenticated, since))
    }

    /// Closes the connection without waiting for anything.
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

    /// The client has presented a certificate of the configured CA.
    pub(super) fn set_authenticated(&self) {
        self.progress().is_authenticated = true;
    }

    /// Called when we receive bytes.
    pub(super) fn record_bytes(&self) {
        let mut progress = self.progress();
        if !progress.has_requests() && progress.state == ClientState::Idle {
            progress.enter(ClientState::SendingHead);
            drop(progress);
            self.changed.notify_one();
        }
    }

    /// Called when everything that we've written has been sent.
    pub(super) fn record_flush(&self) {
        let mut progress = self.progress();
        if !progress.has_requests() && progress.state == ClientState::Receiving {
            progress.enter(ClientState::Idle);
            drop(progress);
            self.changed.notify_one();
            self.replaceable.notify_one();
        }
    }

    /// Called when a request starts. From here on, it's up to the handler to limit the time for the
    /// body. Dropping the guard enters the state `next`.
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

    /// The handler waits for the body until the guard is dropped.
    pub(super) fn await_body(self: &Arc<Self>) -> AwaitedBody {
        let mut progress = self.progress();
        progress.answering -= 1;
        progress.awaiting_body += 1;
        if let Some(working) = progress.working_since.take() {
            // Don't count the time that we've taken ourselves.
            progress.since += working.elapsed();
        }
        drop(progress);
        self.replaceable.notify_one();
        AwaitedBody(Arc::clone(self))
    }

    /// Waits until the current state has timed out.
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

/// A request that we're receiving or processing.
pub(super) struct OpenRequest {
    timer: Arc<ClientTimer>,
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

pub(super) struct AwaitedBody(Arc<ClientTimer>);

impl Drop for AwaitedBody {
    fn drop(&mut self) {
        let mut progress = self.0.progress();
        progress.awaiting_body -= 1;
        progress.answering += 1;
        progress.working_since = Some(Instant::now());
    }
}

/// Handle to the connection of a request.
#[derive(Clone)]
pub(crate) struct Connection(Arc<ClientTimer>);

impl Connection {
    pub(super) fn new(timer: &Arc<ClientTimer>) -> Self {
        Self(Arc::clone(timer))
    }

    /// Since when we've been waiting for the client to send the rest of the body, or to receive the
    /// response. `None` if we're processing a request.
    pub(crate) fn kept_waiting_since(&self) -> Option<Instant> {
        self.0.progress().kept_waiting_since()
    }

    /// Closes the connection without sending a response.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}
