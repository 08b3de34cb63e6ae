//! All open connections of a server, up to a limit.
//!
//! # Example: more clients than connections
//!
//! Suppose the limit is 3. Connection `a` is processing a request, `b` has been idle for 20 s, and
//! `c` has been sending the body of a request for 5 s. A new connection replaces `b`, and the next
//! one replaces `c`. While `a` and the two new ones are being processed, all others have to wait.
//!
//! Since the newest connection is the last one to be replaced, a client that sends its request
//! right away always gets a response, whatever the others do. For example, with a limit of 512 and
//! 17 new connections per second, it has 30 s to do so.
//!
//! Rejecting new connections would be simpler. However, a client could then open 512 connections
//! without sending anything. Until they time out, the kubelet would not be able to connect, so the
//! Pod would be restarted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, sleep};

use super::client_timer::{ClientTimer, RECEIVE_PATIENCE};

/// Minimum interval between warnings about the limit.
const WARN_PERIOD: Duration = Duration::from_secs(60);

pub(super) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, (AbortHandle, Arc<ClientTimer>)>,
    limit: usize,
    /// Notified when a connection can be replaced.
    replaceable: Arc<Notify>,
    warned: Option<Instant>,
}

impl Connections {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            tasks: JoinSet::new(),
            open: HashMap::new(),
            limit,
            replaceable: Arc::default(),
            warned: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns `false` at the limit if all connections are processing requests.
    pub(super) fn has_capacity(&self) -> bool {
        self.len() < self.limit || self.longest_waiting().is_some()
    }

    /// Adds a connection. At the limit, it replaces the connection whose client has kept us waiting
    /// the longest.
    pub(super) fn open<F>(&mut self, serve: impl FnOnce(Arc<ClientTimer>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.len() >= self.limit {
            self.close_longest_waiting();
        }
        let timer = Arc::new(ClientTimer::new(Arc::clone(&self.replaceable)));
        let task = self.tasks.spawn(serve(Arc::clone(&timer)));
        self.open.insert(task.id(), (task, timer));
    }

    /// Waits until a connection has ended or can be replaced.
    pub(super) async fn changed(&mut self) {
        let is_full = self.len() >= self.limit;
        tokio::select! {
            Some(ended) = self.tasks.join_next_with_id() => {
                let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                self.open.remove(&id);
            }
            () = self.replaceable.notified(), if is_full => {}
            // There is no notification for a client that doesn't receive its response, so check
            // periodically.
            () = sleep(RECEIVE_PATIENCE), if is_full => {}
            else => std::future::pending().await,
        }
    }

    fn longest_waiting(&self) -> Option<Id> {
        let waiting = self.open.iter().filter_map(|(id, (_, timer))| {
            let priority = timer.replaceable_since()?;
            Some((priority, *id))
        });
        waiting.min_by_key(|(priority, _)| *priority).map(|(_, id)| id)
    }

    fn close_longest_waiting(&mut self) {
        let Some((task, _)) = self.longest_waiting().and_then(|id| self.open.remove(&id)) else {
            return;
        };
        // Don't shut it down gracefully, since the client could delay that.
        task.abort();
        let now = Instant::now();
        if self.warned.is_none_or(|warned| now >= warned + WARN_PERIOD) {
            self.warned = Some(now);
            tracing::warn!(
                limit = self.limit,
                "too many connections, closing those whose clients have been idle or sending for longest"
            );
        }
    }
}
