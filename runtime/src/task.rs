//! Work beside the controllers: pollers, servers, clean-ups that want the manager's start, stop and election.

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::error::{BoxError, Error};
use crate::shutdown::Shutdown;

/// What a task does until it is told to end.
type Work = Box<dyn FnOnce(Shutdown) -> BoxFuture<'static, Result<(), Error>> + Send>;

/// Something that a [`Manager`](crate::Manager) runs beside its controllers: controller-runtime's `Runnable`.
///
/// It starts when the caches are filled and this process leads, or does without leader election, and is told to end
/// together with the controllers, with the same grace. A task may end early; one that fails or panics stops the manager
/// with an error that names it.
///
/// ```no_run
/// # use std::time::Duration;
/// # use rbuilder::{Error, Manager, ManagerArgs, Result, Task};
/// # async fn sweep() -> Result<(), Error> { Ok(()) }
/// # async fn run() -> Result<()> {
/// let sweeper = Task::new("sweeper", |shutdown| async move {
///     let mut hourly = tokio::time::interval(Duration::from_secs(3600));
///     loop {
///         tokio::select! {
///             _ = hourly.tick() => sweep().await?,
///             () = shutdown.clone().requested() => return Ok::<_, Error>(()),
///         }
///     }
/// });
/// Manager::new("da1d9c86.example.com", ManagerArgs::default()).await?.task(sweeper).start().await
/// # }
/// ```
#[must_use = "hand it to `Manager::task`"]
pub struct Task {
    name: String,
    work: Work,
    everywhere: bool,
}

impl Task {
    /// A task of this name, which stands in logs and errors. `work` gets what tells it to end.
    pub fn new<F, Fut, E>(name: impl Into<String>, work: F) -> Self
    where
        F: FnOnce(Shutdown) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let work = |shutdown| {
            let working = work(shutdown);
            async move { working.await.map_err(Error::new) }.boxed()
        };
        Self {
            name: name.into(),
            work: Box::new(work),
            everywhere: false,
        }
    }

    /// Runs it in every replica, leading or not, as soon as the caches are filled.
    pub fn on_every_replica(mut self) -> Self {
        self.everywhere = true;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn runs_everywhere(&self) -> bool {
        self.everywhere
    }

    /// The work, which ends when it fails or when it is told to: a task that is done keeps its place until then.
    pub(crate) fn run(self, shutdown: Shutdown) -> BoxFuture<'static, Result<(), Error>> {
        let working = (self.work)(shutdown.clone());
        async move {
            working.await?;
            shutdown.requested().await;
            Ok(())
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shutdown;

    #[tokio::test]
    async fn a_task_that_is_done_stays_until_it_is_told_to_end() {
        let (stop, shutdown) = shutdown::channel();
        let task = Task::new("once", |_| async { Ok::<_, Error>(()) });
        let mut running = task.run(shutdown);
        assert!((&mut running).now_or_never().is_none());
        stop.now();
        assert!(running.await.is_ok());
    }

    #[tokio::test]
    async fn a_task_that_fails_ends_at_once() {
        let (_stop, shutdown) = shutdown::channel();
        let task = Task::new("sweeper", |_| async { Err("no broom") });
        assert_eq!(task.run(shutdown).await.unwrap_err().to_string(), "no broom");
    }
}
