//! Ensures that no server process and no temporary file outlives this process, on systems that
//! allow it.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::{Watchdog, sweep};
#[cfg(unix)]
pub(crate) use unix::{Watchdog, sweep};

/// The next start finds abandoned folders by this prefix.
pub(crate) const PREFIX: &str = "rbuilder-envtest-";
