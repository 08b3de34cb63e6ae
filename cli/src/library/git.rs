//! Questions to git about the checkout that this command was built from. The build script compiles this module too, so
//! it depends on nothing else of the crate but [`crate::programs`].
//!
//! git is not run in projects, whose configuration may make it run other programs (see `plan/git.rs`). It is run here
//! because everything in this checkout is trusted: building the command has run its build scripts, and git itself
//! refuses repositories of other users.

use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::programs::{LIMIT, ask as ask_program, find_program};

/// Returns the commit that is checked out; `None` if the folder is not the top of a work tree, or without git.
pub(crate) fn read_commit(folder: &Path) -> Option<String> {
    let top = ask(folder, &["rev-parse", "--show-toplevel"])?;
    // The checkout may lie in the repository of something else.
    if std::fs::canonicalize(top).ok()? != std::fs::canonicalize(folder).ok()? {
        return None;
    }
    ask(folder, &["rev-parse", "--verify", "HEAD^{commit}"])
}

/// Returns the URL of `origin` as it was set.
pub(crate) fn read_origin(folder: &Path) -> Option<String> {
    ask(folder, &["config", "--get", "remote.origin.url"])
}

/// Returns the files that change with the commit that is checked out or with `origin`.
#[allow(dead_code)] // the build script needs it alone
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
        // A file that is missing would have the build script run each time.
        .filter(|path| Path::new(path).is_file())
        .collect()
}

/// Returns whether `origin` has a commit as far as this clone knows: a remote branch or a tag contains it. `None` if git
/// cannot tell.
#[allow(dead_code)] // the build script does not ask
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

/// Returns whether the code in the work tree differs from a commit. `None` if git cannot tell.
#[allow(dead_code)] // the build script does not ask
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
    let mut git = Command::new(find_program("git")?);
    git.current_dir(folder)
        .args(["-c", "core.fsmonitor=false"])
        .args(words);
    // Set by git for hooks, and by tools that start builds from them.
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_PREFIX",
    ] {
        git.env_remove(name);
    }
    git.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
    let answer = ask_program(&mut git, LIMIT).ok()?;
    let text = String::from_utf8(answer.out).ok()?;
    Some((answer.status, text.trim().to_owned()))
}
