//! The library that operators are built on, as a project's dependency: the package, and where Cargo
//! gets it from.
//!
//! A source has one of three forms, which are recorded in PROJECT and written to Cargo.toml: a
//! released version, a commit of a git repository, or a path on this machine. `built.rs` finds out
//! where the command itself came from, `choose.rs` picks a source for a project, and
//! `edit/library.rs` edits Cargo.toml.
//!
//! The package is called `rbuilder-runtime`, because `rbuilder` on crates.io is an unrelated
//! package. A scaffold must never depend on it.

mod built;
pub mod choose;
mod git;
mod source;
mod url;

use std::fmt::{Display, Formatter};

use serde::Deserialize;
use toml_edit::Value;

use crate::posix::quote_word;
use crate::tree::with_slashes;

pub use built::recorded_commit;
pub use source::{LibraryForm, LibrarySource};

const COMMAND: &str = "rbuilder-cli";

/// Package name on registries, where `rbuilder` is taken.
pub const PACKAGE: &str = "rbuilder-runtime";

/// Name of the library in Rust code, and thus of the dependency.
pub const DEPENDENCY: &str = "rbuilder";

const FOLDER: &str = "crates/runtime";

/// A project's source of the library.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Record")]
pub enum Library {
    /// A released version.
    Version {
        /// Version requirement, e.g. `0.1.0`.
        version: String,
    },
    /// A commit of a git repository.
    Git {
        /// The URL as Cargo writes it.
        url: String,
        /// A commit or tag.
        rev: String,
    },
    /// A directory on this machine.
    Path {
        /// Path of the package with `/` as separator, absolute or relative to the project.
        path: String,
    },
}

/// Keys of a source in PROJECT and Cargo.toml.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Record {
    /// Version requirement.
    pub version: Option<String>,
    /// URL of a git repository.
    pub git: Option<String>,
    /// Commit or tag in that repository.
    pub rev: Option<String>,
    /// Path of the package.
    pub path: Option<String>,
}

impl TryFrom<Record> for Library {
    type Error = String;

    fn try_from(record: Record) -> Result<Library, String> {
        match record {
            Record {
                version: Some(version),
                git: None,
                rev: None,
                path: None,
            } => Library::version(&version),
            Record {
                version: None,
                git: Some(url),
                rev: Some(rev),
                path: None,
            } => Library::git(&url, &rev),
            Record {
                version: None,
                git: None,
                rev: None,
                path: Some(path),
            } => Library::path(&path),
            _ => {
                Err("expected `version`, `git` and `rev`, or `path` as the source of the library".to_owned())
            }
        }
    }
}

impl Library {
    /// Creates the source of a released version.
    ///
    /// # Errors
    /// Fails if the text is not a version requirement.
    pub fn version(version: &str) -> Result<Library, String> {
        let is_known = |letter: char| letter.is_ascii_alphanumeric() || ".+-^~=*<>, ".contains(letter);
        let has_number = version.contains(|letter: char| letter.is_ascii_digit());
        if !has_number || !version.chars().all(is_known) || version.len() > 100 {
            return Err(format!(
                "expected a version such as `0.1.0`, found `{}`",
                version.escape_debug()
            ));
        }
        Ok(Library::Version {
            version: version.to_owned(),
        })
    }

    /// Creates the source of a commit.
    ///
    /// # Errors
    /// Fails if Cargo cannot fetch from the URL, if the URL contains a password, or if git does not
    /// allow `rev` as a name.
    pub fn git(url: &str, rev: &str) -> Result<Library, String> {
        let url = url::parse_git_url(url)
            .map_err(|reason| format!("invalid git URL `{}`: {reason}", shown_url(url)))?;
        let is_known = |letter: char| letter.is_ascii_alphanumeric() || "._/-".contains(letter);
        if rev.is_empty() || rev.starts_with(['-', '/']) || !rev.chars().all(is_known) || rev.len() > 200 {
            return Err(format!(
                "expected a commit or a tag, found `{}`",
                rev.escape_debug()
            ));
        }
        Ok(Library::Git {
            url,
            rev: rev.to_owned(),
        })
    }

    /// Creates the source of a directory.
    ///
    /// # Errors
    /// Fails if the path contains characters with a special meaning in TOML, make or a shell.
    pub fn path(path: &str) -> Result<Library, String> {
        let path = with_slashes(path);
        let is_special = |letter: char| letter.is_control() || "\"'`$#;&|<>".contains(letter);
        if path.is_empty() || path.contains(is_special) {
            return Err(format!(
                "expected a path without quotes and characters that shells interpret, found `{}`",
                path.escape_debug()
            ));
        }
        Ok(Library::Path { path })
    }

    /// Whether this is the library of this command's release, whose own dependencies are known.
    pub fn is_of_this_command(&self) -> bool {
        match self {
            Library::Version { version } => series(version) == series(env!("CARGO_PKG_VERSION")),
            Library::Git { rev, .. } => recorded_commit().is_some_and(|commit| commit.starts_with(&**rev)),
            // A checkout, which is usually the one that this command was built from.
            Library::Path { .. } => true,
        }
    }

    /// Returns the form of the source.
    pub fn form(&self) -> LibraryForm {
        match self {
            Library::Version { .. } => LibraryForm::Version,
            Library::Git { .. } => LibraryForm::Git,
            Library::Path { .. } => LibraryForm::Path,
        }
    }

