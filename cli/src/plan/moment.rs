//! Detection of commands that run while the project directory is being read.
//!
//! A command that writes creates the journal in the project directory and removes it again, and both change the status
//! of the directory. So if its status is the same before and after reading, and there was no journal before, no command
//! wrote in between. Readers need no lock.

#![allow(clippy::disallowed_methods)] // the clock decides how long to wait, never what is written

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::disk::Folder;

/// Granularity of timestamps. File systems use the kernel's clock, which ticks at least every 10 ms: two changes within
/// a tick have the same timestamp. File systems with whole seconds are not supported.
const TICK: Duration = Duration::from_millis(20);

/// Number of times to read the status again because the directory has just changed.
const MOST_LOOKS: usize = 5;

/// The status of a project directory at one time.
#[derive(Debug)]
pub(crate) struct Moment {
    root: PathBuf,
    status: Option<(u64, i128)>,
    /// True if the last change was long enough ago for another change to have another timestamp.
    is_settled: bool,
}

impl Moment {
    /// Reads the status of a directory. Waits for a tick of the clock if the directory has just changed.
    pub(crate) fn take(root: &Path) -> Moment {
        let mut moment = Moment::glance(root);
        for _ in 0..MOST_LOOKS {
            if moment.is_settled {
                break;
            }
            std::thread::sleep(TICK);
            moment = Moment::glance(root);
        }
        moment
    }

    /// Reads the status of a directory without waiting. If it has just changed, [`Moment::holds`] is always false.
    pub(crate) fn glance(root: &Path) -> Moment {
        let status = look(root);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
        let tick = i128::try_from(TICK.as_nanos()).unwrap_or(0);
        Moment {
            root: root.to_owned(),
            status,
            is_settled: status.is_none_or(|(_, changed)| (now - changed).abs() >= tick),
        }
    }

    /// Returns true if the directory has certainly not changed.
    pub(crate) fn holds(&self) -> bool {
        self.is_settled && !self.has_passed()
    }

    /// Returns true if the directory has certainly changed.
    pub(crate) fn has_passed(&self) -> bool {
        look(&self.root) != self.status
    }
}

fn look(root: &Path) -> Option<(u64, i128)> {
    let status = Folder::open(root).ok()?.status().ok()?;
    Some((status.inode, status.changed))
}
