//! Handle to a running elector.

use std::time::Duration;

use kube::{Client, Config};
use tokio::time::timeout;

use super::handle::{Background, LeaseHandle, LeaseState, LoseOnDrop, RenewalStopped, start_on_thread};
use super::{Election, Elector, Fence, LAST_EVENT_TIMEOUT};
use crate::client::ClientSettings;
use crate::metrics::Metrics;

/// How long to wait for the elector to report why the lease has lapsed. The exec plugin of a
/// kubeconfig could block its thread forever.
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

/// This process is a candidate until it has [acquired](Self::acquired) the lease, and then the
/// leader.
///
/// The lease is renewed in the background until it's released or [lost](Self::lost), or until this
/// value is dropped.
pub(crate) struct Leadership(LeaseHandle<Order, LeadershipLost>);

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Lead,
    Release,
}

impl Leadership {
    /// Starts a candidate on a separate thread, with its own runtime and client. Fails if one of
    /// these can't be created.
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

    pub(crate) fn start_as_task(election: Election, client: Client, fence: Fence) -> Self {
        Self::start(Elector::with_client(election, client, fence))
    }

    pub(super) fn start(elector: Elector) -> Self {
        let (mut handle, background) = LeaseHandle::new(&elector.fence, Order::Lead);
        handle.spawn(run(background, elector));
        Self(handle)
    }

    /// Waits for this process to acquire the lease, without a timeout. Fails if the elector exits
    /// first.
    pub(crate) async fn acquired(&self) -> Result<(), LeadershipLost> {
        self.0.held().await
    }

    /// Waits until the lease is lost. Never returns if it is released. The process must then stop
    /// everything immediately, preferably by exiting.
    pub(crate) fn lost(&self) -> impl Future<Output = LeadershipLost> + Send + use<> {
        self.0.lost(REASON_TIMEOUT)
    }

    /// Stops renewing the lease and releases it, so that other candidates don't have to wait until
    /// it expires. A candidate just stops trying to acquire it.
    ///
    /// Must not be called while anything still acts as the leader. Errors are logged, and the lease
    /// expires instead.
    pub(crate) async fn release(self) {
        self.0.order(Order::Release);
        self.0.ended().await;
    }

    /// Allows half a second for the lost-leadership event to be sent.
    pub(crate) async fn finish_loss(self) {
        let _ = timeout(LAST_EVENT_TIMEOUT, self.0.ended()).await;
    }
}

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
    // Dropping the `Leadership` without releasing it is a bug.
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
    // A candidate has no lease to release.
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

    /// The elector announces nothing, as if its thread were blocked.
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
