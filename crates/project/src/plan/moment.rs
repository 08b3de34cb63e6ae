//! Detects commands that write while the project directory is being read.
//!
//! A writing command creates the journal in the project directory and removes it again; both change
//! the directory's status. So if there was no journal before reading, and the status is the same
//! afterwards, no command wrote in between. Readers therefore need no lock.
//!
//! An error, or the message that there is nothing to do, is only printed if no other command wrote
//! meanwhile. Otherwise the command starts over. Before a plan is applied, everything that was
//! read, including source, is compared with the disk again under the lock.

#![allow(clippy::disallowed_methods)] // the clock decides how long to wait, and does not affect output

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::disk::Folder;

/// File systems take timestamps from the kernel's clock, which ticks at least every 10 ms, so
/// changes within a tick can't be told apart. File systems with a granularity of seconds aren't
/// supported.
const TICK: Duration = Duration::from_millis(20);

/// Maximum number of reads of the status after a recent change.
const MOST_LOOKS: usize = 5;

/// The status of a project directory at one point in time.
#[derive(Debug)]
pub struct Moment {
    root: PathBuf,
    status: Option<(u64, i128)>,
    /// Whether the last change is old enough for a new change to get a different timestamp.
    is_settled: bool,
}

impl Moment {
    /// Reads the status of a directory. After a recent change, this waits for the next clock tick.
    pub fn take(root: &Path) -> Moment {
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

    /// Reads the status of a directory without waiting. If it changed recently, [`Moment::holds`]
    /// always returns false.
    pub fn glance(root: &Path) -> Moment {
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

    /// Whether the directory is guaranteed to be unchanged since.
    pub fn holds(&self) -> bool {
        self.is_settled && !self.has_passed()
    }

    /// Whether the directory has definitely changed since.
    pub fn has_passed(&self) -> bool {
        look(&self.root) != self.status
    }
}

fn look(root: &Path) -> Option<(u64, i128)> {
    let status = Folder::open(root).ok()?.status().ok()?;
    Some((status.inode, status.changed))
}
