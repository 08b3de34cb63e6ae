//! The library source requested by the user.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// A form of the dependency on the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryForm {
    /// A released version, from a registry.
    Version,
    /// A commit of a git repository.
    Git,
    /// A directory on this machine.
    Path,
}

impl LibraryForm {
    /// Name of the form in flags and environment variables.
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
    pub fn parse(name: &str) -> Result<LibraryForm> {
        match name {
            "version" => Ok(LibraryForm::Version),
            "git" => Ok(LibraryForm::Git),
            "path" => Ok(LibraryForm::Path),
            _ => bail!(
                "expected `version`, `git` or `path`, found `{}`",
                name.escape_debug()
            ),
        }
    }
}

/// A requested source. Missing values depend on how the command was built.
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
    pub fn check(&self) -> Result<()> {
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
