//! Changes the level and the format of the log at runtime.

use std::sync::{Mutex, OnceLock, PoisonError};

use tracing_subscriber::{EnvFilter, reload};

use super::lines::CurrentFormat;
use super::{expand_level, parse_filter};
use crate::args::LogFormat;

/// The control for the log of this process, provided that [`init_logging`](super::init_logging) has
/// set it up.
static CONTROL: OnceLock<LogControl> = OnceLock::new();

/// Changes the level and the format of a log.
pub(crate) struct LogControl {
    /// The level or filter specified by the user.
    level: Mutex<String>,
    reload: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>,
    format: CurrentFormat,
}

impl LogControl {
    pub(super) fn new<S: 'static>(
        level: String,
        filter: reload::Handle<EnvFilter, S>,
        format: CurrentFormat,
    ) -> Self {
        Self {
            level: Mutex::new(level),
            reload: Box::new(move |new| filter.reload(new)),
            format,
        }
    }

    /// Installs this as the control of the process.
    pub(super) fn install(self) {
        // If another one is installed, then this means our subscriber was not installed either.
        let _ = CONTROL.set(self);
    }

    /// Returns the control of this process. If the operator has installed its own subscriber,
    /// returns `None`.
    pub(crate) fn of_process() -> Option<&'static Self> {
        CONTROL.get()
    }

    /// Returns the current level or filter.
    pub(crate) fn level(&self) -> String {
        self.level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the level or filter, using the same syntax as `--log-level`.
    ///
    /// # Errors
    ///
    /// Returns a description of the invalid value, and what would be valid here.
    pub(crate) fn set_level(&self, level: &str) -> Result<(), String> {
        let filter = parse_filter(&expand_level(level))?;
        let mut current = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        (self.reload)(filter).map_err(|error| error.to_string())?;
        level.clone_into(&mut current);
        Ok(())
    }

    pub(crate) fn format(&self) -> LogFormat {
        self.format.get()
    }

    pub(crate) fn set_format(&self, format: LogFormat) {
        self.format.set(format);
    }
}
