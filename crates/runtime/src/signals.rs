//! Termination signals.

use std::io;

/// Name of the signal with which the kubelet stops a container.
pub(crate) const TERMINATE: &str = "SIGTERM";

/// Handles SIGTERM and SIGINT. No signal is missed once this exists.
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn install() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for a signal and returns its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => TERMINATE,
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {})
    }

    pub(crate) async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without a handler, there's nothing to wait for.
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
