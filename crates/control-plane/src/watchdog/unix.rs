//! Implements the watchdog as a shell process.
//!
//! Destructors don't run in a killed process, and asking the kernel to kill children along with
//! their parent requires unsafe code. Instead, a small shell script reads from a pipe whose write
//! end is only held by this process. Once the pipe is closed, for whatever reason, the script kills
//! the servers and removes the directory. Servers are registered before they run (see
//! [`crate::workspace`]), so a crash can't leave one behind at any time.
//!
//! In case the watchdog is killed as well, the directory contains a list of its processes, and the
//! next start cleans up all directories whose owner is no longer running. Since process ids are
//! reused, a process is identified by id and start time.

use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::PREFIX;
use crate::Error;

/// Lines of `<id> <start time>`. The first line is the owner.
const PROCESSES: &str = "processes";

/// `watch <id>` and `forget <id>` update the list of processes to kill; `done` exits without
/// killing any. The removal is retried once, because a dying etcd may still be writing to the
/// directory.
const WATCHDOG: &str = r#"
folder=$1 ids=' '
while read -r verb id; do
  case $verb in
    watch) ids="$ids$id " ;;
    forget) case $ids in *" $id "*) ids="${ids%%" $id "*} ${ids#*" $id "}" ;; esac ;;
    done) exit 0 ;;
  esac
done
for id in $ids; do kill -KILL "$id"; done 2>/dev/null
rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }
"#;

#[derive(Debug)]
pub(crate) struct Watchdog {
    process: Child,
    orders: Mutex<ChildStdin>,
    folder: PathBuf,
}

impl Watchdog {
    pub(crate) fn start(folder: &Path) -> Result<Self, Error> {
        // The owner must be on the first line.
        record_process(folder, std::process::id())?;
        let (process, orders) = start_watchdog(folder).map_err(|err| {
            Error::new(format!(
                "cannot start `sh`, which ends the servers after a crash: {err}"
            ))
        })?;
        Ok(Self {
            process,
            orders: Mutex::new(orders),
            folder: folder.to_owned(),
        })
    }

    pub(crate) fn watch(&self, id: u32) -> Result<(), Error> {
        record_process(&self.folder, id)?;
        self.order(&format!("watch {id}\n"))
            .map_err(|err| Error::new(format!("the watchdog is gone: {err}")))
    }

    pub(crate) fn forget(&self, id: u32) {
        // Only fails if the watchdog is gone, in which case it can't kill anything.
        let _ = self.order(&format!("forget {id}\n"));
    }

    fn order(&self, line: &str) -> io::Result<()> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.write_all(line.as_bytes())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // `done` keeps the directory, which is removed by its owner.
        if self.order("done\n").is_err() {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
    }
}

fn start_watchdog(folder: &Path) -> io::Result<(Child, ChildStdin)> {
    let mut command = Command::new("sh");
    command
        .args(["-c", WATCHDOG, "rbuilder-envtest-watchdog"])
        .arg(folder);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A separate process group protects it from Ctrl-C in a terminal.
        .process_group(0);
    let mut child = command.spawn()?;
    let orders = child
        .stdin
        .take()
        .ok_or_else(|| io::Error::other("its standard input is not a pipe"))?;
    Ok((child, orders))
}

fn record_process(folder: &Path, id: u32) -> Result<(), Error> {
    let path = folder.join(PROCESSES);
    let line = format!("{id} {}\n", start_time(id).unwrap_or_default());
    let file = fs::OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.map_err(|err| Error::file("cannot write", &path, err))
}

/// Removes the directories of dead owners. Failures are ignored, since they must not prevent a
/// start, and the next start retries.
pub(crate) fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for folder in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        sweep_folder(&folder.path());
    }
}

