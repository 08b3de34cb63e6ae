//! A state of the project folder that no command was changing.
//!
//! A command that writes creates the journal in the project folder and removes it again, and each of the two changes
//! the folder's own status. So a folder whose status is the same after all files were read as before, when no
//! journal was there, held one state all the time: nobody has to be locked out for a look.

#![allow(clippy::disallowed_methods)] // the clock decides how long to wait, never what is written

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::disk::Folder;

/// File systems write times of the kernel's clock, which ticks every 10 ms or more often: two changes within a tick
/// look the same. Those that keep whole seconds only are not waited for.
const TICK: Duration = Duration::from_millis(20);

/// How often a status is taken anew because the folder has changed just now once more.
const MOST_LOOKS: usize = 5;

/// The status of a project folder at one time.
#[derive(Debug)]
pub(crate) struct Moment {
    root: PathBuf,
    status: Option<(u64, i128)>,
    /// The last change was so long ago that a further one gives another status.
    is_settled: bool,
}

impl Moment {
    /// Takes the status of a folder. Waits for the clock to tick where the last change was just now.
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

    /// Takes the status of a folder without waiting. Where the last change was just now, the moment never holds.
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

    /// Returns `true` where the folder is certainly as it was.
    pub(crate) fn holds(&self) -> bool {
        self.is_settled && !self.has_passed()
    }

    /// Returns `true` where the folder is certainly not as it was.
    pub(crate) fn has_passed(&self) -> bool {
        look(&self.root) != self.status
    }
}

fn look(root: &Path) -> Option<(u64, i128)> {
    let status = Folder::open(root).ok()?.status().ok()?;
    Some((status.inode, status.changed))
}
