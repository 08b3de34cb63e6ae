//! Changes the level and format of the log while the process runs.

use std::sync::{Mutex, OnceLock, PoisonError};

use tracing_subscriber::{EnvFilter, reload};

use super::lines::CurrentFormat;
use super::{expand_level, parse_filter};
use crate::args::LogFormat;

/// Control of this process's log, if [`init_logging`](super::init_logging) has set it up.
static CONTROL: OnceLock<LogControl> = OnceLock::new();

/// Changes the log.
pub(crate) struct LogControl {
    /// The level or filter as the user specified it.
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

    /// Makes this the control of the process's log.
    pub(super) fn install(self) {
        // A second control would belong to a second subscriber, which cannot be installed.
        let _ = CONTROL.set(self);
    }

    /// Returns the control of this process's log, or `None` if the operator installed its own
    /// subscriber.
    pub(crate) fn of_process() -> Option<&'static Self> {
        CONTROL.get()
    }

    /// Returns the level or filter.
    pub(crate) fn level(&self) -> String {
        self.level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets a level or filter, like `--log-level`.
    ///
    /// # Errors
    /// Returns the problem and the expected values.
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