    /// Keys and values of the source in Cargo.toml.
    pub fn keys(&self) -> Vec<(&'static str, &str)> {
        match self {
            Library::Version { version } => vec![("version", version)],
            Library::Git { url, rev } => vec![("git", url), ("rev", rev)],
            Library::Path { path } => vec![("path", path)],
        }
    }

    /// Content of the inline table for the dependency, e.g. `package = "rbuilder-runtime", version
    /// = "0.1.0"`.
    pub fn dependency(&self) -> String {
        let keys = std::iter::once(("package", PACKAGE)).chain(self.keys());
        let pairs: Vec<String> = keys
            .map(|(key, value)| format!("{key} = {}", Value::from(value)))
            .collect();
        pairs.join(", ")
    }

    /// Command that installs `rbuilder` from the same source. `version` is used for registries.
    pub fn install_command(&self, version: &str) -> String {
        let package = COMMAND;
        let source = match self {
            Library::Version { .. } => format!("{package} --version {}", quote_word(version)),
            Library::Git { url, rev } => format!("--git {} --rev {rev} {package}", quote_word(url)),
            Library::Path { path } => format!("--path {}", quote_word(&command_beside(path))),
        };
        format!("cargo install --locked {source}")
    }

    /// The same source relative to a directory `depth` levels below the project's root.
    #[must_use]
    pub fn seen_from(&self, depth: usize) -> Library {
        match self {
            Library::Path { path } if !is_absolute(path) => Library::Path {
                path: format!("{}{path}", "../".repeat(depth)),
            },
            other => other.clone(),
        }
    }
}

impl Display for Library {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Library::Version { version } => write!(f, "a registry, version {version}"),
            Library::Git { url, rev } => write!(f, "{url} at `{rev}`"),
            Library::Path { path } => f.write_str(path),
        }
    }
}

fn command_beside(library: &str) -> String {
    let library = library.trim_end_matches('/');
    let checkout = library
        .strip_suffix(FOLDER)
        .and_then(|rest| rest.strip_suffix('/'));
    match checkout {
        Some(checkout) => format!("{checkout}/cli"),
        None => format!("{library}/../../cli"),
    }
}

/// Whether a path is absolute on any platform, since the project may come from another one.
/// The part of a version, or of a caret requirement, that Cargo doesn't change without being asked.
pub(crate) fn series(version: &str) -> Vec<&str> {
    let numbers = version.trim_start_matches(['^', '~', '=', ' ']).split('.');
    let mut is_first = true;
    numbers
        .take_while(|number| std::mem::replace(&mut is_first, *number == "0"))
        .collect()
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.as_bytes().get(1) == Some(&b':')
}

fn shown_url(url: &str) -> String {
    let shown = match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        (None, Some((_, rest))) => format!("…@{rest}"),
        _ => url.to_owned(),
    };
    shown.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_names_our_package() {
        let forms = [
            Library::version("0.1.0"),
            Library::git("https://git.example.com/rbuilder", "0123abc"),
            Library::path("/srv/rbuilder/crates/runtime"),
        ];
        let dependencies = forms.map(|library| library.expect("a valid source").dependency());
        assert_eq!(
            dependencies,
            [
                "package = \"rbuilder-runtime\", version = \"0.1.0\"",
                "package = \"rbuilder-runtime\", git = \"https://git.example.com/rbuilder\", rev = \"0123abc\"",
                "package = \"rbuilder-runtime\", path = \"/srv/rbuilder/crates/runtime\"",
            ]
        );
    }

    #[test]
    fn rejects_special_characters() {
        for version in ["", "latest", "1\"", "1\n", "1 }"] {
            assert!(Library::version(version).is_err(), "{version:?}");
        }
        for rev in ["", "-x", "/x", "a b", "a\"", "$(x)"] {
            assert!(Library::git("https://git.example.com/r", rev).is_err(), "{rev:?}");
        }
        for path in ["", "a\nb", "a\"b", "$(x)", "a;b"] {
            assert!(Library::path(path).is_err(), "{path:?}");
        }
        let error = Library::git("https://me:secret@git.example.com/r", "a").expect_err("a password");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn path_is_relative_to_inner_directories() {
        let path = |path: &str| Library::path(path).expect("a valid path");
        assert_eq!(
            path("../r/crates/runtime").seen_from(2),
            path("../../../r/crates/runtime")
        );
        assert_eq!(path("/r/crates/runtime").seen_from(2), path("/r/crates/runtime"));
        assert_eq!(
            path("C:\\r\\crates\\runtime").seen_from(1),
            path("C:/r/crates/runtime")
        );
        assert_eq!(
            path("\\\\?\\C:\\r\\crates\\runtime").seen_from(1),
            path("C:/r/crates/runtime")
        );
        assert_eq!(path("\\\\server\\r").seen_from(1), path("//server/r"));
    }

    #[test]
    fn installs_the_command_from_the_same_source() {
        let git = Library::git("https://git.example.com/r", "0123abc");
        for (library, expected) in [
            (Library::version("0.1.0"), "rbuilder-cli --version 0.2.0"),
            (git, "--git https://git.example.com/r --rev 0123abc rbuilder-cli"),
            (Library::path("/srv/r/crates/runtime"), "--path /srv/r/cli"),
            (Library::path("../my r/crates/runtime/"), "--path '../my r/cli'"),
            (Library::path("crates/runtime"), "--path crates/runtime/../../cli"),
        ] {
            let library = library.expect("a valid source");
            let expected = format!("cargo install --locked {expected}");
            assert_eq!(library.install_command("0.2.0"), expected);
        }
    }
}
