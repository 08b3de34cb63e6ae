//! Ensures that server processes and temporary files don't outlive this process, where the system
//! permits.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::{Watchdog, sweep};
#[cfg(unix)]
pub(crate) use unix::{Watchdog, sweep};

/// Prefix by which the next start finds abandoned directories.
pub(crate) const PREFIX: &str = "rbuilder-envtest-";
