//! The handle of a background that renews a lease. Leader election uses it, and so do the replicas of
//! a sharded operator.

use std::time::Duration;
use std::{io, thread};

use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::Fence;

/// A lease is no longer renewed, and nobody has said why: the background panicked, is stuck, or its
/// runtime has ended.
pub(crate) struct RenewalStopped;

/// The state of a lease. `L` is the reason for a loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseState<L> {
    Waiting,
    Held,
    Lost(L),
    /// The lease was given up, or was never held.
    Ended,
}

/// A lease that a background renews. It gets orders of the type `O`.
///
/// Dropping the handle closes the fence and stops the renewal, but does not release the lease, which
/// then expires: after a failure, work may still be in progress.
pub(crate) struct LeaseHandle<O, L> {
    fence: Fence,
    orders: watch::Sender<O>,
    state: watch::Receiver<LeaseState<L>>,
    /// `None` if the background has its own thread, which exits when `orders` is dropped.
    task: Option<JoinHandle<()>>,
}

/// The background's side of a [`LeaseHandle`].
pub(crate) struct Background<O, L> {
    /// Closed when the handle is dropped.
    pub(crate) orders: watch::Receiver<O>,
    pub(crate) state: watch::Sender<LeaseState<L>>,
}

impl<O, L: Clone + From<RenewalStopped>> LeaseHandle<O, L> {
    /// Creates both sides for a lease that is not held yet.
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

    /// Runs the background as a task on the caller's runtime.
    pub(crate) fn spawn(&mut self, background: impl Future<Output = ()> + Send + 'static) {
        self.task = Some(tokio::spawn(background));
    }

    /// Waits until the lease is held, for as long as it takes.
    ///
    /// # Errors
    /// Fails if the background ends before that.
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

    /// Resolves when the lease is lost, but never when it is given up. If the lease has lapsed, waits
    /// for `patience` for the background to say why.
    pub(crate) fn lost(&self, patience: Duration) -> impl Future<Output = L> + Send + use<O, L>
    where
        L: Send + Sync,
    {
        let (mut state, fence) = (self.state.clone(), self.fence.clone());
        async move {
            let announced = async {
                let is_over =
                    |state: &LeaseState<L>| matches!(state, LeaseState::Lost(_) | LeaseState::Ended);
                match state.wait_for(is_over).await.map(|state| state.clone()) {
                    Ok(LeaseState::Lost(lost)) => lost,
                    Ok(_) => std::future::pending().await,
                    // The background panicked, or its runtime is shutting down.
                    Err(_) => RenewalStopped.into(),
                }
            };
            let lapsed = async {
                fence.lapsed().await;
                if !patience.is_zero() {
                    sleep(patience).await;
                }
                RenewalStopped.into()
            };
            tokio::select! {
                biased;
                lost = announced => lost,
                lost = lapsed => lost,
            }
        }
    }

    pub(crate) fn order(&self, order: O) {
        self.orders.send_replace(order);
    }

    /// Resolves when the background has ended.
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

/// Starts a background on a thread with its own runtime, which `start` creates there: the runtime that
/// creates a client also drives its connections. Renewals are then delayed neither by a reconcile
/// that blocks its thread, nor by a busy single-threaded runtime, which is what `cpu: 500m` results
/// in.
///
/// # Errors
/// Fails if the thread or its runtime cannot be created, or `start` fails.
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
                    let _ = report.send(Err(error.to_string()));
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

/// Loses the lease if the background panics or its runtime ends.
pub(crate) struct LoseOnDrop(pub(crate) Fence);

impl Drop for LoseOnDrop {
    fn drop(&mut self) {
        self.0.lose();
    }
}
