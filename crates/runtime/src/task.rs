//! Background tasks that are started and stopped together with the manager, and take part in leader
//! election, e.g. a server or a periodic cleanup.

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::error::{BoxError, Error};
use crate::shutdown::Shutdown;

type Work = Box<dyn FnOnce(Shutdown) -> BoxFuture<'static, Result<(), Error>> + Send>;

/// A background task run by a [`Manager`](crate::Manager), in addition to its controllers. Similar
/// to a `Runnable` in controller-runtime.
///
/// Tasks are started once all caches have synced and (unless leader election is disabled) this
/// process has become the leader. On shutdown, they're asked to stop at the same time as the
/// controllers, and have the same grace period. A task may finish early. If it fails or panics, the
/// manager stops with an error that contains the task's name.
///
/// If your task writes to the cluster, use
/// [`Manager::leader_client`](crate::Manager::leader_client), which rejects writes once the lease
/// is lost.
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
#[must_use = "pass it to `Manager::task`"]
pub struct Task {
    name: String,
    work: Work,
    everywhere: bool,
}

impl Task {
    /// Creates a task. Its name is used in logs and errors. `work` is passed a shutdown signal.
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

    /// Runs the task on all replicas, without waiting for leadership, as soon as the caches have
    /// synced.
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

    /// Runs the task. If it finishes early, keeps waiting for the shutdown, because the manager
    /// treats the exit of a component as an error.
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
    use crate::shutdown::new_shutdown;

    #[tokio::test]
    async fn finished_task_stays_pending_until_shutdown() {
        let (stop, shutdown) = new_shutdown();
        let task = Task::new("once", |_| async { Ok::<_, Error>(()) });
        let mut running = task.run(shutdown);
        assert!((&mut running).now_or_never().is_none());
        stop.now();
        assert!(running.await.is_ok());
    }

    #[tokio::test]
    async fn failed_task_exits_at_once() {
        let (_stop, shutdown) = new_shutdown();
        let task = Task::new("sweeper", |_| async { Err("no broom") });
        assert_eq!(task.run(shutdown).await.unwrap_err().to_string(), "no broom");
    }
}