fn sweep_folder(folder: &Path) {
    // Without a list, another process is currently creating or removing the directory.
    let Ok(text) = fs::read_to_string(folder.join(PROCESSES)) else {
        return;
    };
    let mut processes = text.lines().filter_map(parse_process);
    let Some((owner, owner_started)) = processes.next() else {
        return;
    };
    if is_running(owner, owner_started) {
        return;
    }
    let orphans: Vec<String> = processes
        .filter(|(id, started)| is_running(*id, started))
        .map(|(id, _)| id.to_string())
        .collect();
    if !orphans.is_empty() {
        let kill = Command::new("sh")
            .args(["-c", r#"kill -KILL "$@""#, "sh"])
            .args(orphans)
            .status();
        // Keep the directory for the next start to retry.
        if kill.is_err() {
            return;
        }
    }
    let _ = fs::remove_dir_all(folder);
}

fn parse_process(line: &str) -> Option<(u32, &str)> {
    let (id, started) = line.split_once(' ')?;
    Some((id.parse().ok()?, started))
}

fn is_running(id: u32, started: &str) -> bool {
    start_time(id).is_some_and(|now| now == started)
}

/// `None` if the process isn't running. The format is system-dependent, which is fine for equality
/// checks.
#[cfg(target_os = "linux")]
fn start_time(id: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // Field 22 in proc_pid_stat(5). Count from the end of the name, which may contain spaces and
    // parentheses.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let state = fields.next()?;
    if state == "Z" {
        None
    } else {
        fields.nth(18).map(str::to_owned)
    }
}

#[cfg(not(target_os = "linux"))]
fn start_time(id: u32) -> Option<String> {
    let output = Command::new("ps")
        .args(["-o", "lstart=", "-p", &id.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn exited_within(child: &mut Child, timeout: Duration) -> bool {
        let start = std::time::Instant::now();
        while start.elapsed() < timeout {
            if child.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    #[test]
    fn watchdog_kills_watched_processes_when_pipe_closes() {
        let folder = tempfile::tempdir().unwrap();
        let (mut watchdog, mut orders) = start_watchdog(folder.path()).unwrap();
        let [mut watched, mut forgotten] = [sleeper(), sleeper()];
        for child in [&forgotten, &watched] {
            writeln!(orders, "watch {}", child.id()).unwrap();
        }
        writeln!(orders, "forget {}", forgotten.id()).unwrap();
        // Close the pipe by dropping its write end, just as a SIGKILL of this process would.
        drop(orders);
        assert!(exited_within(&mut watched, Duration::from_secs(5)));
        assert!(watchdog.wait().unwrap().success());
        assert!(!folder.path().exists());
        assert!(
            forgotten.try_wait().unwrap().is_none(),
            "a forgotten process keeps running"
        );
        forgotten.kill().unwrap();
        forgotten.wait().unwrap();
    }

    #[test]
    fn dropped_watchdog_exits_and_keeps_folder() {
        let folder = tempfile::tempdir().unwrap();
        let watchdog = Watchdog::start(folder.path()).unwrap();
        let id = watchdog.process.id();
        drop(watchdog);
        assert_eq!(start_time(id), None);
        assert!(folder.path().join(PROCESSES).is_file());
    }

    #[test]
    fn sweep_removes_only_folders_of_dead_owners() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let [alive, dead, empty, foreign] = [
            "rbuilder-envtest-a",
            "rbuilder-envtest-d",
            "rbuilder-envtest-e",
            "other",
        ]
        .map(folder);
        let mut orphan = sleeper();
        let mut stranger = sleeper();
        record_process(&alive, std::process::id()).unwrap();
        record_process(&alive, stranger.id()).unwrap();
        // Simulate a reused id: same id as this process, but with another start time.
        fs::write(
            dead.join(PROCESSES),
            format!("{} 1\n{} 1\n", std::process::id(), stranger.id()),
        )
        .unwrap();
        record_process(&dead, orphan.id()).unwrap();

        sweep(parent.path());

        assert!(exited_within(&mut orphan, Duration::from_secs(5)));
        assert!(stranger.try_wait().unwrap().is_none());
        assert_eq!(
            [&alive, &dead, &empty, &foreign].map(|path| path.exists()),
            [true, false, true, true]
        );
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
