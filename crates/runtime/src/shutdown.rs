//! Shutdown signals: one [`Stop`] notifies any number of [`Shutdown`]s.

use tokio::sync::watch;

/// Requests shutdown; dropping it does the same.
pub(crate) struct Stop(watch::Sender<bool>);

/// A shutdown signal, received by a [`Task`](crate::Task). Clones resolve together.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// Creates a shutdown signal.
pub(crate) fn new_shutdown() -> (Stop, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Stop(sender), Shutdown(receiver))
}

impl Stop {
    pub(crate) fn now(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Resolves when shutdown is requested.
    pub async fn requested(mut self) {
        // An error means that the `Stop` was dropped, which also requests shutdown.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
