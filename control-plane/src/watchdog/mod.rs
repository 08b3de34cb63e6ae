//! The guarantee that no process and no file outlives this process, where the system has what it takes.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::{Watchdog, sweep};
#[cfg(unix)]
pub(crate) use unix::{Watchdog, sweep};

/// Prefix of the names of workspace folders, by which the next start finds them.
pub(crate) const PREFIX: &str = "rbuilder-envtest-";
