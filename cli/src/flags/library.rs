//! Flags about the source of the library, for `library` and `init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rbuilder_project::library::{self, LibrarySource};

use super::PlanFlags;

/// A form of the dependency on the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LibraryForm {
    /// A released version, from a registry
    Version,
    /// A commit of a git repository
    Git,
    /// A directory on this machine
    Path,
}

impl From<LibraryForm> for library::LibraryForm {
    fn from(form: LibraryForm) -> Self {
        match form {
            LibraryForm::Version => library::LibraryForm::Version,
            LibraryForm::Git => library::LibraryForm::Git,
            LibraryForm::Path => library::LibraryForm::Path,
        }
    }
}

/// Flags of `library`.
#[derive(Clone, Debug, Args)]
pub struct LibraryFlags {
    /// Source to change to [default: show the current one]
    #[arg(long, value_enum, value_name = "FORM")]
    pub set: Option<LibraryForm>,
    /// Version requirement, for `--set version` [default: the version of this command]
    #[arg(long, requires = "set", value_name = "VERSION")]
    pub version: Option<String>,
    /// URL of the git repository, for `--set git` [default: the one that this command was built from]
    #[arg(long, requires = "set", value_name = "URL")]
    pub url: Option<String>,
    /// Commit or tag, for `--set git` [default: the one that this command was built from]
    #[arg(long, requires = "set", value_name = "COMMIT")]
    pub rev: Option<String>,
    /// Checkout of rbuilder, for `--set path` [default: the one that this command was built from]
    #[arg(long, requires = "set", value_name = "DIR")]
    pub path: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

impl LibraryFlags {
    /// Returns the source that the flags select.
    pub(crate) fn source(&self) -> LibrarySource {
        LibrarySource {
            form: self.set.map(Into::into),
            version: self.version.clone(),
            url: self.url.clone(),
            rev: self.rev.clone(),
            path: self.path.clone(),
        }
    }
}

/// Flags of `init` about the library.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Library")]
pub struct InitLibraryFlags {
    /// Source of the rbuilder library [env: RBUILDER_LIBRARY] [default: the same as for this command: a registry, a git
    /// repository or a directory]
    #[arg(long, value_enum, value_name = "FORM")]
    pub library: Option<LibraryForm>,
    /// Version requirement, for `--library version` [default: the version of this command]
    #[arg(long, requires = "library", value_name = "VERSION")]
    pub library_version: Option<String>,
    /// URL of the git repository, for `--library git` [default: the one that this command was built from]
    #[arg(long, requires = "library", value_name = "URL")]
    pub library_url: Option<String>,
    /// Commit or tag, for `--library git` [default: the one that this command was built from]
    #[arg(long, requires = "library", value_name = "COMMIT")]
    pub library_rev: Option<String>,
    /// Checkout of rbuilder, for `--library path` [default: the one that this command was built from]
    #[arg(long, requires = "library", value_name = "DIR")]
    pub library_path: Option<PathBuf>,
}

impl InitLibraryFlags {
    /// Returns the source that the flags select.
    pub(crate) fn source(&self) -> LibrarySource {
        LibrarySource {
            form: self.library.map(Into::into),
            version: self.library_version.clone(),
            url: self.library_url.clone(),
            rev: self.library_rev.clone(),
            path: self.library_path.clone(),
        }
    }
}
