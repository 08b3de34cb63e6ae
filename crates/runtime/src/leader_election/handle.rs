//! Handle to a background task which renews a lease. Used for leader election, and by the replicas
//! of a sharded operator.

use std::time::Duration;
use std::{io, thread};

use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::Fence;

/// Nobody renews the lease anymore, and we don't know why. The background task may have panicked or
/// got stuck, or its runtime was shut down.
pub(crate) struct RenewalStopped;

/// `L` is the reason for losing a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseState<L> {
    Waiting,
    Held,
    Lost(L),
    /// We've given up the lease, or have never held it.
    Ended,
}

/// A lease that a background task renews. `O` is what we can order that task to do.
///
/// Dropping the handle closes the fence and stops the task. It doesn't release the lease, because
/// after a failure there may still be work in progress. We let it expire instead.
pub(crate) struct LeaseHandle<O, L> {
    fence: Fence,
    orders: watch::Sender<O>,
    state: watch::Receiver<LeaseState<L>>,
    /// `None` if there is a separate thread, which exits when `orders` is dropped.
    task: Option<JoinHandle<()>>,
}

/// What the background task gets.
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

    /// Waits until we lose the lease, and never returns if we give it up voluntarily. After the
    /// lease has lapsed, the background task gets `patience` to tell us the reason.
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
                    // The task has panicked, or its runtime is shutting down.
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
            // Prefer what the task has announced, since that's the actual reason.
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
/// thread, because the connections of a client are driven by the runtime that has created it.
///
/// This way, neither a reconcile that blocks its thread nor a busy single-threaded runtime can
/// delay a renewal. The latter is what you get with `cpu: 500m`.
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

/// Makes sure that the lease counts as lost if the background task panics or its runtime shuts
/// down.
pub(crate) struct LoseOnDrop(pub(crate) Fence);

impl Drop for LoseOnDrop {
    fn drop(&mut self) {
        self.0.lose();
    }
}
