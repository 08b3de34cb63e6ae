//! Queries git about the checkout that this command was built from. The build script also compiles
//! this module, so it only depends on [`crate::programs`].
//!
//! These commands never run in a project, whose configuration can make git run other programs (see
//! `plan/git.rs`). They may run in this checkout: its build scripts ran when the command was built,
//! and git refuses repositories owned by other users.

use std::path::Path;
use std::process::ExitStatus;

use crate::programs::{LIMIT, ask as ask_program, find_program, git_command};

/// Returns the checked-out commit, or `None` if `folder` is not the root of a work tree or git is
/// missing.
pub(crate) fn read_commit(folder: &Path) -> Option<String> {
    let top = ask(folder, &["rev-parse", "--show-toplevel"])?;
    // The checkout may be nested in the repository of another project.
    if std::fs::canonicalize(top).ok()? != std::fs::canonicalize(folder).ok()? {
        return None;
    }
    ask(folder, &["rev-parse", "--verify", "HEAD^{commit}"])
}

pub(crate) fn read_origin(folder: &Path) -> Option<String> {
    ask(folder, &["config", "--get", "remote.origin.url"])
}

/// Returns the files that change whenever the checked-out commit or `origin` changes.
#[allow(dead_code)] // only used by the build script
pub(crate) fn state_files(folder: &Path) -> Vec<String> {
    let branch = ask(folder, &["symbolic-ref", "--quiet", "HEAD"]);
    let names = ["HEAD", "logs/HEAD", "packed-refs", "config"].map(str::to_owned);
    let paths = names.into_iter().chain(branch);
    paths
        .filter_map(|name| {
            ask(
                folder,
                &["rev-parse", "--path-format=absolute", "--git-path", &name],
            )
        })
        // With a missing file, cargo would rerun the build script every time.
        .filter(|path| Path::new(path).is_file())
        .collect()
}

/// Whether a commit was pushed to `origin`, i.e. a remote-tracking branch or a tag contains it.
/// `None` if git cannot tell.
#[allow(dead_code)] // not used by the build script
pub(crate) fn is_pushed(folder: &Path, commit: &str) -> Option<bool> {
    let refs = ["refs/remotes/origin", "refs/tags"];
    let words = [
        "for-each-ref",
        "--count=1",
        "--format=%(refname)",
        "--contains",
        commit,
    ];
    let (status, found) = run(folder, &[&words[..], &refs[..]].concat())?;
    status.success().then_some(!found.is_empty())
}

/// Whether the code in the work tree differs from a commit. `None` if git cannot tell.
#[allow(dead_code)] // not used by the build script
pub(crate) fn is_changed(folder: &Path, commit: &str) -> Option<bool> {
    let (status, _) = run(folder, &["diff", "--quiet", commit, "--", "*.rs", "*.toml"])?;
    match status.code()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn ask(folder: &Path, words: &[&str]) -> Option<String> {
    let (status, answer) = run(folder, words)?;
    (status.success() && !answer.is_empty()).then_some(answer)
}

fn run(folder: &Path, words: &[&str]) -> Option<(ExitStatus, String)> {
    let mut git = git_command(&find_program("git")?);
    git.current_dir(folder).args(words);
    let answer = ask_program(&mut git, LIMIT).ok()?;
    let text = String::from_utf8(answer.out).ok()?;
    Some((answer.status, text.trim().to_owned()))
}
