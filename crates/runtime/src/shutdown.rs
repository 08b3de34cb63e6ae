//! Shutdown signals. A [`Stop`] notifies any number of [`Shutdown`]s.

use tokio::sync::watch;

/// Requests a shutdown, also when dropped.
pub(crate) struct Stop(watch::Sender<bool>);

/// Receives a shutdown signal, see [`Task`](crate::Task). All clones are notified.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

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
    /// Waits until a shutdown is requested.
    pub async fn requested(mut self) {
        // Only fails if the `Stop` was dropped, which is a request as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
