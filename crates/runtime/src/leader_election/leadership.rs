//! The handle of a running elector.

use std::time::Duration;

use kube::{Client, Config};
use tokio::time::timeout;

use super::handle::{Background, LeaseHandle, LeaseState, LoseOnDrop, RenewalStopped, start_on_thread};
use super::{Election, Elector, Fence, LAST_EVENT_TIMEOUT};
use crate::client::ClientSettings;
use crate::metrics::Metrics;

/// How long to wait for the elector to explain why the lease has lapsed. It may be unable to,
/// because a kubeconfig command that fetches credentials blocks its thread.
const REASON_TIMEOUT: Duration = Duration::from_millis(100);

/// Why this process is no longer the leader.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum LeadershipLost {
    #[error("lease is held by {0}")]
    HeldByOther(String),
    #[error("failed to renew lease within {:?}; last error: {last_error}", .deadline)]
    RenewDeadline { deadline: Duration, last_error: String },
    #[error("lease renewal stopped")]
    RenewalStopped,
}

impl From<RenewalStopped> for LeadershipLost {
    fn from(_: RenewalStopped) -> Self {
        Self::RenewalStopped
    }
}

/// The candidacy of this process and, once it has [acquired](Self::acquired) the lease, its
/// leadership. The lease is renewed in the background until it is released, dropped or
/// [lost](Self::lost).
pub(crate) struct Leadership(LeaseHandle<Order, LeadershipLost>);

/// An order to an elector.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Lead,
    Release,
}

impl Leadership {
    /// Starts a candidate on a thread with its own runtime and client.
    ///
    /// # Errors
    /// Fails if the thread, its runtime or the client cannot be created.
    pub(crate) async fn start_on_thread(
        election: Election,
        config: Config,
        metrics: &Metrics,
        settings: ClientSettings,
        fence: Fence,
    ) -> Result<Self, String> {
        let (handle, background) = LeaseHandle::new(&fence, Order::Lead);
        let metrics = metrics.clone();
        start_on_thread("leader-election", move || {
            let elector = Elector::with_config(election, config, &metrics, &settings, fence)?;
            Ok(run(background, elector))
        })
        .await?;
        Ok(Self(handle))
    }

    /// Starts a candidate as a task on the caller's runtime, with the caller's client.
    pub(crate) fn start_as_task(election: Election, client: Client, fence: Fence) -> Self {
        Self::start(Elector::with_client(election, client, fence))
    }

    pub(super) fn start(elector: Elector) -> Self {
        let (mut handle, background) = LeaseHandle::new(&elector.fence, Order::Lead);
        handle.spawn(run(background, elector));
        Self(handle)
    }

    /// Waits until this process holds the lease, for as long as it takes.
    ///
    /// # Errors
    /// Fails if the elector ends before that.
    pub(crate) async fn acquired(&self) -> Result<(), LeadershipLost> {
        self.0.held().await
    }

    /// Resolves when the leadership is lost, but never when it is released. The process must then
    /// stop acting immediately, preferably by exiting.
    pub(crate) fn lost(&self) -> impl Future<Output = LeadershipLost> + Send + use<> {
        self.0.lost(REASON_TIMEOUT)
    }

    /// Stops renewing and releases the lease, so that another candidate does not have to wait until
    /// it expires. A candidate withdraws.
    ///
    /// Call this once nothing acts as leader any more. A failure is logged, and the lease then
    /// expires.
    pub(crate) async fn release(self) {
        self.0.order(Order::Release);
        self.0.ended().await;
    }

    /// Waits until the loss of the leadership has been recorded as an event, for at most half a
    /// second.
    pub(crate) async fn finish_loss(self) {
        let _ = timeout(LAST_EVENT_TIMEOUT, self.0.ended()).await;
    }
}

/// Acquires the lease and renews it until it is lost or the order to end arrives.
async fn run(background: Background<Order, LeadershipLost>, mut elector: Elector) {
    let Background { mut orders, state } = background;
    let _closed = LoseOnDrop(elector.fence.clone());
    let led = async {
        elector.acquire().await;
        state.send_replace(LeaseState::Held);
        let limit = elector.election.request_timeout();
        tokio::spawn(elector.event("BecomeLeader", "became leader", limit));
        elector.renew().await
    };
    // An error means that the `Leadership` was dropped.
    let ordered = async { orders.wait_for(|order| *order != Order::Lead).await.is_ok() };
    let (lost, releases) = tokio::select! {
        lost = led => (Some(lost), false),
        releases = ordered => (None, releases),
    };
    let was_leading = !matches!(*state.borrow(), LeaseState::Waiting);
    match lost {
        Some(lost) => {
            elector.fence.lose();
            tracing::error!(lease = elector.election.name, reason = %lost, "leader election lost");
            state.send_replace(LeaseState::Lost(lost));
        }
        None => {
            elector.fence.close();
            state.send_replace(LeaseState::Ended);
        }
    }
    if !was_leading {
        return;
    }
    let stopped = elector.event("StopLeading", "stopped leading", LAST_EVENT_TIMEOUT);
    let released = async {
        if releases {
            log_release(&elector).await;
        }
    };
    tokio::join!(stopped, released);
}

async fn log_release(elector: &Elector) {
    let lease = &elector.election.name;
    match elector.release().await {
        Ok(()) => tracing::info!(lease, "released lease"),
        Err(error) => tracing::warn!(lease, %error, "failed to release lease, it will expire"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// As if the elector's thread were blocked: it announces nothing.
    #[tokio::test(start_paused = true)]
    async fn lease_is_lost_when_it_lapses_even_if_the_elector_is_stuck() {
        let fence = Fence::new("operator");
        let (handle, _stuck) = LeaseHandle::new(&fence, Order::Lead);
        let leadership = Leadership(handle);
        let started = Instant::now();
        assert!(fence.extend(started + Duration::from_secs(10)));
        let lost = timeout(Duration::from_secs(60), leadership.lost()).await;
        assert_eq!(lost, Ok(LeadershipLost::RenewalStopped));
        let waited = started.elapsed();
        assert!(
            waited >= Duration::from_secs(10) && waited < Duration::from_secs(11),
            "{waited:?}"
        );
    }
}
