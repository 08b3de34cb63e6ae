//! Handle to a background task that renews a lease. Used for leader election, and by the replicas
//! of a sharded operator.

use std::time::Duration;
use std::{io, thread};

use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::Fence;
use crate::causes::describe_causes;

/// The lease is no longer renewed for an unknown reason. The background task may have panicked or
/// got stuck, or its runtime was shut down.
pub(crate) struct RenewalStopped;

/// `L` is the reason for losing a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseState<L> {
    Waiting,
    Held,
    Lost(L),
    /// The lease was given up or never held.
    Ended,
}

/// A lease that a background task renews. `O` is the type of orders that the task accepts.
///
/// Dropping the handle closes the fence and stops the task. The lease isn't released but expires,
/// because work may still be in progress after a failure.
pub(crate) struct LeaseHandle<O, L> {
    fence: Fence,
    orders: watch::Sender<O>,
    state: watch::Receiver<LeaseState<L>>,
    /// `None` if the task runs on a separate thread, which exits when `orders` is dropped.
    task: Option<JoinHandle<()>>,
}

/// The background task's ends of the channels.
pub(crate) struct Background<O, L> {
    /// Closed when the handle is dropped.
    pub(crate) orders: watch::Receiver<O>,
    pub(crate) state: watch::Sender<LeaseState<L>>,
}

impl<O, L: Clone + From<RenewalStopped>> LeaseHandle<O, L> {
    pub(crate) fn new(fence: &Fence, first: O) -> (Self, Background<O, L>) {
        let (orders, given) = watch::channel(first);
        let (state_sender, state) = watch::channel(LeaseState::Waiting);
        let handle = Self {
            fence: fence.clone(),
            orders,
            state,
            task: None,
        };
        let background = Background {
            orders: given,
            state: state_sender,
        };
        (handle, background)
    }

    pub(crate) fn spawn(&mut self, background: impl Future<Output = ()> + Send + 'static) {
        self.task = Some(tokio::spawn(background));
    }

    /// Waits for this process to acquire the lease, without a timeout. Fails if the background task
    /// exits before that.
    pub(crate) async fn held(&self) -> Result<(), L> {
        let mut state = self.state.clone();
        let held = state
            .wait_for(|state| !matches!(state, LeaseState::Waiting))
            .await;
        match held.map(|state| state.clone()) {
            Ok(LeaseState::Held) => Ok(()),
            Ok(LeaseState::Lost(lost)) => Err(lost),
            Ok(LeaseState::Waiting | LeaseState::Ended) | Err(_) => Err(RenewalStopped.into()),
        }
    }

    /// Waits until the background task reports that the lease is lost. Never returns if it is given
    /// up voluntarily.
    pub(crate) fn reported_loss(&self) -> impl Future<Output = L> + Send + use<O, L>
    where
        L: Send + Sync,
    {
        let mut state = self.state.clone();
        async move {
            let is_over = |state: &LeaseState<L>| matches!(state, LeaseState::Lost(_) | LeaseState::Ended);
            match state.wait_for(is_over).await.map(|state| state.clone()) {
                Ok(LeaseState::Lost(lost)) => lost,
                Ok(_) => std::future::pending().await,
                // The task panicked, or its runtime is shutting down.
                Err(_) => RenewalStopped.into(),
            }
        }
    }

    /// Whether the background task has reported that the lease is lost.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(*self.state.borrow(), LeaseState::Lost(_))
    }

    /// Waits until the lease is lost. Never returns if it is given up voluntarily. Once the lease
    /// has lapsed, the background task has `patience` to report the reason.
    pub(crate) fn lost(&self, patience: Duration) -> impl Future<Output = L> + Send + use<O, L>
    where
        L: Send + Sync,
    {
        let (reported, fence) = (self.reported_loss(), self.fence.clone());
        async move {
            let lapsed = async {
                fence.lapsed().await;
                if !patience.is_zero() {
                    sleep(patience).await;
                }
                RenewalStopped.into()
            };
            // Prefer the reported loss, which has the actual reason.
            tokio::select! {
                biased;
                lost = reported => lost,
                lost = lapsed => lost,
            }
        }
    }

    pub(crate) fn order(&self, order: O) {
        self.orders.send_replace(order);
    }

    pub(crate) async fn ended(&self) {
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }
}

impl<O, L> Drop for LeaseHandle<O, L> {
    fn drop(&mut self) {
        self.fence.close();
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Runs a background task on a separate thread with its own runtime. `start` is called on that
/// thread, because a client's connections are driven by the runtime that created it.
///
/// This way, renewals are delayed neither by a reconcile that blocks its thread, nor by a busy
/// single-threaded runtime (e.g. due to `cpu: 500m`).
///
/// Fails if the thread or the runtime can't be created, or if `start` fails.
pub(crate) async fn start_on_thread<B: Future<Output = ()>>(
    name: &str,
    start: impl FnOnce() -> Result<B, kube::Error> + Send + 'static,
) -> Result<(), String> {
    let (report, started) = oneshot::channel();
    let run = move || -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match start() {
                Ok(background) => {
                    let _ = report.send(Ok(()));
                    background.await;
                }
                Err(error) => {
                    let _ = report.send(Err(describe_causes(&error)));
                }
            }
        });
        Ok(())
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| format!("failed to start its thread: {error}"))?;
    let failed = |_| Err("failed to start the runtime of its thread".to_owned());
    started.await.unwrap_or_else(failed)
}

/// Marks the lease as lost if the background task panics or its runtime shuts down.
pub(crate) struct LoseOnDrop(pub(crate) Fence);

impl Drop for LoseOnDrop {
    fn drop(&mut self) {
        self.0.lose();
    }
}
