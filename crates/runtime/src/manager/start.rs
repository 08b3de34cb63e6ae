//! Runs a manager until a signal arrives or a future resolves.

use std::time::Duration;

use super::Manager;
use super::run::{METRICS, OnLoss, Run};
use crate::debug::add_endpoints;
use crate::error::{Error, ManagerError};
use crate::open_files::raise_limit;
use crate::shutdown::new_shutdown;
use crate::signals::Signals;
use crate::webhook::Routes;

impl Manager {
    /// Runs until SIGTERM or SIGINT, then waits for running reconciles to finish.
    ///
    /// A second signal makes the process exit immediately with status 1. So does losing the lease,
    /// after a second: by then, reconciles and tasks have been cancelled, this function has
    /// returned the error, and `main` should have ended, unless something blocks its thread. The
    /// process does not wait any longer, because the next leader may already be acting.
    ///
    /// Raises the soft limit on open files to the hard limit.
    ///
    /// Starting consumes the manager: it cannot be started twice, and nothing can be added to it afterwards.
    ///
    /// ```compile_fail,E0382
    /// # use rbuilder::{Manager, Result};
    /// # async fn run(manager: Manager) -> Result<()> {
    /// manager.start().await?;
    /// manager.start().await
    /// # }
    /// ```
    /// ```compile_fail,E0382
    /// # use rbuilder::{Manager, Result, Task};
    /// # async fn run(manager: Manager, task: Task) -> Result<()> {
    /// let running = manager.start();
    /// manager.task(task);
    /// running.await
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`ManagerError`]. The caller should exit with a non-zero status.
    pub async fn start(self) -> Result<(), Error> {
        let mut signals = Signals::install()?;
        raise_limit();
        let (stop, shutdown) = new_shutdown();
        let second_signal = async {
            let signal = signals.next().await;
            tracing::info!(%signal, "received shutdown signal, stopping; send it again to exit immediately");
            stop.now();
            signals.next().await
        };
        tokio::select! {
            ended = self.run(shutdown.requested(), OnLoss::Exit) => ended,
            signal = second_signal => {
                tracing::warn!(%signal, "received second shutdown signal, exiting");
                std::process::exit(1)
            }
        }
    }

    /// Runs until `stop` resolves, then waits for running reconciles to finish.
    ///
    /// Unlike [`start`](Self::start), it never exits the process, which a test or another component
    /// may share. When the lease is lost, it returns the error once all reconciles and tasks have
    /// been cancelled. A task that blocks its thread cannot be cancelled and delays the return; its
    /// writes are refused in the meantime.
    ///
    /// # Errors
    /// See [`ManagerError`].
    pub async fn start_until(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        self.run(stop, OnLoss::Return).await
    }

    async fn run(mut self, stop: impl Future<Output = ()>, on_loss: OnLoss) -> Result<(), Error> {
        self.check_controllers()?;
        self.args.check(cfg!(feature = "http2"))?;
        if self.args.leader_elect && self.args.shards.is_some() {
            return Err(ManagerError::ShardsWithLeader.into());
        }
        if let Some(error) = self.routes.first_error() {
            return Err(ManagerError::Webhook(error.to_owned()).into());
        }
        if self.args.enable_debug_endpoints {
            add_endpoints(&mut self.metrics_handlers, &self.debug, self.args.metrics_secure);
        }
        if let Some(error) = self.metrics_handlers.first_error() {
            return Err(ManagerError::Server {
                server: METRICS,
                reason: error.to_owned(),
            }
            .into());
        }
        if !self.args.enable_webhooks {
            self.routes = Routes::default();
        }
        self.lease.check()?;
        let grace = self.grace;
        let mut run = Run::prepare(self, on_loss);
        let ended = tokio::select! {
            biased;
            failure = run.run_until_failure() => Err(failure),
            () = stop => Ok(()),
        };
        let grace = match &ended {
            // Another process may already be reconciling, so there is no grace period.
            Err(ManagerError::LeaderElectionLost(_) | ManagerError::ShardsLost(_)) => Duration::ZERO,
            _ => grace,
        };
        let stopped = run.shut_down(grace).await;
        Ok(ended.and(stopped)?)
    }

    fn check_controllers(&self) -> Result<(), ManagerError> {
        if let Some(name) = &self.duplicate_cluster {
            return Err(ManagerError::DuplicateCluster(name.clone()));
        }
        let mut names: Vec<&str> = self
            .controllers
            .iter()
            .map(|controller| controller.name())
            .collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ManagerError::DuplicateController(pair[0].to_owned())),
            None => self
                .controllers
                .iter()
                .try_for_each(|controller| controller.check()),
        }
    }
}
