//! Detects source changes. After a file system event, contents are compared to find out whether
//! anything changed.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::tree::{Snapshot, watched_folders};

/// Debounce time. Editors write several files at once, so a series of events ends after this time
/// without any.
const QUIET: Duration = Duration::from_millis(200);

/// Interval at which contents are compared without events.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Watch {
    root: PathBuf,
    seen: Snapshot,
    events: Option<Events>,
}

struct Events {
    watcher: RecommendedWatcher,
    received: Receiver<Change>,
    /// Watched directories.
    folders: Vec<PathBuf>,
}

enum Change {
    Other,
    /// These paths were removed or renamed. A directory that replaces one of them isn't watched yet.
    Gone(Vec<PathBuf>),
    /// Events were lost.
    Lost,
}

impl Watch {
    /// Starts watching. If events are unavailable, falls back to polling and also returns the
    /// reason.
    pub(super) fn start(root: &Path, polls: bool) -> (Watch, Option<notify::Error>) {
        let (events, reason) = match polls {
            true => (None, None),
            false => match Events::start(root) {
                Ok(events) => (Some(events), None),
                Err(reason) => (None, Some(reason)),
            },
        };
        let watch = Watch {
            root: root.to_owned(),
            seen: Snapshot::take(root),
            events,
        };
        (watch, reason)
    }

    pub(super) fn accept(&mut self, paths: &[String]) {
        if !paths.is_empty() {
            self.seen.accept(paths, &Snapshot::take(&self.root));
        }
    }

    /// Waits up to `time` for events. Returns the paths of changed files, or none if the contents
    /// are unchanged.
    pub(super) fn changes_within(&mut self, time: Duration) -> Vec<String> {
        if let Some(events) = &mut self.events {
            if !events.come_within(time) {
                return Vec::new();
            }
        } else {
            std::thread::sleep(POLL_INTERVAL);
        }
        // Fall back to polling if a directory can't be watched, or its changes would go unnoticed.
        if self
            .events
            .as_mut()
            .is_some_and(|events| events.watch_folders(&self.root).is_err())
        {
            self.events = None;
        }
        let now = Snapshot::take(&self.root);
        let changed = now
            .changed_since(&self.seen)
            .into_iter()
            .map(str::to_owned)
            .collect();
        self.seen = now;
        changed
    }
}

impl Events {
    fn start(root: &Path) -> notify::Result<Events> {
        let (sender, received) = channel();
        let mut watcher = notify::recommended_watcher(move |event| send(event, &sender))?;
        watcher.watch(root, RecursiveMode::NonRecursive)?;
        let mut events = Events {
            watcher,
            received,
            folders: Vec::new(),
        };
        events.watch_folders(root)?;
        Ok(events)
    }

    fn watch_folders(&mut self, root: &Path) -> notify::Result<()> {
        let folders = watched_folders(root);
        self.folders.retain(|folder| folders.contains(folder));
        for folder in folders {
            if !self.folders.contains(&folder) {
                // Fails unless the system still watches a directory that had this path.
                let _ = self.watcher.unwatch(&folder);
                // The root isn't watched recursively: its build output has more directories than
                // some systems can watch.
                self.watcher.watch(&folder, RecursiveMode::Recursive)?;
                self.folders.push(folder);
            }
        }
        Ok(())
    }

    fn note(&mut self, change: Change) {
        match change {
            Change::Other => {}
            Change::Gone(paths) => self.folders.retain(|folder| !paths.contains(folder)),
            Change::Lost => self.folders.clear(),
        }
    }

    /// Whether events arrive within `time`. If so, waits until they stop.
    fn come_within(&mut self, time: Duration) -> bool {
        match self.received.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => false,
            // The watcher is gone; poll the contents instead.
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(POLL_INTERVAL);
                true
            }
            Ok(change) => {
                self.note(change);
                while let Ok(change) = self.received.recv_timeout(QUIET) {
                    self.note(change);
                }
                true
            }
        }
    }
}

/// Forwards an event, except for file accesses.
fn send(event: notify::Result<notify::Event>, sender: &Sender<Change>) {
    let change = match event {
        Ok(event) if event.kind.is_access() => return,
        Ok(event) if event.need_rescan() => Change::Lost,
        Ok(event) => match event.kind {
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => Change::Gone(event.paths),
            _ => Change::Other,
        },
        // An error may mean that events were lost.
        Err(_) => Change::Lost,
    };
    let _ = sender.send(change);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // the tests act as the editor

    use std::time::Instant;

    use super::*;

    /// Waits until a change is reported, even on a slow machine.
    fn next_change(watch: &mut Watch) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            let changed = watch.changes_within(Duration::from_millis(100));
            if !changed.is_empty() {
                return changed;
            }
        }
        panic!("no change was reported");
    }

    #[test]
    fn reports_edits_but_not_own_writes() {
        for polls in [false, true] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = |name: &str| folder.path().join(name);
            std::fs::create_dir_all(path("src/api")).expect("a folder");
            std::fs::create_dir_all(path("config")).expect("a folder");
            std::fs::write(path("src/api/a.rs"), "a").expect("a file");
            let (mut watch, reason) = Watch::start(folder.path(), polls);
            assert!(reason.is_none(), "{reason:?}");

            std::fs::write(path("config/crd.yaml"), "a").expect("a file");
            watch.accept(&["config/crd.yaml".to_owned()]);
            std::fs::write(path("src/api/a.rs"), "b").expect("a file");
            assert_eq!(next_change(&mut watch), ["src/api/a.rs"]);

            // Rewriting the same content is not a change; only the next one is reported.
            std::fs::write(path("src/api/a.rs"), "b").expect("a file");
            std::fs::write(path("Cargo.toml"), "").expect("a file");
            assert_eq!(next_change(&mut watch), ["Cargo.toml"]);
        }
    }

    /// Some editors and scripts replace whole directories.
    #[test]
    fn replaced_directory_is_still_watched() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("src/api")).expect("a folder");
        std::fs::write(path("src/api/a.rs"), "a").expect("a file");
        let (mut watch, reason) = Watch::start(folder.path(), false);
        assert!(reason.is_none(), "{reason:?}");
        for round in ["b", "c"] {
            std::fs::remove_dir_all(path("src")).expect("a folder");
            std::fs::create_dir_all(path("src/api")).expect("a folder");
            std::fs::write(path("src/api/a.rs"), round).expect("a file");
            assert_eq!(next_change(&mut watch), ["src/api/a.rs"]);
        }
        std::fs::rename(path("src"), path("old")).expect("a folder");
        std::fs::create_dir_all(path("src/api")).expect("a folder");
        std::fs::write(path("src/api/a.rs"), "d").expect("a file");
        next_change(&mut watch);
        for text in ["e", "f"] {
            std::fs::write(path("src/api/a.rs"), text).expect("a file");
            assert_eq!(next_change(&mut watch), ["src/api/a.rs"]);
        }
    }
}
