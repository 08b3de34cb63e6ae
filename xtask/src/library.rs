//! `cargo xtask library`: builds scaffolds whose library is from a git repository or from a path.
//! They must not need this checkout. There's a similar check for registries in
//! `cargo xtask release --dry-run`.
//!
//! We use the committed version of the library. There is a build folder shared with all other
//! scaffolds, so nothing but the library has to be compiled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::packages::name_of;
use crate::project::{cargo_home, edit, share_lockfile};
use crate::repo;
use crate::sh::Cmd;
use crate::value::{items, read_json, text};

/// Temporary folders have this prefix, which means that Cargo can't confuse them with anything
/// else.
const PREFIX: &str = "rbuilder-xtask-";

/// For each source of the library, creates a project and runs its tests.
pub(crate) fn check_sources() -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let home = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
    let name = home.path().file_name().context("the folder has no name")?;
    // Cargo uses the last segment of the URL as the name of a clone.
    let served = home.path().join(name).with_extension("git");
    clone(&["--bare"], repo::root(), &served)?;
    let commit = Cmd::new("git rev-parse HEAD").dir(repo::root()).read()?;
    let url = format!("file://{}", served.display());
    let mut flags = vec!["--library", "git", "--library-url", &url];
    flags.extend(["--library-rev", commit.trim()]);
    remove_downloads_after(&["git/db", "git/checkouts"], &name.to_string_lossy(), || {
        Project::init(&bin, &flags)?.check()
    })?;

    let copy = home.path().join("copy");
    clone(&[], &served, &copy)?;
    let flags = ["--library", "path", "--library-path", &copy.to_string_lossy()];
    // We need to build the command again. The first check has removed it if projects use the same
    // build folder as the workspace.
    Project::init(&repo::build_rbuilder()?, &flags)?.check()
}

fn clone(flags: &[&str], from: &Path, to: &Path) -> Result<()> {
    Cmd::new("git clone --quiet").args(flags).arg(from).arg(to).run()
}

pub(crate) struct Project {
    /// Keeps the temporary folder, which is removed on drop.
    _home: tempfile::TempDir,
    folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Project {
    /// Scaffolds an operator. Use the `flags` to select where the library is from.
    pub(crate) fn init(bin: &Path, flags: &[&str]) -> Result<Project> {
        let home = tempfile::Builder::new().prefix("rbuilder-library-").tempdir()?;
        let folder = home.path().join("shop-operator");
        fs_err::create_dir(&folder)?;
        println!();
        let rbuilder = |line: &str| repo::rbuilder_command(bin, &folder, line);
        rbuilder("init --domain example.com")?.args(flags).echo().run()?;
        rbuilder("create api --group shop --version v1alpha1 --kind Cup")?
            .echo()
            .run()?;
        share_lockfile(&folder)?;
        Ok(Project {
            _home: home,
            folder,
            variables: Vec::new(),
        })
    }

    /// Changes the registry of the library, which is crates.io by default.
    pub(crate) fn use_registry(mut self, name: &str, index: &str) -> Result<Project> {
        let path = self.folder.join("Cargo.toml");
        let found = "package = \"rbuilder-runtime\", ";
        let count = fs_err::read_to_string(&path)?.matches(found).count();
        ensure!(
            count == 2,
            "the scaffold names the library {count} times, not twice"
        );
        edit(&path, found, &format!("{found}registry = \"{name}\", "))?;
        let variable = format!("CARGO_REGISTRIES_{}_INDEX", name.to_uppercase());
        self.variables.push((variable, index.to_owned()));
        Ok(self)
    }

    /// Checks that all packages have the right source, and runs the project's tests.
    pub(crate) fn check(&self) -> Result<()> {
        let metadata = read_json(self.cargo("cargo metadata --format-version 1"))?;
        let ours = find_ours(&metadata, repo::root())?;
        self.cargo("cargo test --quiet")
            .without("KUBEBUILDER_ASSETS")
            .echo()
            .run()?;
        // Only this project uses the packages from this source, so we can remove what was built.
        let ours = ours.iter().flat_map(|name| ["--package", name]);
        self.cargo("cargo clean --quiet").args(ours).run()?;
        self.cargo("cargo clean --quiet --workspace").run()
    }

    fn cargo(&self, line: &str) -> Cmd {
        let command = repo::project_command(&self.folder, line);
        let variables = self.variables.iter();
        variables.fold(command, |command, (name, value)| command.env(name, value))
    }
}

/// Returns the names of all packages in a project that are ours. They must not be in `checkout`,
/// otherwise this returns an error.
fn find_ours(metadata: &Value, checkout: &Path) -> Result<BTreeSet<String>> {
    let checkout = fs_err::canonicalize(checkout)?;
    let mut ours = BTreeSet::new();
    for package in items(metadata, "/packages") {
        let (name, path) = (name_of(package)?, text(package, "/manifest_path"));
        let is_here = Path::new(path).starts_with(&checkout);
        ensure!(
            !is_here,
            "the project gets `{name}` from {path}, which is in this checkout"
        );
        if name.starts_with("rbuilder-") {
            ours.insert(name.to_owned());
        }
    }
    ensure!(
        ours.contains("rbuilder-runtime"),
        "the project does not depend on the library"
    );
    Ok(ours)
}

/// Calls `work`. After that, removes everything that has been added to these folders of the Cargo
/// home, if its name starts with `prefix`. Nobody else would use these downloads.
pub(crate) fn remove_downloads_after(
    folders: &[&str],
    prefix: &str,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let home = cargo_home()?;
    let list = || -> BTreeSet<PathBuf> {
        let entries = folders
            .iter()
            .filter_map(|folder| fs_err::read_dir(home.join(folder)).ok());
        let entries = entries.flatten().filter_map(Result::ok);
        let is_new = |entry: &fs_err::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
        entries.filter(is_new).map(|entry| entry.path()).collect()
    };
    let before = list();
    let result = work();
    for path in list().difference(&before) {
        fs_err::remove_dir_all(path)?;
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rejects_packages_in_checkout() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = fs_err::canonicalize(folder.path()).expect("it exists");
        let metadata = |path: &str| {
            let path = root.join(path);
            json!({ "packages": [{ "name": "rbuilder-runtime", "manifest_path": path.to_string_lossy() }] })
        };
        let error = find_ours(&metadata("crates/runtime/Cargo.toml"), &root)
            .unwrap_err()
            .to_string();
        assert!(error.contains("which is in this checkout"), "{error}");
        let ours = find_ours(&metadata("../elsewhere/Cargo.toml"), &root.join("here"));
        assert!(ours.is_err(), "the second folder does not exist");
        fs_err::create_dir(root.join("here")).expect("a folder");
        let ours = find_ours(&metadata("elsewhere/Cargo.toml"), &root.join("here")).expect("it is elsewhere");
        assert_eq!(ours, BTreeSet::from(["rbuilder-runtime".to_owned()]));
        assert!(find_ours(&json!({ "packages": [] }), &root).is_err());
    }
}
