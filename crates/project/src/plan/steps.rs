//! Steps that change the project directory, and fault injection for them.

use anyhow::{Result, bail};

/// Faults to inject in tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Index of the failing step, or `None` for no fault.
    pub at: Option<usize>,
    /// Whether the process aborts at that step, as if by `kill -9`.
    pub abort: bool,
}

#[derive(Default)]
pub(super) struct Steps {
    pub(super) faults: Faults,
    pub(super) taken: usize,
}

impl Steps {
    pub(super) fn take(&mut self, what: &str) -> Result<()> {
        let step = self.taken;
        self.taken += 1;
        if self.faults.at == Some(step) {
            if self.faults.abort {
                std::process::abort();
            }
            bail!("step {step} ({what}) was made to fail");
        }
        Ok(())
    }

    /// Counts a step that cannot fail but may be interrupted.
    pub(super) fn pass(&mut self) {
        if self.faults.abort && self.faults.at == Some(self.taken) {
            std::process::abort();
        }
        self.taken += 1;
    }
}
