//! Finds and queries other programs. The build script also compiles this module, so it depends on
//! nothing else in this crate.
//!
//! A repository must not choose which program a command runs. So relative directories in `PATH` are
//! ignored, and programs run outside the project, where they don't find its configuration. For
//! example, rustup obeys the `rust-toolchain.toml` in the current directory, and Cargo reads
//! `.cargo/config.toml`, which may be a pipe. Queries have a timeout.
//!
//! Only commands whose purpose is to build or deploy the project run programs in it, i.e. `run`,
//! `dev`, `install`, `deploy` and their counterparts.

use std::io::{Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Timeout for a query.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Maximum size in bytes of each output stream of [`ask`]. Longer output is truncated.
pub const LONGEST: u64 = 1 << 20;

const INTERVAL: Duration = Duration::from_millis(10);

/// The output of a program.
#[derive(Debug)]
#[allow(dead_code)] // the build script does not show errors
pub struct Answer {
    /// The exit status.
    pub status: ExitStatus,
    /// The standard output.
    pub out: Vec<u8>,
    /// The standard error.
    pub err: Vec<u8>,
}

/// Finds a program in `PATH`. Relative directories are ignored: a repository must not provide the
/// program.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).find_map(|folder| program_in(&folder, name))
}

/// Finds a program in a directory. Relative directories are ignored, and so are files that nobody may
/// execute, like in a shell.
pub fn program_in(folder: &Path, name: &str) -> Option<PathBuf> {
    let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    (folder.is_absolute() && is_executable(&program)).then_some(program)
}

#[cfg(unix)]
fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = std::fs::metadata(program);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(program: &Path) -> bool {
    program.is_file()
}

/// Returns a directory outside of any project to run a program in.
#[allow(dead_code)] // the build script only asks about its own checkout
pub fn neutral_folder(program: &Path) -> &Path {
    program.ancestors().last().unwrap_or(program)
}

/// Prepares a call of git that ignores environment variables set by hooks and other tools, starts
/// no fsmonitor, takes no locks and never prompts.
pub fn git_command(git: &Path) -> Command {
    let mut command = Command::new(git);
    command.args(["-c", "core.fsmonitor=false"]);
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_PREFIX",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
    ] {
        command.env_remove(name);
    }
    command
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0");
    command
}

/// Runs a program without input and returns its output.
///
/// # Errors
/// Fails if the program cannot be started. A program that exceeds the time limit is killed, and the
/// error is [`ErrorKind::TimedOut`].
pub fn ask(command: &mut Command, limit: Duration) -> Result<Answer> {
    ask_for(command, limit, LONGEST)
}

/// Like [`ask`], with a custom limit in bytes for each output stream.
///
/// # Errors
/// Same as [`ask`].
pub fn ask_for(command: &mut Command, limit: Duration, longest: u64) -> Result<Answer> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (
        read(child.stdout.take(), longest),
        read(child.stderr.take(), longest),
    );
    let status = wait(&mut child, deadline);
    if status.is_err() {
        // If this fails, the program has exited on its own.
        let _ = child.kill();
        let _ = child.wait();
    }
    Ok(Answer {
        status: status?,
        out: receive(&out, deadline)?,
        err: receive(&err, deadline)?,
    })
}

fn wait(child: &mut Child, deadline: Instant) -> Result<ExitStatus> {
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(status),
            None if Instant::now() >= deadline => return Err(timed_out()),
            None => std::thread::sleep(INTERVAL),
        }
    }
}

fn read(pipe: Option<impl Read + Send + 'static>, longest: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    // Reading the pipes sequentially would deadlock once the other one is full. A background
    // process may also keep this one open.
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Keep whatever was read before an error.
            let _ = pipe.by_ref().take(longest).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        // The receiver is gone after the deadline.
        let _ = sender.send(bytes);
    });
    receiver
}

fn receive(pipe: &Receiver<Vec<u8>>, deadline: Instant) -> Result<Vec<u8>> {
    let rest = deadline.saturating_duration_since(Instant::now());
    pipe.recv_timeout(rest).map_err(|_| timed_out())
}

fn timed_out() -> Error {
    Error::new(ErrorKind::TimedOut, "it did not answer in time")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn returns_the_output_of_a_program() {
        let answer = ask(&mut shell("cat; echo out; echo err >&2; exit 3"), LIMIT).expect("an answer");
        assert_eq!(answer.status.code(), Some(3));
        assert_eq!((&answer.out[..], &answer.err[..]), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[test]
    fn kills_programs_after_the_limit() {
        let short = Duration::from_millis(100);
        // The second script exits, but its background process keeps the output open.
        for script in ["exec sleep 600", "sleep 600 & echo started"] {
            let error = ask(&mut shell(script), short).expect_err(script);
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{script}");
        }
    }

    #[test]
    fn truncates_endless_output() {
        let answer = ask(&mut shell("head -c 3000000 /dev/zero"), LIMIT).expect("an answer");
        assert_eq!(answer.out.len() as u64, LONGEST);
    }

    #[test]
    fn ignores_relative_directories() {
        assert_eq!(
            program_in(Path::new("/bin"), "sh"),
            Some(PathBuf::from("/bin/sh"))
        );
        for folder in [".", "", "bin", "../../../../../../../../bin"] {
            assert_eq!(program_in(Path::new(folder), "sh"), None, "{folder}");
        }
    }

    #[cfg(unix)]
    #[test]
    #[allow(clippy::disallowed_methods)] // the test creates the file itself
    fn ignores_files_that_cannot_be_executed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a temporary directory");
        let program = folder.path().join("kubectl");
        std::fs::write(&program, "").expect("a file");
        assert_eq!(program_in(folder.path(), "kubectl"), None);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("its owner");
        assert_eq!(program_in(folder.path(), "kubectl"), Some(program));
    }

    #[test]
    fn neutral_folder_is_the_root() {
        assert_eq!(neutral_folder(Path::new("/usr/bin/rustc")), Path::new("/"));
    }
}
