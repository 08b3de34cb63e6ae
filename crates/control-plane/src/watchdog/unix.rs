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
//!
//! Every local user can create such a directory with such a list. So only directories of the current
//! user that nobody else can access count, and only lists that are small regular files.

use std::fs;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, openat};

use super::PREFIX;
use crate::Error;
use crate::private::open_private;

/// Lines of `<id> <start time>`. The first line is the owner.
const PROCESSES: &str = "processes";

/// Maximum size of the list in bytes. A line has some 20, and `rbuilder dev` adds one for each build.
const LONGEST_LIST: u64 = 64 * 1024;

/// Directories of `sh` and of what the watchdog runs. The user's `PATH` may contain relative
/// directories, and the current directory may be somebody else's repository.
const PATH: &str = "/bin:/usr/bin";

const SHELL: &str = "/bin/sh";

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
                "cannot start `{SHELL}`, which ends the servers after a crash: {err}"
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
    let mut command = Command::new(SHELL);
    command
        .args(["-c", WATCHDOG, "rbuilder-envtest-watchdog"])
        .arg(folder);
    command
        .env("PATH", PATH)
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
    let file = open_private(&path, fs::OpenOptions::new().create(true).append(true));
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
    let Some(text) = read_list(folder) else {
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
        let kill = Command::new(SHELL)
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

/// Reads the list of processes in a directory. `None` unless both belong to the current user alone.
fn read_list(folder: &Path) -> Option<String> {
    // Opened once and then examined, since another user may replace what a path refers to. Without
    // `NONBLOCK`, opening a FIFO would wait for its writer.
    let careful = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |at: BorrowedFd<'_>, path: &Path, flags| -> Option<File> {
        Some(openat(at, path, careful | flags, Mode::empty()).ok()?.into())
    };
    let folder = open(rustix::fs::CWD, folder, OFlags::DIRECTORY)?;
    let user = rustix::process::geteuid().as_raw();
    let found = folder.metadata().ok()?;
    if (found.uid(), found.mode() & 0o7777) != (user, 0o700) {
        return None;
    }
    let list = open(folder.as_fd(), Path::new(PROCESSES), OFlags::empty())?;
    let found = list.metadata().ok()?;
    if !found.is_file() || found.uid() != user || found.len() > LONGEST_LIST {
        return None;
    }
    let mut text = String::new();
    list.take(LONGEST_LIST).read_to_string(&mut text).ok()?;
    Some(text)
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
    let output = Command::new("/bin/ps")
        .args(["-o", "lstart=", "-p", &id.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
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

    fn new_folder(parent: &Path, name: &str, mode: u32) -> PathBuf {
        let path = parent.join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
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
        let folder = |name: &str| new_folder(parent.path(), name, 0o700);
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
    /// A list whose owner is dead, and that names one running process.
    fn list_of_dead_owner(orphan: &Child) -> String {
        let id = orphan.id();
        format!("{} 1\n{id} {}\n", std::process::id(), start_time(id).unwrap())
    }

    #[test]
    fn sweep_ignores_folders_that_others_can_change() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str, mode: u32| new_folder(parent.path(), &format!("{PREFIX}{name}"), mode);
        let mut victim = sleeper();
        let list = list_of_dead_owner(&victim);
        let open = folder("open", 0o777);
        let readable = folder("readable", 0o755);
        let sticky = folder("sticky", 0o1700);
        let large = folder("large", 0o700);
        let linked_list = folder("list", 0o700);
        for folder in [&open, &readable, &sticky] {
            fs::write(folder.join(PROCESSES), &list).unwrap();
        }
        fs::write(large.join(PROCESSES), list.clone() + &"\n".repeat(64 * 1024)).unwrap();
        fs::write(parent.path().join("list"), &list).unwrap();
        symlink(parent.path().join("list"), linked_list.join(PROCESSES)).unwrap();
        let elsewhere = new_folder(parent.path(), "elsewhere", 0o700);
        fs::write(elsewhere.join(PROCESSES), &list).unwrap();
        let linked = parent.path().join(format!("{PREFIX}link"));
        symlink(&elsewhere, &linked).unwrap();
        let mut folders = vec![open, readable, sticky, large, linked_list, elsewhere, linked];
        // Only root can create files of another user.
        if rustix::process::geteuid().is_root() {
            let foreign = folder("foreign", 0o700);
            fs::write(foreign.join(PROCESSES), &list).unwrap();
            chown(&foreign, Some(12345), None).unwrap();
            let foreign_list = folder("foreign-list", 0o700);
            fs::write(foreign_list.join(PROCESSES), &list).unwrap();
            chown(foreign_list.join(PROCESSES), Some(12345), None).unwrap();
            folders.extend([foreign, foreign_list]);
        }

        sweep(parent.path());

        std::thread::sleep(Duration::from_millis(200));
        assert!(victim.try_wait().unwrap().is_none(), "the victim was killed");
        for folder in folders {
            assert!(folder.exists(), "{}", folder.display());
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
    }

    #[test]
    fn sweep_does_not_wait_for_fifo() {
        let parent = tempfile::tempdir().unwrap();
        let folder = new_folder(parent.path(), &format!("{PREFIX}fifo"), 0o700);
        let made = Command::new("mkfifo").arg(folder.join(PROCESSES)).status();
        assert!(made.unwrap().success());
        let (sender, receiver) = std::sync::mpsc::channel();
        let path = parent.path().to_owned();
        std::thread::spawn(move || {
            sweep(&path);
            let _ = sender.send(());
        });
        let swept = receiver.recv_timeout(Duration::from_secs(5));
        assert!(swept.is_ok(), "the sweep waits for a writer of the FIFO");
        assert!(folder.exists());
    }

    /// The variables of a process belong to all its threads, so a child process runs the test.
    #[test]
    fn relative_directories_of_path_provide_no_program() {
        const CHILD: &str = "RBUILDER_TEST_RELATIVE_PATH";
        if std::env::var_os(CHILD).is_some() {
            let workspace = crate::Workspace::create().unwrap();
            let mut child = workspace
                .spawn(Path::new("/bin/sleep"), |command| {
                    command.arg("600");
                })
                .unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        for name in ["sh", "rm", "sleep", "kill", "ps"] {
            let program = folder.path().join("bin").join(name);
            fs::write(&program, "#!/bin/sh\n/usr/bin/touch ran\nexec /bin/sh \"$@\"\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let ran = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "watchdog::unix::tests::relative_directories_of_path_provide_no_program",
            ])
            .env(CHILD, "1")
            .env("PATH", "bin:/bin:/usr/bin")
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        assert!(
            !folder.path().join("ran").exists(),
            "a program of the repository ran"
        );
    }
}
