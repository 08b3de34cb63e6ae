//! Measures how long a connection's client has been idle or sending, which determines the
//! connection to replace by a new one.
//!
//! # Example: a slow body
//!
//! A client sends the head of a request at 0 s, and the first byte of the body at 1 s. From 0 s on,
//! we're waiting for the client, just as on an idle connection, so the connection may be replaced.
//! The byte at 1 s doesn't change that: we have been waiting since 0 s. Once the body is complete,
//! it is the client that waits for us, and the connection can no longer be replaced.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Timeout for the head of a request, starting at its first byte, or when the connection is opened.
/// Same as in controller-runtime.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Timeout for an idle connection between two requests. Same as in controller-runtime.
///
/// The API server's client closes idle connections no later than that, so it never sends a request
/// on a connection that we're about to close.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a client may take to receive a response before its connection can be replaced. This is
/// plenty: most responses fit into the operating system's buffers, and a client that's waiting for
/// its response reads it immediately.
pub(super) const RECEIVE_PATIENCE: Duration = Duration::from_secs(1);

/// What a client is doing while there is no complete request to process.
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

/// Measures how long a connection's client has kept us waiting, excluding our own processing time.
pub(super) struct ClientTimer {
    progress: Mutex<Progress>,
    changed: Notify,
    closed: Notify,
    /// Notifies the server when the connection can be replaced.
    replaceable: Arc<Notify>,
}

struct Progress {
    /// Number of requests that handlers are processing.
    answering: usize,
    /// Number of these requests that are still waiting for their body.
    awaiting_body: usize,
    state: ClientState,
    /// When the client entered this state. During a request, this is the start of the head, plus
    /// our own processing time since then.
    since: Instant,
    /// Set while a request is being processed.
    working_since: Option<Instant>,
    /// Set once the client has presented a valid certificate.
    is_authenticated: bool,
}

impl Progress {
    fn enter(&mut self, state: ClientState) {
        (self.state, self.since) = (state, Instant::now());
    }

    fn has_requests(&self) -> bool {
        self.answering + self.awaiting_body > 0
    }

    /// `None` while a request is being processed.
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

    /// Sort key for replacement, lowest first: clients without a certificate precede others, and
    /// then clients that have kept us waiting the longest. `None` while a request is being
    /// processed.
    pub(super) fn replaceable_since(&self) -> Option<(bool, Instant)> {
        let progress = self.progress();
        let since = progress.kept_waiting_since()?;
        let is_receiving = !progress.has_requests() && progress.state == ClientState::Receiving;
        let is_replaceable = !is_receiving || since.elapsed() >= RECEIVE_PATIENCE;
        is_replaceable.then_some((progress.is_authenticated, since))
    }

    fn close(&self) {
        self.closed.notify_one();
    }

    /// Resolves once the connection should be closed immediately.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }

    pub(super) fn enter(&self, state: ClientState) {
        self.progress().enter(state);
        self.changed.notify_one();
    }

    pub(super) fn set_authenticated(&self) {
        self.progress().is_authenticated = true;
    }

    /// Called when bytes arrive.
    pub(super) fn record_bytes(&self) {
        let mut progress = self.progress();
        if !progress.has_requests() && progress.state == ClientState::Idle {
            progress.enter(ClientState::SendingHead);
            drop(progress);
            self.changed.notify_one();
        }
    }

    /// Called when all written data was sent.
    pub(super) fn record_flush(&self) {
        let mut progress = self.progress();
        if !progress.has_requests() && progress.state == ClientState::Receiving {
            progress.enter(ClientState::Idle);
            drop(progress);
            self.changed.notify_one();
            self.replaceable.notify_one();
        }
    }

    /// Called when a request starts. From here on, the handler is responsible for the body's
    /// timeout. Dropping the guard enters the state `next`.
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

    /// Marks the handler as waiting for the body until the guard is dropped.
    pub(super) fn await_body(self: &Arc<Self>) -> AwaitedBody {
        let mut progress = self.progress();
        progress.answering -= 1;
        progress.awaiting_body += 1;
        if let Some(working) = progress.working_since.take() {
            // Exclude our own processing time.
            progress.since += working.elapsed();
        }
        drop(progress);
        self.replaceable.notify_one();
        AwaitedBody(Arc::clone(self))
    }

    /// Waits until the current state times out.
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

/// A request that is being received or processed.
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

    /// When the client started to keep us waiting for the rest of the body, or for receiving the
    /// response. `None` while a request is being processed.
    pub(crate) fn kept_waiting_since(&self) -> Option<Instant> {
        self.0.progress().kept_waiting_since()
    }

    /// Closes the connection without sending a response.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}
