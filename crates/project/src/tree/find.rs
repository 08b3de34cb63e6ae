//! Finds the project that contains a directory, i.e. the nearest parent directory with a PROJECT
//! file, similar to git's search for a repository.
//!
//! The search doesn't leave the repository or the user's own directories, so that a file left in
//! /tmp by another user has no effect.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::MOST_ANCESTORS;
use crate::disk::{Folder, Sort, effective_user};

/// Name of the PROJECT file, which marks a project's directory.
pub const FILE: &str = "PROJECT";

/// The directories in which a command looks for a PROJECT file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Nowhere: the command needs no project, or creates one.
    Nowhere,
    /// Parent directories up to the nearest package. Without a PROJECT file, the command works on
    /// that package.
    UpToPackage,
    /// All parent directories, past the packages of the project.
    PastPackages,
}

/// Finds the nearest project above a directory that isn't a project itself.
///
/// The search ends at a repository, at another user's directory and at an unreadable directory.
/// Otherwise a file left in /tmp by another user could decide which programs `rbuilder run` starts
/// below it.
pub fn find_project_above(dir: &Path, search: Search) -> Option<PathBuf> {
    let absolute = std::path::absolute(dir).ok()?;
    let mut above = PathBuf::new();
    for place in absolute.ancestors().take(MOST_ANCESTORS) {
        let folder = Folder::open(place).ok()?;
        let user = effective_user();
        let is_own = folder.status().is_ok_and(|status| status.owner == user);
        if search == Search::Nowhere || !is_own {
            return None;
        }
        let find = |name: &str| folder.look(name).ok().flatten();
        if find(FILE).is_some_and(|status| status.sort == Sort::File && status.owner == user) {
            let is_start = above.as_os_str().is_empty();
            let relative = dir == Path::new(".");
            return (!is_start).then(|| if relative { above } else { place.to_owned() });
        }
        let is_end = find(".git").is_some() || search == Search::UpToPackage && find("Cargo.toml").is_some();
        if is_end {
            return None;
        }
        above.push("..");
    }
    None
}

/// Whether `above` and all directories between it and `dir` are owned by the user and in the same
/// repository. Otherwise we might join a workspace that another user left in /tmp. Both paths are
/// canonical. Directories that don't exist yet will be owned by the user.
pub fn is_own_above(dir: &Path, above: &Path) -> bool {
    let user = effective_user();
    for place in dir.ancestors().take(MOST_ANCESTORS) {
        let is_end = place == above;
        match Folder::open(place) {
            Ok(folder) => {
                let is_own = folder.status().is_ok_and(|status| status.owner == user);
                let is_repository = folder.look(".git").is_ok_and(|found| found.is_some());
                if !is_own || (is_repository && !is_end) {
                    return false;
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound && !is_end => {}
            Err(_) => return false,
        }
        if is_end {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // the test creates the files itself

    use super::*;

    #[test]
    fn finds_nearest_project_above() {
        let top = tempfile::tempdir().expect("a temporary folder");
        let write = |path: &str| {
            let path = top.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, "").expect("a file");
        };
        for path in [
            "p/PROJECT",
            "p/.git",
            "p/Cargo.toml",
            "p/src/api/v1/cup.rs",
            "p/inner/PROJECT",
            "p/inner/src/lib.rs",
            "p/crates/a/Cargo.toml",
            "p/crates/a/src/lib.rs",
            "p/other/.git",
            "p/other/src/lib.rs",
            "p/config/PROJECT/x",
            "q/src/lib.rs",
        ] {
            write(path);
        }
        use Search::{Nowhere, PastPackages, UpToPackage};
        for (dir, search, expected) in [
            ("p", PastPackages, None),
            ("p/src", PastPackages, Some("p")),
            ("p/src/api/v1", UpToPackage, Some("p")),
            ("p/src/api/v1", Nowhere, None),
            ("p/inner/src", PastPackages, Some("p/inner")),
            ("p/inner", PastPackages, None),
            ("p/crates/a/src", PastPackages, Some("p")),
            ("p/crates/a/src", UpToPackage, None),
            ("p/crates/a", UpToPackage, None),
            ("p/crates", UpToPackage, Some("p")),
            // Another repository.
            ("p/other/src", PastPackages, None),
            // A directory named PROJECT doesn't make a project.
            ("p/config", PastPackages, Some("p")),
            ("p/none", PastPackages, None),
        ] {
            let found = find_project_above(&top.path().join(dir), search);
            assert_eq!(
                found,
                expected.map(|path| top.path().join(path)),
                "{dir} {search:?}"
            );
        }
    }

    #[test]
    fn workspace_above_must_be_in_the_same_repository() {
        let top = tempfile::tempdir().expect("a temporary folder");
        let top = top.path().canonicalize().expect("it is there");
        for folder in ["w/.git", "w/a", "w/b/.git", "w/b/c"] {
            std::fs::create_dir_all(top.join(folder)).expect("folders");
        }
        for (dir, above, expected) in [
            ("w/a", "w", true),
            ("w/a/new/one", "w", true),
            ("w/b/c", "w/b", true),
            ("w/b", "w", false),
            ("w/b/c", "w", false),
            ("w/a", "", false),
            ("w/a", "w/b", false),
        ] {
            let above = if above.is_empty() {
                top.clone()
            } else {
                top.join(above)
            };
            assert_eq!(
                is_own_above(&top.join(dir), &above),
                expected,
                "{dir} in {above:?}"
            );
        }
        // `/` belongs to root, so it counts as ours only if the test runs as root.
        let is_root = effective_user() == 0;
        assert_eq!(is_own_above(&top.join("new"), Path::new("/")), is_root);
    }

    #[test]
    fn search_from_the_current_directory_stops_at_the_repository() {
        // Tests run in the package's directory: no project above, only a repository.
        assert_eq!(find_project_above(Path::new("."), Search::PastPackages), None);
    }
}
