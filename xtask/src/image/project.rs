//! The project whose image is built, and where its library comes from.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::buildah::make_link;
use crate::project::{cargo_home, commit_all, scaffold, share_lockfile};
use crate::repo;
use crate::sh::Cmd;

/// A scaffold with one API, beside copies of this repository.
pub(super) struct Project {
    pub(super) folder: PathBuf,
    /// The files of this repository as a clone has them, without what was built.
    pub(super) checkout: PathBuf,
    repository: String,
    revision: String,
    vendored: PathBuf,
    cargo_home: PathBuf,
    /// The folder of the command.
    bin: PathBuf,
}

/// The source of the library.
#[derive(Clone, Copy)]
pub(super) enum Library {
    Path,
    Git,
}

impl Project {
    /// Makes the project, and a folder with the sources of all of its dependencies.
    ///
    /// # Errors
    ///
    /// A command failed.
    pub(super) fn scaffold(parent: &Path, bin: &Path) -> Result<Self> {
        let checkout = parent.join("rbuilder");
        copy_checkout(&checkout)?;
        let revision = commit_all(&checkout)?;
        let project = Project {
            folder: parent.join("memcached-operator"),
            repository: format!("file://{}", checkout.display()),
            checkout,
            revision,
            vendored: parent.join("vendor"),
            cargo_home: parent.join("cargo"),
            bin: bin.to_owned(),
        };
        share_registry(&project.cargo_home)?;
        let commands = [
            "init --domain example.com --library path",
            "create api --group cache --version v1alpha1 --kind Memcached",
        ];
        scaffold(bin, &project.folder, &commands)?;
        project.use_library(Library::Git)?;
        project.vendor()?;
        Ok(project)
    }

    /// Returns the folder with the sources of all dependencies; Cargo's settings for it are beside it.
    pub(super) fn vendored(&self) -> &Path {
        &self.vendored
    }

    /// Refers to the library in one of its forms, and locks the dependencies as this workspace does.
    ///
    /// # Errors
    ///
    /// The dependency cannot be changed, or Cargo cannot resolve it.
    pub(super) fn use_library(&self, library: Library) -> Result<()> {
        let change = repo::rbuilder_command(&self.bin, &self.folder, "library --set")?;
        let change = match library {
            Library::Path => change.args(["path", "--path"]).arg(&self.checkout),
            Library::Git => change.args(["git", "--url", &self.repository, "--rev", &self.revision]),
        };
        change.read()?;
        share_lockfile(&self.folder)?;
        // Adds the project to the lockfile, and leaves out what only the workspace needs.
        self.cargo("cargo metadata --quiet --format-version 1")
            .read()
            .map(drop)
    }

    /// A command that keeps what it clones in a folder which goes with the project.
    fn cargo(&self, line: &str) -> Cmd {
        repo::project_command(&self.folder, line).env("CARGO_HOME", &self.cargo_home)
    }

    fn vendor(&self) -> Result<()> {
        let settings = self
            .cargo("cargo vendor --locked --versioned-dirs")
            .arg(&self.vendored)
            .read()?;
        let folder = self.vendored.display().to_string();
        let settings = settings.replace(&folder, "/vendor");
        fs_err::write(
            self.vendored.with_file_name("vendor.toml"),
            settings + "\n[net]\noffline = true\n",
        )?;
        Ok(())
    }
}

/// Makes a home for Cargo with the packages that were downloaded before.
fn share_registry(home: &Path) -> Result<()> {
    let usual = cargo_home()?;
    fs_err::create_dir(home)?;
    if usual.join("registry").is_dir() {
        make_link(&usual.join("registry"), &home.join("registry"))?;
    }
    Ok(())
}

/// Copies the files that git knows or would add.
fn copy_checkout(to: &Path) -> Result<()> {
    let list = Cmd::new("git ls-files --cached --others --exclude-standard")
        .dir(repo::root())
        .read()?;
    for path in list.lines() {
        let original = repo::root().join(path);
        if original.is_file() {
            let copy = to.join(path);
            fs_err::create_dir_all(copy.parent().context("a file has a folder")?)?;
            fs_err::copy(original, copy)?;
        }
    }
    Ok(())
}
