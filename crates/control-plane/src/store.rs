//! The directory of installed binaries, in the layout of `setup-envtest` (e.g.
//! `k8s/1.35.2-linux-amd64`). This module only reads it; `rbuilder envtest` writes to it.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::release::{Platform, Release};

/// The programs of a complete installation.
pub const PROGRAMS: [&str; 2] = ["etcd", "kube-apiserver"];

/// The store, whose directory need not exist.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A version in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The version and its platform.
    pub release: Release,
    /// False if a program is missing, e.g. because `setup-envtest` was killed.
    pub is_complete: bool,
}

impl Store {
    /// Creates a store in a directory.
    #[must_use]
    pub fn within(folder: &Path) -> Self {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        Self {
            folder: folder.join("k8s"),
        }
    }

    /// Returns the current user's store, or `None` if the environment doesn't tell where the user's
    /// files are.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let folder = default_folder(std::env::consts::OS, &variable)?;
        Some(Self::within(&folder))
    }

    /// Returns the directory of the store.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The directory of a release, whether it's installed or not.
    #[must_use]
    pub fn path(&self, release: &Release) -> PathBuf {
        self.folder.join(release.directory())
    }

    /// Installed releases, newest first. Only directories named after a release count.
    ///
    /// # Errors
    ///
    /// Returns an error if the store exists but can't be read.
    pub fn installed(&self) -> Result<Vec<Installed>, Error> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut installed = Vec::new();
        for entry in entries {
            let entry = entry?;
            let release = entry.file_name().to_str().and_then(Release::from_directory);
            // Don't follow symbolic links, which may lead out of the store.
            if let (Some(release), true) = (release, is_directory(&entry.path())) {
                let is_complete = self.is_complete(&release);
                installed.push(Installed { release, is_complete });
            }
        }
        installed.sort_by(|a, b| b.release.cmp(&a.release));
        Ok(installed)
    }

    /// Returns true if a release is installed with all its programs.
    #[must_use]
    pub fn is_complete(&self, release: &Release) -> bool {
        let folder = self.path(release);
        is_directory(&folder) && has_programs(&folder, &release.platform)
    }

    /// The directory of the newest complete installation of Kubernetes 1.`minor` for the current
    /// platform.
    #[must_use]
    pub fn find_minor(&self, minor: u32) -> Option<PathBuf> {
        let platform = Platform::current();
        let mut installed = self.installed().unwrap_or_default().into_iter();
        let found = installed.find(|Installed { release, is_complete }| {
            let version = release.version;
            *is_complete && release.platform == platform && (version.major, version.minor) == (1, minor)
        });
        found.map(|installed| self.path(&installed.release))
    }
}

/// Returns true if a directory contains all programs for the platform.
#[must_use]
pub fn has_programs(folder: &Path, platform: &Platform) -> bool {
    PROGRAMS
        .iter()
        .all(|program| has_program(folder, platform, program))
}

/// Returns true if a directory contains a non-empty program file for the platform.
#[must_use]
pub fn has_program(folder: &Path, platform: &Platform, program: &str) -> bool {
    let path = folder.join(platform.file_name(program));
    path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0)
}

/// False for symbolic links to directories.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Same paths as `setup-envtest`.
fn default_folder(os: &str, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    match os {
        "windows" => Some(variable("LocalAppData")?.join("kubebuilder-envtest")),
        "macos" | "ios" => Some(variable("HOME")?.join("Library/Application Support/io.kubebuilder.envtest")),
        _ => {
            let data = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")));
            Some(data?.join("kubebuilder-envtest"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_newest_complete_patch_release() {
        let temp = tempfile::tempdir().unwrap();
        let store = Store::within(temp.path());
        assert_eq!(store.find_minor(36), None);
        let platform = Platform::current();
        let leaf = |version: &str| {
            let version = version.parse().unwrap();
            let platform = platform.clone();
            store.path(&Release { version, platform })
        };
        for version in ["1.35.9", "1.36.2", "1.36.10", "1.36.11", "1.37.0"] {
            fs::create_dir_all(leaf(version)).unwrap();
            for program in PROGRAMS {
                fs::write(leaf(version).join(platform.file_name(program)), version).unwrap();
            }
        }
        fs::write(leaf("1.36.11").join(platform.file_name("etcd")), "").unwrap();
        fs::create_dir(store.folder().join("1.36.12-plan9-mips")).unwrap();
        assert_eq!(store.find_minor(36), Some(leaf("1.36.10")));
        assert_eq!(store.find_minor(34), None);
    }

    #[test]
    fn store_is_at_path_of_setup_envtest() {
        let check = |os: &str, variables: &[(&str, &str)], expected: Option<&str>| {
            let variable = |name: &str| {
                let mut found = variables.iter().filter(|(known, _)| *known == name);
                found.next().map(|(_, value)| PathBuf::from(value))
            };
            assert_eq!(default_folder(os, &variable), expected.map(PathBuf::from), "{os}");
        };
        let home = ("HOME", "/home/a");
        check("linux", &[home], Some("/home/a/.local/share/kubebuilder-envtest"));
        check(
            "linux",
            &[home, ("XDG_DATA_HOME", "/data")],
            Some("/data/kubebuilder-envtest"),
        );
        check(
            "macos",
            &[home],
            Some("/home/a/Library/Application Support/io.kubebuilder.envtest"),
        );
        check(
            "windows",
            &[("LocalAppData", "/local")],
            Some("/local/kubebuilder-envtest"),
        );
        check("linux", &[], None);
        check("windows", &[home], None);
    }
}
