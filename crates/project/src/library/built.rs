//! How this command was built: what the build script recorded, and what still exists on this
//! machine.

#![allow(clippy::disallowed_methods)] // reads the command's own installation and checkout, not the project

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{COMMAND, FOLDER, PACKAGE, git, url};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Built {
    Package {
        /// Commit that the package was created from, if recorded.
        commit: Option<String>,
    },
    /// `cargo install --git`.
    CargoCheckout {
        commit: Option<String>,
        /// URL that Cargo installed from.
        url: Option<String>,
    },
    /// A clone, or any other directory with the source.
    Checkout {
        /// The directory, if it still exists.
        folder: Option<PathBuf>,
        commit: Option<String>,
        /// URL of `origin`, if others can fetch from it.
        url: Option<String>,
    },
}

/// Commit that this command was built from. `None` if git was missing during the build, and in
/// debug builds, which change without a commit.
pub fn recorded_commit() -> Option<&'static str> {
    let commit = env!("RBUILDER_COMMIT");
    (!commit.is_empty()).then_some(commit)
}

pub(super) fn read_built() -> Built {
    let recorded = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let commit = recorded_commit().map(str::to_owned);
    let remote = recorded(env!("RBUILDER_REMOTE"));
    match env!("RBUILDER_BUILT_FROM") {
        "package" => Built::Package { commit },
        "cargo-checkout" => Built::CargoCheckout {
            url: commit.as_deref().and_then(read_installed_url).or(remote),
            commit,
        },
        _ => read_checkout(commit, remote),
    }
}

fn read_checkout(commit: Option<String>, url: Option<String>) -> Built {
    let folder = find_checkout();
    if commit.is_some() {
        return Built::Checkout { folder, commit, url };
    }
    // Debug builds don't record the commit (see build.rs).
    let commit = folder.as_deref().and_then(git::read_commit);
    let origin = match (&folder, &commit) {
        (Some(folder), Some(_)) => git::read_origin(folder),
        _ => None,
    };
    Built::Checkout {
        url: origin.and_then(|origin| url::shareable_url(&origin)),
        folder,
        commit,
    }
}

pub(super) fn find_checkout() -> Option<PathBuf> {
    let folder = std::fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).ok()?;
    find_library(&folder).filter(|library| *library == folder.join(FOLDER))?;
    Some(folder)
}

/// Finds the library's package: either `folder` itself, or `runtime` in a checkout.
pub(super) fn find_library(folder: &Path) -> Option<PathBuf> {
    let candidates = [folder.join(FOLDER), folder.to_owned()];
    candidates.into_iter().find(|candidate| {
        let manifest = std::fs::read_to_string(candidate.join("Cargo.toml")).unwrap_or_default();
        let manifest = toml_edit::Document::parse(manifest).ok();
        let package = manifest.as_ref().and_then(|manifest| manifest.get("package"));
        package.and_then(|package| package.get("name")?.as_str()) == Some(PACKAGE)
    })
}

/// Reads the URL that Cargo recorded when it installed this command. Keys of `.crates2.json` (next
/// to `bin/`) look like `rbuilder-cli 0.1.0
/// (git+https://git.example.com/rbuilder?branch=main#0123abc)`.
fn read_installed_url(commit: &str) -> Option<String> {
    let program = std::fs::canonicalize(std::env::current_exe().ok()?).ok()?;
    let record = program.parent()?.parent()?.join(".crates2.json");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(record).ok()?).ok()?;
    let mut installs = record.get("installs")?.as_object()?.keys();
    installs.find_map(|package| parse_installed_url(package, commit))
}

fn parse_installed_url(package: &str, commit: &str) -> Option<String> {
    let (name, rest) = package.split_once(' ')?;
    let (_, source) = rest.split_once("(git+")?;
    let source = source
        .strip_suffix(')')?
        .strip_suffix(commit)?
        .strip_suffix('#')?;
    let source = source.split('?').next()?;
    let remote = url::shareable_url(source).or_else(|| url::parse_git_url(source).ok());
    (name == COMMAND).then_some(remote).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_url_of_an_installation() {
        let check = |package: &str, expected: Option<&str>| {
            assert_eq!(
                parse_installed_url(package, "0123abc").as_deref(),
                expected,
                "{package}"
            );
        };
        check(
            "rbuilder-cli 0.1.0 (git+https://git.example.com/r#0123abc)",
            Some("https://git.example.com/r"),
        );
        check(
            "rbuilder-cli 0.1.0 (git+ssh://git@git.example.com/r?branch=main#0123abc)",
            Some("ssh://git@git.example.com/r"),
        );
        check(
            "rbuilder-cli 0.1.0 (git+https://me:secret@git.example.com/r#0123abc)",
            Some("https://git.example.com/r"),
        );
        check(
            "rbuilder-cli 0.1.0 (git+file:///srv/r#0123abc)",
            Some("file:///srv/r"),
        );
        check("rbuilder-cli 0.1.0 (git+https://git.example.com/r#fedcba9)", None);
        check("other 0.1.0 (git+https://git.example.com/r#0123abc)", None);
        check("rbuilder-cli 0.1.0 (path+file:///srv/r/cli)", None);
    }
}
