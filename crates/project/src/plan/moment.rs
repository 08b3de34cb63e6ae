//! Detects commands that run while the project directory is being read.
//!
//! A writing command creates the journal in the project directory and removes it again, and both
//! change the directory's status. So if the status is the same before and after reading, and there
//! was no journal before, no command wrote in between. Therefore, readers need no lock.
//!
//! We only print an error, or the message that there is nothing to do, if no other command wrote in
//! between. Otherwise the command starts over. Before a plan is applied, everything that was read,
//! including source, is compared with the disk again under the lock.

#![allow(clippy::disallowed_methods)] // the clock decides how long to wait, and does not affect output

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::disk::Folder;

/// File systems take timestamps from the kernel's clock, which ticks at least every 10 ms, so two
/// changes within a tick have the same timestamp. We don't support file systems with a granularity
/// of seconds.
const TICK: Duration = Duration::from_millis(20);

/// How often we read the status again after a recent change.
const MOST_LOOKS: usize = 5;

/// The status of a project directory at one point in time.
#[derive(Debug)]
pub struct Moment {
    root: PathBuf,
    status: Option<(u64, i128)>,
    /// True if the last change is old enough for a new change to get a different timestamp.
    is_settled: bool,
}

impl Moment {
    /// Reads the status of a directory. After a recent change, waits for the next tick of the
    /// clock.
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

    /// Reads the status of a directory without waiting. After a recent change, [`Moment::holds`]
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

    /// Whether the directory cannot have changed since.
    pub fn holds(&self) -> bool {
        self.is_settled && !self.has_passed()
    }

    /// Whether the directory has changed since.
    pub fn has_passed(&self) -> bool {
        look(&self.root) != self.status
    }
}

fn look(root: &Path) -> Option<(u64, i128)> {
    let status = Folder::open(root).ok()?.status().ok()?;
    Some((status.inode, status.changed))
}
