//! Scaffolds the project for the image, and provides the source of its library.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::assets::make_link;
use crate::committed::tracked_files;
use crate::packages::{name_of, published_packages};
use crate::project::{cargo_home, commit_all, scaffold, share_lockfile};
use crate::repo;
use crate::sh::Cmd;

/// A scaffold that has one API. There are copies of this repository next to it.
pub(super) struct Project {
    pub(super) folder: PathBuf,
    /// The files of this repository as in a clone, i.e. without any build output.
    pub(super) checkout: PathBuf,
    repository: String,
    revision: String,
    vendored: PathBuf,
    /// Same as `vendored`, but also contains our packages in the way a registry would provide them.
    packaged: PathBuf,
    version: String,
    cargo_home: PathBuf,
    /// Folder which contains the `rbuilder` binary.
    bin: PathBuf,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Library {
    Path,
    Git,
    Version,
}

impl Project {
    pub(super) fn scaffold(parent: &Path, bin: &Path) -> Result<Self> {
        let checkout = parent.join("rbuilder");
        copy_checkout(&checkout)?;
        let revision = commit_all(&checkout)?;
        let packages = published_packages()?;
        let version = packages.first().and_then(|package| package["version"].as_str());
        let project = Project {
            folder: parent.join("memcached-operator"),
            repository: format!("file://{}", checkout.display()),
            checkout,
            revision,
            vendored: parent.join("vendor"),
            packaged: parent.join("packaged"),
            version: version.context("there is no package to publish")?.to_owned(),
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
        project.package(&packages)?;
        Ok(project)
    }

    /// Returns the path of a Cargo configuration which uses the vendored sources in `/vendor`.
    pub(super) fn settings(&self) -> PathBuf {
        self.vendored.with_extension("toml")
    }

    /// Returns the folder with the vendored sources of the dependencies. It depends on where the
    /// library is from.
    pub(super) fn sources(&self, library: Library) -> &Path {
        match library {
            Library::Path | Library::Git => &self.vendored,
            Library::Version => &self.packaged,
        }
    }

    /// Switches the library to another source. The dependencies will be locked to the versions from
    /// this workspace.
    pub(super) fn use_library(&self, library: Library) -> Result<()> {
        let change = repo::rbuilder_command(&self.bin, &self.folder, "library --set")?;
        let change = match library {
            Library::Path => change.args(["path", "--path"]).arg(&self.checkout),
            Library::Git => change.args(["git", "--url", &self.repository, "--rev", &self.revision]),
            Library::Version => change.args(["version", "--version", &self.version]),
        };
        change.read()?;
        share_lockfile(&self.folder)?;
        // This updates the lockfile: the project is added to it, and packages that are only needed
        // by the workspace are removed.
        let lock = self.cargo("cargo metadata --quiet --format-version 1");
        let lock = match library {
            Library::Path | Library::Git => lock,
            // We need a replacement for the registry, because the packages aren't published yet.
            Library::Version => lock.arg("--config").arg(self.packaged.with_extension("toml")),
        };
        lock.read().map(drop)
    }

    /// Returns a Cargo command. Its home is a temporary folder, so all clones are removed along
    /// with the project.
    fn cargo(&self, line: &str) -> Cmd {
        repo::project_command(&self.folder, line).env("CARGO_HOME", &self.cargo_home)
    }

    fn vendor(&self) -> Result<()> {
        let settings = self
            .cargo("cargo vendor --locked --versioned-dirs")
            .arg(&self.vendored)
            .read()?;
        let settings = settings + "\n[net]\noffline = true\n";
        let write = |folder: &str, file: PathBuf| {
            let vendored = self.vendored.display().to_string();
            fs_err::write(file, settings.replace(&vendored, folder))
        };
        write("/vendor", self.settings())?;
        write(
            &self.packaged.display().to_string(),
            self.packaged.with_extension("toml"),
        )?;
        Ok(())
    }

    /// Packages our own crates like for publishing, and adds them to the sources of the
    /// dependencies.
    fn package(&self, packages: &[Value]) -> Result<()> {
        let target = self.packaged.with_extension("target");
        let names: Vec<&str> = packages.iter().map(name_of).collect::<Result<_>>()?;
        Cmd::new("cargo package --quiet --no-verify --target-dir")
            .arg(&target)
            .args(names.iter().flat_map(|name| ["--package", name]))
            .dir(&self.checkout)
            .run()?;
        Cmd::new("cp -al").arg(&self.vendored).arg(&self.packaged).run()?;
        for name in names {
            let package = format!("{name}-{}", self.version);
            let folder = self.packaged.join(&package);
            if folder.exists() {
                fs_err::remove_dir_all(&folder)?;
            }
            let archive = target.join("package").join(format!("{package}.crate"));
            unpack(&archive, &self.packaged, &folder)?;
        }
        Ok(())
    }
}

/// Unpacks a package to a folder with vendored sources. The checksum is taken from Cargo.lock.
fn unpack(archive: &Path, sources: &Path, folder: &Path) -> Result<()> {
    Cmd::new("tar -xzf").arg(archive).arg("-C").arg(sources).run()?;
    let printed = Cmd::new("sha256sum").arg(archive).read()?;
    let checksum = printed.split_whitespace().next();
    let record = json!({ "files": {}, "package": checksum });
    fs_err::write(folder.join(".cargo-checksum.json"), record.to_string())?;
    Ok(())
}

/// Creates another Cargo home. It uses the same downloaded packages as the default one.
fn share_registry(home: &Path) -> Result<()> {
    let usual = cargo_home()?;
    fs_err::create_dir(home)?;
    if usual.join("registry").is_dir() {
        make_link(&usual.join("registry"), &home.join("registry"))?;
    }
    Ok(())
}

/// Copies all files that git tracks or would add.
fn copy_checkout(to: &Path) -> Result<()> {
    for path in tracked_files()?.lines() {
        let original = repo::root().join(path);
        if original.is_file() {
            fs_err::create_dir_all(to.join(path).parent().context("a file has a folder")?)?;
            fs_err::copy(original, to.join(path))?;
        }
    }
    Ok(())
}
