//! Groups of tasks that are started and stopped together.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use crate::error::{Error, ManagerError};

/// The tasks of a startup phase, with their names. Dropping a phase cancels them.
#[derive(Default)]
pub(crate) struct Phase {
    tasks: JoinSet<Result<(), Error>>,
    names: HashMap<Id, String>,
    /// Tasks that may exit at any time.
    finite: HashSet<Id>,
}

impl Phase {
    pub(crate) fn spawn(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        let id = self.tasks.spawn(task).id();
        self.names.insert(id, name.into());
    }

    pub(crate) fn spawn_finite(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        let id = self.tasks.spawn(task).id();
        self.names.insert(id, name.into());
        self.finite.insert(id);
    }

    /// Waits until a task fails. Exiting counts as a failure too, unless the task is finite or the
    /// phase is [finishing](Self::finish).
    pub(crate) async fn failed(&mut self) -> ManagerError {
        loop {
            let Some(ended) = self.tasks.join_next_with_id().await else {
                // Nothing can fail without any tasks.
                return std::future::pending().await;
            };
            let is_finite = matches!(&ended, Ok((id, _)) if self.finite.remove(id));
            match self.failure_of(ended) {
                Ok(failure) => return failure,
                Err(_) if is_finite => {}
                Err(part) => {
                    return ManagerError::Part {
                        part,
                        reason: "exited unexpectedly".to_owned(),
                    };
                }
            }
        }
    }

    /// Waits for all tasks to exit after they were asked to stop. Cancels tasks that are still
    /// running at `deadline`.
    ///
    /// Returns the error of the first task that fails; otherwise the names of the tasks that were
    /// cancelled.
    pub(crate) async fn finish(&mut self, deadline: Instant, grace: Duration) -> Result<(), ManagerError> {
        let mut first = Ok(());
        loop {
            match tokio::time::timeout_at(deadline, self.tasks.join_next_with_id()).await {
                Ok(None) => return first,
                Ok(Some(ended)) => {
                    if let Ok(error) = self.failure_of(ended) {
                        first = first.and(Err(error));
                    }
                }
                Err(_) => {
                    self.tasks.shutdown().await;
                    // Tasks lose their name when they exit, so the remaining names are those of
                    // cancelled tasks.
                    return first.and(Err(ManagerError::GracePeriod {
                        parts: self.running_names(),
                        grace,
                    }));
                }
            }
        }
    }

    /// Cancels all tasks and waits until they are dropped.
    pub(crate) async fn abort(&mut self) {
        self.tasks.shutdown().await;
    }

    /// Returns the error of an exited task, or its name as `Err` if it didn't fail.
    fn failure_of(
        &mut self,
        ended: Result<(Id, Result<(), Error>), JoinError>,
    ) -> Result<ManagerError, String> {
        let (id, reason) = match ended {
            Ok((id, Ok(()))) => (id, None),
            Ok((id, Err(error))) => (id, Some(format!("{error:#}"))),
            Err(error) => (error.id(), Some(error.to_string())),
        };
        let part = self
            .names
            .remove(&id)
            .unwrap_or_else(|| "a task of the manager".to_owned());
        match reason {
            Some(reason) => Ok(ManagerError::Part { part, reason }),
            None => Err(part),
        }
    }

    fn running_names(&self) -> String {
        let mut names: Vec<&str> = self.names.values().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn failure_of(task: impl Future<Output = Result<(), Error>> + Send + 'static) -> String {
        let mut phase = Phase::default();
        phase.spawn("idle", std::future::pending());
        phase.spawn("probes", task);
        phase.failed().await.to_string()
    }

    #[tokio::test]
    async fn exited_task_is_named() {
        assert_eq!(
            failure_of(async { Ok(()) }).await,
            "probes stopped: exited unexpectedly"
        );
        assert_eq!(
            failure_of(async { Err(Error::new("no port")) }).await,
            "probes stopped: no port"
        );
        let panicked = failure_of(async { panic!("oops") }).await;
        assert!(
            panicked.starts_with("probes stopped: task ") && panicked.contains("oops"),
            "{panicked}"
        );
    }

    #[tokio::test]
    async fn finite_task_may_exit_but_not_fail() {
        let mut phase = Phase::default();
        phase.spawn_finite("a", async { Ok(()) });
        phase.spawn_finite("b", async { Err(Error::new("no port")) });
        assert_eq!(phase.failed().await.to_string(), "b stopped: no port");
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_task_is_cancelled_and_named_after_the_grace_period() {
        let grace = Duration::from_secs(30);
        let mut phase = Phase::default();
        phase.spawn("controller b", std::future::pending());
        phase.spawn("controller b", std::future::pending());
        phase.spawn("controller a", async { Ok(()) });
        let started = Instant::now();
        let error = phase.finish(started + grace, grace).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "controller b did not stop within the grace period of 30 s"
        );
        assert_eq!(started.elapsed(), grace);
        assert!(phase.tasks.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_may_exit_within_the_grace_period() {
        let mut phase = Phase::default();
        phase.spawn("a", async {
            tokio::time::sleep(Duration::from_secs(29)).await;
            Ok(())
        });
        let grace = Duration::from_secs(30);
        assert!(phase.finish(Instant::now() + grace, grace).await.is_ok());
    }
}
