//! The handle of a running elector.

use std::time::Duration;
use std::{io, thread};

use kube::{Client, Config};
use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

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

/// The candidacy of this process and, once it has [acquired](Self::acquired) the lease, its
/// leadership. The lease is renewed in the background until it is released, dropped or
/// [lost](Self::lost).
///
/// Dropping it closes the fence and stops the renewal, but does not release the lease, which then
/// expires: after a failure, work may still be in progress.
pub(crate) struct Leadership {
    fence: Fence,
    orders: watch::Sender<Order>,
    state: watch::Receiver<ElectionState>,
    /// The task of the elector. `None` if it has its own thread, which exits when `orders` is
    /// dropped.
    task: Option<JoinHandle<()>>,
}

/// An order to an elector.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Lead,
    Release,
}

#[derive(Clone)]
enum ElectionState {
    Waiting,
    Leading,
    Lost(LeadershipLost),
    /// The lease was released, or the candidate has withdrawn.
    Ended,
}

impl Leadership {
    /// Starts a candidate on a thread with its own runtime and client. Renewals are then delayed
    /// neither by a reconcile that blocks its thread, nor by a busy single-threaded runtime, which
    /// is what `cpu: 500m` results in.
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
        let (leadership, background) = Self::prepare(&fence);
        let metrics = metrics.clone();
        let (report, started) = oneshot::channel();
        let run = move || -> io::Result<()> {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                // The runtime that creates the client also drives its connections.
                match Elector::with_config(election, config, &metrics, &settings, fence) {
                    Ok(elector) => {
                        let _ = report.send(Ok(()));
                        background.run(elector).await;
                    }
                    Err(error) => {
                        let _ = report.send(Err(error.to_string()));
                    }
                }
            });
            Ok(())
        };
        let thread = thread::Builder::new()
            .name("leader-election".to_owned())
            .spawn(run);
        thread.map_err(|error| format!("failed to start its thread: {error}"))?;
        let failed = |_| Err("failed to start the runtime of its thread".to_owned());
        started.await.unwrap_or_else(failed)?;
        Ok(leadership)
    }

    /// Starts a candidate as a task on the caller's runtime, with the caller's client.
    pub(crate) fn start_as_task(election: Election, client: Client, fence: Fence) -> Self {
        Self::start(Elector::with_client(election, client, fence))
    }

    pub(super) fn start(elector: Elector) -> Self {
        let (mut leadership, background) = Self::prepare(&elector.fence);
        leadership.task = Some(tokio::spawn(background.run(elector)));
        leadership
    }

    fn prepare(fence: &Fence) -> (Self, Background) {
        let (orders, given) = watch::channel(Order::Lead);
        let (state_sender, state) = watch::channel(ElectionState::Waiting);
        let leadership = Self {
            fence: fence.clone(),
            orders,
            state,
            task: None,
        };
        let background = Background {
            orders: given,
            state: state_sender,
        };
        (leadership, background)
    }

    /// Waits until this process holds the lease, for as long as it takes.
    ///
    /// # Errors
    /// Fails if the elector ends before that.
    pub(crate) async fn acquired(&self) -> Result<(), LeadershipLost> {
        let mut state = self.state.clone();
        let acquired = state
            .wait_for(|state| !matches!(state, ElectionState::Waiting))
            .await
            .map(|state| state.clone());
        match acquired {
            Ok(ElectionState::Leading) => Ok(()),
            Ok(ElectionState::Lost(lost)) => Err(lost),
            Ok(ElectionState::Waiting | ElectionState::Ended) | Err(_) => Err(LeadershipLost::RenewalStopped),
        }
    }

    /// Resolves when the leadership is lost, but never when it is released. The process must then
    /// stop acting immediately, preferably by exiting.
    pub(crate) fn lost(&self) -> impl Future<Output = LeadershipLost> + Send + use<> {
        let (mut state, fence) = (self.state.clone(), self.fence.clone());
        async move {
            let announced = async {
                let ended = state
                    .wait_for(|state| matches!(state, ElectionState::Lost(_) | ElectionState::Ended))
                    .await
                    .map(|state| state.clone());
                match ended {
                    Ok(ElectionState::Lost(lost)) => lost,
                    Ok(_) => std::future::pending().await,
                    // The elector was dropped because it panicked or its runtime is shutting down.
                    Err(_) => LeadershipLost::RenewalStopped,
                }
            };
            let lapsed = async {
                fence.lapsed().await;
                sleep(REASON_TIMEOUT).await;
                LeadershipLost::RenewalStopped
            };
            tokio::select! {
                biased;
                lost = announced => lost,
                lost = lapsed => lost,
            }
        }
    }

    /// Stops renewing and releases the lease, so that another candidate does not have to wait until
    /// it expires. A candidate withdraws.
    ///
    /// Call this once nothing acts as leader any more. A failure is logged, and the lease then
    /// expires.
    pub(crate) async fn release(self) {
        self.orders.send_replace(Order::Release);
        self.ended().await;
    }

    /// Waits until the loss of the leadership has been recorded as an event, for at most half a
    /// second.
    pub(crate) async fn finish_loss(self) {
        let _ = timeout(LAST_EVENT_TIMEOUT, self.ended()).await;
    }

    /// Resolves when the elector is done.
    async fn ended(&self) {
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.fence.close();
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The elector's side of a [`Leadership`].
struct Background {
    orders: watch::Receiver<Order>,
    state: watch::Sender<ElectionState>,
}

impl Background {
    /// Acquires the lease and renews it until it is lost or the order to end arrives.
    async fn run(self, mut elector: Elector) {
        let Self { mut orders, state } = self;
        let _closed = LoseOnDrop(elector.fence.clone());
        let led = async {
            elector.acquire().await;
            state.send_replace(ElectionState::Leading);
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
        let was_leading = !matches!(*state.borrow(), ElectionState::Waiting);
        match lost {
            Some(lost) => {
                elector.fence.lose();
                tracing::error!(lease = elector.election.name, reason = %lost, "leader election lost");
                state.send_replace(ElectionState::Lost(lost));
            }
            None => {
                elector.fence.close();
                state.send_replace(ElectionState::Ended);
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
}

async fn log_release(elector: &Elector) {
    let lease = &elector.election.name;
    match elector.release().await {
        Ok(()) => tracing::info!(lease, "released lease"),
        Err(error) => tracing::warn!(lease, %error, "failed to release lease, it will expire"),
    }
}

/// Loses the lease if the elector panics or its runtime ends.
struct LoseOnDrop(Fence);

impl Drop for LoseOnDrop {
    fn drop(&mut self) {
        self.0.lose();
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
        let (leadership, _stuck) = Leadership::prepare(&fence);
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
