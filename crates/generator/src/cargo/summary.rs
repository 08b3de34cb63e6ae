//! An overview of the package in a directory, for commands that adopt or describe it.

use super::file::{Files, bool_at, string_at};
use super::{targets, workspace};
use crate::Diagnostic;
use crate::sources::Sources;

/// What a directory's `Cargo.toml` says about its package and its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageSummary {
    /// The name of the package. A virtual workspace has none.
    pub name: Option<String>,
    /// The name of the library in Rust code, if there is one.
    pub library: Option<String>,
    /// The name and the root file of each binary, sorted by path.
    pub binaries: Vec<(String, String)>,
    /// The binary that `cargo run` starts (`default-run`).
    pub default_run: Option<String>,
    /// The license as an SPDX expression, or `None` if the package inherits it.
    pub license: Option<String>,
    /// True if Cargo discovers tests in `tests/`.
    pub finds_tests: bool,
    /// True if the directory is the root of a workspace.
    pub is_workspace: bool,
    /// The directories of the members listed in the workspace.
    pub members: Vec<String>,
}

/// Summarizes the package in the root directory of the sources, or returns `None` if there is no
/// `Cargo.toml`.
///
/// # Errors
///
/// Fails if a manifest can't be read or isn't TOML.
pub fn summarize_package(sources: &dyn Sources) -> Result<Option<PackageSummary>, Diagnostic> {
    let Some(file) = Files::new(sources).get("")? else {
        return Ok(None);
    };
    let package = file.table("package");
    let of_package = |key: &str| Some(string_at(package?, key)?.to_owned());
    let is_workspace = file.table("workspace").is_some();
    let mut summary = PackageSummary {
        name: of_package("name"),
        library: None,
        binaries: Vec::new(),
        default_run: of_package("default-run"),
        license: of_package("license"),
        finds_tests: package.and_then(|package| bool_at(package, "autotests")) != Some(false),
        is_workspace,
        members: Vec::new(),
    };
    if summary.name.is_some() {
        summary.library = targets::find_library(&file, sources).map(|library| library.name);
        summary.binaries = targets::find_named_binaries(&file, sources)?;
    }
    if is_workspace {
        let members = workspace::find_members(&file, sources)?;
        summary.members = members.into_iter().filter(|folder| !folder.is_empty()).collect();
    }
    Ok(Some(summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceSet;

    fn summarize(files: &[(&str, &str)]) -> Option<PackageSummary> {
        let mut sources = SourceSet::default();
        for (path, text) in files {
            sources.insert(*path, *text);
        }
        summarize_package(&sources).expect("the manifests are TOML")
    }

    #[test]
    fn summarizes_targets_and_members() {
        let package = "[package]\nname = \"tea-pot\"\nlicense.workspace = true\n";
        for (files, name, library, binaries, members) in [
            (
                vec![("Cargo.toml", package)],
                Some("tea-pot"),
                None,
                vec![],
                vec![],
            ),
            (
                vec![("Cargo.toml", package), ("src/main.rs", ""), ("src/lib.rs", "")],
                Some("tea-pot"),
                Some("tea_pot"),
                vec![("tea-pot", "src/main.rs")],
                vec![],
            ),
            (
                vec![
                    (
                        "Cargo.toml",
                        "[package]\nname = \"a\"\n[lib]\nname = \"b\"\n[[bin]]\nname = \"c\"\npath = \"d.rs\"\n[workspace]\nmembers = [\"x/*\"]\n",
                    ),
                    ("d.rs", ""),
                    ("src/lib.rs", ""),
                    ("src/bin/e.rs", ""),
                    ("x/y/Cargo.toml", ""),
                ],
                Some("a"),
                Some("b"),
                vec![("c", "d.rs"), ("e", "src/bin/e.rs")],
                vec!["x/y"],
            ),
            (
                vec![
                    ("Cargo.toml", "[workspace]\nmembers = [\"y\"]\n"),
                    ("src/main.rs", ""),
                    ("y/Cargo.toml", ""),
                ],
                None,
                None,
                vec![],
                vec!["y"],
            ),
        ] {
            let found = summarize(&files).expect("there is a manifest");
            assert_eq!(found.name.as_deref(), name, "{files:?}");
            assert_eq!(found.library.as_deref(), library, "{files:?}");
            let found_binaries: Vec<(&str, &str)> = found
                .binaries
                .iter()
                .map(|(name, path)| (name.as_str(), path.as_str()))
                .collect();
            assert_eq!(found_binaries, binaries, "{files:?}");
            assert_eq!(found.members, members, "{files:?}");
            assert_eq!(found.license, None);
        }
        assert_eq!(summarize(&[]), None);
    }
}
