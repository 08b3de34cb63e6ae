//! Flags about the source of the library, for `library` and `init`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

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

impl LibraryForm {
    /// Returns the name used in flags.
    pub fn name(self) -> &'static str {
        match self {
            LibraryForm::Version => "version",
            LibraryForm::Git => "git",
            LibraryForm::Path => "path",
        }
    }

    /// Parses the name of a form.
    ///
    /// # Errors
    /// Fails with the accepted names if the name is unknown.
    pub(crate) fn parse(name: &str) -> Result<LibraryForm> {
        match LibraryForm::from_str(name, false) {
            Ok(form) => Ok(form),
            Err(_) => bail!(
                "expected `version`, `git` or `path`, found `{}`",
                name.escape_debug()
            ),
        }
    }
}

/// The source that flags ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibrarySource {
    /// The form.
    pub form: Option<LibraryForm>,
    /// Version requirement.
    pub version: Option<String>,
    /// URL of the git repository.
    pub url: Option<String>,
    /// Commit or tag.
    pub rev: Option<String>,
    /// Directory of the library, or of a checkout of rbuilder.
    pub path: Option<PathBuf>,
}

impl LibrarySource {
    /// Checks that all values belong to the form.
    ///
    /// # Errors
    /// Fails with the first value that belongs to another form.
    pub(crate) fn check(&self) -> Result<()> {
        let values = [
            (LibraryForm::Version, "version", self.version.is_some()),
            (LibraryForm::Git, "url", self.url.is_some()),
            (LibraryForm::Git, "rev", self.rev.is_some()),
            (LibraryForm::Path, "path", self.path.is_some()),
        ];
        for (form, name, is_given) in values {
            if let Some(asked) = self.form
                && is_given
                && form != asked
            {
                bail!(
                    "a {name} was given, but the form of the library is `{}`: expected the form `{}`",
                    asked.name(),
                    form.name()
                );
            }
        }
        Ok(())
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
            form: self.set,
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
            form: self.library,
            version: self.library_version.clone(),
            url: self.library_url.clone(),
            rev: self.library_rev.clone(),
            path: self.library_path.clone(),
        }
    }
}
