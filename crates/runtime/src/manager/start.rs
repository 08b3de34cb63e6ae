//! Runs a manager until there is a signal or a future resolves.

use std::time::Duration;

use futures::FutureExt;
use tokio::sync::oneshot;

use super::Manager;
use super::run::{METRICS, OnLoss, Run};
use crate::debug::add_endpoints;
use crate::error::{Error, ManagerError};
use crate::open_files::raise_limit;
use crate::signals::{Signals, TERMINATE};
use crate::webhook::Routes;

/// Default for [`Manager::webhook_shutdown_delay`] after SIGTERM. Nodes usually notice within a
/// second that a Pod is terminating.
const WEBHOOK_DELAY: Duration = Duration::from_secs(5);

impl Manager {
    /// Runs the manager until SIGTERM or SIGINT is received, then waits for reconciles to finish.
    /// Webhooks are served for at least five seconds after SIGTERM, see
    /// [`webhook_shutdown_delay`](Self::webhook_shutdown_delay).
    ///
    /// After a second signal, the process exits immediately with status 1. It also exits with
    /// status 1 one second after losing its lease. By then, all reconciles and tasks were
    /// cancelled, this function has returned an error, and `main` should have returned as well,
    /// unless something is blocking its thread. Waiting any longer isn't possible, because the next
    /// leader may already be active.
    ///
    /// Also raises the soft limit for open files to the hard limit.
    ///
    /// This consumes the manager: it cannot be started twice, and nothing can be added to it
    /// afterwards:
    ///
    /// ```compile_fail,E0382
    /// # use rbuilder::{Manager, Result};
    /// # async fn run(manager: Manager) -> Result<()> {
    /// manager.start().await?;
    /// manager.start().await
    /// # }
    /// ```
    ///
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
    ///
    /// See [`ManagerError`]. If this returns an error, the process should exit with a non-zero
    /// status.
    pub async fn start(self) -> Result<(), Error> {
        let mut signals = Signals::install()?;
        raise_limit();
        let (stop, stopped) = oneshot::channel();
        let second_signal = async {
            let signal = signals.next().await;
            tracing::info!(%signal, "received shutdown signal, stopping; send it again to exit immediately");
            // Fails only if the manager has already stopped.
            let _ = stop.send(match signal {
                TERMINATE => WEBHOOK_DELAY,
                // Sent by a developer, who doesn't want to wait.
                _ => Duration::ZERO,
            });
            signals.next().await
        };
        // The sender isn't dropped before the signal.
        let stopped = stopped.map(Result::unwrap_or_default);
        tokio::select! {
            ended = self.run(stopped, OnLoss::Exit) => ended,
            signal = second_signal => {
                tracing::warn!(%signal, "received second shutdown signal, exiting");
                std::process::exit(1)
            }
        }
    }

    /// Runs the manager until `stop` resolves, then waits for reconciles to finish.
    ///
    /// Unlike [`start`](Self::start), this never exits the process, which may be a test or have
    /// other things to do. If the lease is lost, an error is returned once all reconciles and tasks
    /// were cancelled. A task that blocks its thread can't be cancelled and delays this, but its
    /// writes are rejected.
    ///
    /// # Errors
    ///
    /// See [`ManagerError`].
    pub async fn start_until(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        self.run(stop.map(|()| Duration::ZERO), OnLoss::Return).await
    }

    /// `stop` returns the default for [`Manager::webhook_shutdown_delay`].
    async fn run(mut self, stop: impl Future<Output = Duration>, on_loss: OnLoss) -> Result<(), Error> {
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
        let (grace, webhook_delay) = (self.grace, self.webhook_delay);
        let mut run = Run::prepare(self, on_loss);
        let ended = tokio::select! {
            biased;
            failure = run.run_until_failure() => Err(failure),
            default_delay = stop => Ok(webhook_delay.unwrap_or(default_delay)),
        };
        // After a failure, the process should be restarted as soon as possible.
        let webhook_delay = *ended.as_ref().unwrap_or(&Duration::ZERO);
        let grace = match &ended {
            // Don't wait, because another process may have started to reconcile.
            Err(ManagerError::LeaderElectionLost(_) | ManagerError::ShardsLost(_)) => Duration::ZERO,
            _ => grace,
        };
        let stopped = run.shut_down(grace, webhook_delay).await;
        Ok(ended.and(stopped)?)
    }

    fn check_controllers(&self) -> Result<(), ManagerError> {
        if let Some(name) = &self.duplicate_cluster {
            return Err(ManagerError::DuplicateCluster(name.clone()));
        }
        // Two controllers must not continue with the same sets either.
        let names = self.controllers.iter().flat_map(|controller| {
            let former = controller.former_names().iter().map(String::as_str);
            std::iter::once(controller.name()).chain(former)
        });
        let mut names: Vec<&str> = names.collect();
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
