//! Changes the level and the format of the log at runtime.

use std::sync::{Mutex, OnceLock, PoisonError};

use tracing_subscriber::{EnvFilter, reload};

use super::lines::CurrentFormat;
use super::{expand_level, parse_filter};
use crate::args::LogFormat;

/// Only set if [`init_logging`](super::init_logging) has set up the log of this process.
static CONTROL: OnceLock<LogControl> = OnceLock::new();

pub(crate) struct LogControl {
    /// The level as specified by the user.
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

    pub(super) fn install(self) {
        // If this is already set, our subscriber wasn't installed either.
        let _ = CONTROL.set(self);
    }

    /// `None` if the operator has installed its own subscriber.
    pub(crate) fn of_process() -> Option<&'static Self> {
        CONTROL.get()
    }

    pub(crate) fn level(&self) -> String {
        self.level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Accepts the same syntax as `--log-level`. The error describes what would be valid.
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
