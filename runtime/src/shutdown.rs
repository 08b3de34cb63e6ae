//! Asking tasks to end: one [`Stop`] to say it, any number of [`Shutdown`]s to hear it.

use tokio::sync::watch;

/// Says that it is time to end; dropping it says so too.
pub(crate) struct Stop(watch::Sender<bool>);

/// Hears when it is time to end. Clones hear the same.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

pub(crate) fn channel() -> (Stop, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Stop(sender), Shutdown(receiver))
}

impl Stop {
    pub(crate) fn now(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Resolves when it is time to end.
    pub async fn requested(mut self) {
        // An error means that the `Stop` is gone, which is as good as having been told.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
