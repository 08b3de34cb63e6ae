//! Other programs: where they are looked for, and questions to them. The build script compiles this module too, so it
//! depends on nothing else of the crate.
//!
//! A repository chooses no program that a command runs. Relative directories in `PATH` do not count, and a question is
//! asked outside of the project, where the program finds no configuration of it: rustup obeys `rust-toolchain.toml` of the
//! directory that it runs in, and Cargo reads `.cargo/config.toml`, which may be a pipe.

use std::io::{Error, ErrorKind, Read, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time in which a program must have answered.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Maximum length of each part of an answer, in bytes. What is longer is cut.
const LONGEST: u64 = 1 << 20;

/// Interval at which a program is asked whether it has ended.
const INTERVAL: Duration = Duration::from_millis(10);

/// What a program printed.
#[derive(Debug)]
#[allow(dead_code)] // the build script does not show errors
pub(crate) struct Answer {
    pub(crate) status: ExitStatus,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
}

/// Returns the file of a program in the directories of `PATH`. Relative directories are passed over: a repository must not
/// bring its own.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).find_map(|folder| program_in(&folder, name))
}

/// Returns the file of a program in a directory, unless the directory is relative.
pub(crate) fn program_in(folder: &Path, name: &str) -> Option<PathBuf> {
    let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    (folder.is_absolute() && program.is_file()).then_some(program)
}

/// Returns a directory outside of every project, for questions to a program.
#[allow(dead_code)] // the build script asks about its checkout only
pub(crate) fn neutral_folder(program: &Path) -> &Path {
    program.ancestors().last().unwrap_or(program)
}

/// Runs a program without input and returns what it prints.
///
/// # Errors
/// Fails if the program cannot be started, or with [`ErrorKind::TimedOut`] if it has not ended within the limit; it is
/// then killed.
pub(crate) fn ask(command: &mut Command, limit: Duration) -> Result<Answer> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = wait(&mut child, deadline);
    if status.is_err() {
        // An error means that it has ended.
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

/// Reads a pipe beside this thread: it can be full, and a program that was started in the background can keep it open.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error counts.
            let _ = pipe.by_ref().take(LONGEST).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        // Nobody waits for it any more after the deadline.
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
    fn program_is_asked() {
        let answer = ask(&mut shell("cat; echo out; echo err >&2; exit 3"), LIMIT).expect("an answer");
        assert_eq!(answer.status.code(), Some(3));
        assert_eq!((&answer.out[..], &answer.err[..]), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[test]
    fn program_that_does_not_end_is_killed() {
        let short = Duration::from_millis(100);
        // The second ends, but a program that it has started keeps its output open.
        for script in ["exec sleep 600", "sleep 600 & echo started"] {
            let error = ask(&mut shell(script), short).expect_err(script);
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{script}");
        }
    }

    #[test]
    fn endless_output_is_cut() {
        let answer = ask(&mut shell("head -c 3000000 /dev/zero"), LIMIT).expect("an answer");
        assert_eq!(answer.out.len() as u64, LONGEST);
    }

    #[test]
    fn relative_directories_have_no_programs() {
        assert_eq!(
            program_in(Path::new("/bin"), "sh"),
            Some(PathBuf::from("/bin/sh"))
        );
        for folder in [".", "", "bin", "../../../../../../../../bin"] {
            assert_eq!(program_in(Path::new(folder), "sh"), None, "{folder}");
        }
    }

    #[test]
    fn neutral_folder_is_the_root() {
        assert_eq!(neutral_folder(Path::new("/usr/bin/rustc")), Path::new("/"));
    }
}
