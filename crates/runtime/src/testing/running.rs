//! Runs a manager in the background of a test.

use std::fmt;
use std::thread;

use futures::FutureExt;
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::manager::Manager;
use crate::shutdown::{Stop, new_shutdown};

/// Starts the manager in the background, using the runtime of the test.
///
/// ```no_run
/// # async fn test(manager: rbuilder::Manager) {
/// let running = rbuilder::testing::run(manager);
/// // … create objects, and check what the operator does …
/// running.stop().await;
/// # }
/// ```
///
/// # Panics
///
/// Panics if called from outside of a tokio runtime.
pub fn run(manager: Manager) -> Running {
    let (stop, asked) = new_shutdown();
    let ended = tokio::spawn(manager.start_until(asked.requested()));
    Running {
        stop,
        ended: Some(ended),
    }
}

/// A manager started with [`run`]. Dropping it stops the manager and ignores its result.
#[must_use = "dropping it stops the manager"]
pub struct Running {
    stop: Stop,
    /// Taken by `stop`.
    ended: Option<JoinHandle<Result<(), Error>>>,
}

impl Running {
    /// Stops the manager (as SIGTERM would) and waits for it to exit.
    ///
    /// # Panics
    ///
    /// Panics if the manager returns an error, or has exited before this was called.
    #[track_caller]
    pub fn stop(mut self) -> impl Future<Output = ()> {
        self.stop.now();
        let caller = std::panic::Location::caller();
        async move {
            let Some(ended) = self.ended.take() else { return };
            match ended.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => panic!("{caller}: the manager ended with an error: {error:#}"),
                Err(error) => panic!("{caller}: the manager panicked: {error}"),
            }
        }
    }

    /// Returns `true` if the manager has exited on its own.
    pub fn has_ended(&self) -> bool {
        self.ended.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.now();
        // A test that waits for an exited manager will time out. Print the cause to make debugging
        // easier.
        if thread::panicking()
            && let Some(ended) = self.ended.take().filter(JoinHandle::is_finished)
            && let Some(Ok(Err(error))) = ended.now_or_never()
        {
            #[allow(clippy::disallowed_macros)] // tests have no subscriber; this is part of their message
            {
                eprintln!("the manager of this test had ended with an error: {error:#}");
            }
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = self.has_ended();
        f.debug_struct("Running").field("ended", &ended).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManagerArgs;
    use kube::{Client, Config};

    fn manager(args: ManagerArgs) -> Manager {
        let nowhere = Config::new("http://127.0.0.1:9".parse().expect("a URL"));
        let client = Client::try_from(nowhere).expect("a client that nobody asks");
        Manager::with_client("running", client, args)
    }

    #[tokio::test]
    async fn manager_runs_until_it_is_stopped() {
        let running = run(manager(ManagerArgs::for_tests()));
        tokio::task::yield_now().await;
        assert!(!running.has_ended());
        running.stop().await;
    }

    #[tokio::test]
    #[should_panic(expected = "the manager ended with an error: failed to start the health probe server")]
    async fn stop_reports_why_the_manager_ended() {
        let args = ManagerArgs {
            health_probe_bind_address: "nowhere".to_owned(),
            ..ManagerArgs::for_tests()
        };
        let running = run(manager(args));
        while !running.has_ended() {
            tokio::task::yield_now().await;
        }
        running.stop().await;
    }
}
