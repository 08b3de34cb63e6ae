//! Records how this command is built, which determines where new projects get the library from.
//! Sets `RBUILDER_BUILT_FROM` (`package`, `cargo-checkout` or `checkout`), `RBUILDER_COMMIT` and
//! `RBUILDER_REMOTE`. The last two are empty if unknown. The script never fails: without git it
//! just records less.
//!
//! | built with | detected by | source of commit and remote |
//! |---|---|---|
//! | `cargo install rbuilder-cli`, a vendored package | `Cargo.toml.orig`, which packages contain | `.cargo_vcs_info.json` |
//! | `cargo install --git` | `.cargo-ok` next to the workspace, which Cargo creates | `.git/HEAD`, Cargo's database |
//! | `cargo build`, `cargo install --path` | neither | git, in release builds |

#![allow(clippy::disallowed_macros, clippy::disallowed_methods)] // a build script prints and reads
#![allow(unreachable_pub)] // two modules belong to the library

#[path = "src/library/git.rs"]
mod git;
#[path = "src/programs.rs"]
mod programs;
#[path = "src/library/url.rs"]
mod url;

use std::path::{Path, PathBuf};

/// The origin of the source being compiled.
struct Built {
    from: &'static str,
    commit: Option<String>,
    remote: Option<String>,
}

fn main() {
    for path in [
        "build.rs",
        "src/library/git.rs",
        "src/library/url.rs",
        "src/programs.rs",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let built = examine_source(&manifest);
    println!("cargo::rustc-env=RBUILDER_BUILT_FROM={}", built.from);
    println!(
        "cargo::rustc-env=RBUILDER_COMMIT={}",
        built.commit.unwrap_or_default()
    );
    println!(
        "cargo::rustc-env=RBUILDER_REMOTE={}",
        built.remote.unwrap_or_default()
    );
}

fn examine_source(manifest: &Path) -> Built {
    let top = manifest.join("../..");
    if manifest.join("Cargo.toml.orig").is_file() || manifest.join(".cargo_vcs_info.json").is_file() {
        return Built {
            from: "package",
            commit: packaged_commit(manifest),
            remote: None,
        };
    }
    if top.join(".cargo-ok").is_file() {
        return Built {
            from: "cargo-checkout",
            commit: checked_out_commit(&top).or_else(|| git::read_commit(&top)),
            remote: fetched_remote(&top),
        };
    }
    // Recording the commit would recompile a debug build after each commit. Instead, a debug build
    // asks git at run time.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = is_release.then(|| git::read_commit(&top)).flatten();
    let remote = commit.as_ref().and_then(|_| git::read_origin(&top));
    if commit.is_some() {
        for path in git::state_files(&top) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    Built {
        from: "checkout",
        commit,
        remote: remote.and_then(|remote| url::shareable_url(&remote)),
    }
}

/// Returns the value of `"sha1"` from the file that Cargo adds to packages.
fn packaged_commit(manifest: &Path) -> Option<String> {
    let text = std::fs::read_to_string(manifest.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1)?;
    is_hash(commit).then(|| commit.to_owned())
}

/// Returns the commit checked out by Cargo. Cargo's own checkouts have a detached HEAD.
fn checked_out_commit(top: &Path) -> Option<String> {
    let head = std::fs::read_to_string(top.join(".git/HEAD")).ok()?;
    let commit = head.trim();
    is_hash(commit).then(|| commit.to_owned())
}

/// Returns the URL from which Cargo fetched one of its own checkouts: `git/checkouts/NAME/COMMIT`
/// is a clone of the database `git/db/NAME`. Once the command is installed, Cargo's record of
/// installed packages is more reliable.
fn fetched_remote(top: &Path) -> Option<String> {
    let top = std::fs::canonicalize(top).ok()?;
    let checkouts = top.parent()?;
    let database = checkouts
        .parent()?
        .parent()?
        .join("db")
        .join(checkouts.file_name()?);
    let text = std::fs::read_to_string(database.join("FETCH_HEAD")).ok()?;
    text.lines()
        .find_map(|line| url::shareable_url(line.rsplit(" of ").next()?.rsplit('\t').next()?))
}

fn is_hash(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
