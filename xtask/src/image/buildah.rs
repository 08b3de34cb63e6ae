//! Buildah, and base images made of this machine.

use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::project::{Library, Project};
use crate::sh::{Cmd, write_program};

/// Images and containers in a folder of their own, which goes with this value.
pub(super) struct Buildah {
    folder: PathBuf,
    driver: &'static str,
}

impl Buildah {
    /// Opens an empty store below a folder; installs Buildah where it is missing.
    ///
    /// # Errors
    ///
    /// Buildah could not be installed, or cannot run here.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        ensure_buildah()?;
        // Overlays share what is in several layers; they are not allowed everywhere.
        for driver in ["overlay", "vfs"] {
            let buildah = Buildah {
                folder: folder.join(driver),
                driver,
            };
            if buildah.command("from scratch").succeeds() {
                return Ok(buildah);
            }
        }
        bail!("buildah can keep images with neither `overlay` nor `vfs`: {NEEDS}");
    }

    /// A command on the store.
    pub(super) fn command(&self, line: &str) -> Cmd {
        as_root("buildah")
            .arg("--root")
            .arg(self.folder.join("store"))
            .arg("--runroot")
            .arg(self.folder.join("run"))
            .arg("--storage-driver")
            .arg(self.driver)
            .words(line)
    }

    /// Makes an image of a folder with a Dockerfile.
    fn import(&self, folder: &Path, name: &str) -> Result<()> {
        self.command("bud --isolation chroot --quiet --tag")
            .arg(name)
            .arg(folder)
            .read()
            .map(drop)
    }

    /// Builds an image and returns what was printed.
    ///
    /// # Errors
    ///
    /// The build failed; the error has the output.
    pub(super) fn build(&self, build: &Build<'_>, name: &str) -> Result<String> {
        let (printed, result) = self.try_build(build, name)?;
        result.with_context(|| format!("{name} cannot be built:\n{printed}"))?;
        Ok(printed)
    }

    /// Builds what cannot be built, and returns what was printed.
    ///
    /// # Errors
    ///
    /// It could be built.
    pub(super) fn fail_to_build(&self, build: &Build<'_>) -> Result<String> {
        let (printed, result) = self.try_build(build, "localhost/failing")?;
        ensure!(result.is_err(), "it can be built:\n{printed}");
        Ok(printed)
    }

    fn try_build(&self, build: &Build<'_>, name: &str) -> Result<(String, Result<()>)> {
        let mut output = tempfile::tempfile()?;
        let mut command = self
            .command("bud --isolation chroot --pull=never --layers --tag")
            .arg(name)
            .args(build.arguments());
        command = command.dir(&build.project.folder).echo();
        let result = command.run_into(&output);
        let mut printed = String::new();
        output.rewind()?;
        output.read_to_string(&mut printed)?;
        Ok((printed, result))
    }
}

impl Drop for Buildah {
    fn drop(&mut self) {
        // Working containers hold mounts, and files of the store belong to root.
        let _ = self.command("rm --all").succeeds();
        let _ = as_root("rm").arg("-rf").arg(&self.folder).succeeds();
    }
}

/// The conditions under which images can be built.
const NEEDS: &str = "it takes Linux, and root or `sudo` without a password";

/// A program that runs as root, with its first arguments.
pub(super) fn as_root(line: &str) -> Cmd {
    match Cmd::new("test -w /root").succeeds() {
        true => Cmd::new(line),
        false => Cmd::new("sudo --non-interactive --preserve-env").words(line),
    }
}

/// Installs Debian's and Ubuntu's package, where this process may.
fn ensure_buildah() -> Result<()> {
    if Cmd::new("buildah --version").succeeds() {
        return Ok(());
    }
    eprintln!("installing buildah");
    let apt = |line: &str| {
        as_root("apt-get")
            .words(line)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .read()
    };
    let install = "install --yes --no-install-recommends buildah";
    apt(install)
        .or_else(|_| apt("update").and_then(|_| apt(install)))
        .map(drop)
        .with_context(|| format!("buildah is not on the path and could not be installed: {NEEDS}"))
}

/// One way to build the image of a project.
pub(super) struct Build<'a> {
    base: &'a Base,
    project: &'a Project,
    library: Library,
    has_checkout: bool,
    /// The architecture to build for, if Cargo is a stand-in.
    other_arch: Option<&'static str>,
}

impl<'a> Build<'a> {
    /// Builds with the library that the project uses now.
    pub(super) fn new(base: &'a Base, project: &'a Project, library: Library) -> Self {
        Build {
            base,
            project,
            library,
            has_checkout: false,
            other_arch: None,
        }
    }

    /// Passes the checkout of rbuilder, as `make docker-build` does where Cargo.toml refers to it by a path.
    pub(super) fn with_checkout(self) -> Self {
        Build {
            has_checkout: true,
            ..self
        }
    }

    /// Builds for another architecture, with programs that note how they are called.
    pub(super) fn with_stand_ins(self, arch: &'static str) -> Self {
        Build {
            other_arch: Some(arch),
            ..self
        }
    }

    fn arguments(&self) -> Vec<String> {
        let (build_image, base_image) = match self.other_arch {
            None => (Base::BUILD, Base::RUN),
            Some(_) => (Base::STAND_INS, "scratch"),
        };
        let mut arguments = vec![
            format!("--build-arg=BUILD_IMAGE={build_image}"),
            format!("--build-arg=BASE_IMAGE={base_image}"),
            // Buildah does not know it in the instruction `FROM` when it builds for another platform.
            format!("--build-arg=BUILDPLATFORM=linux/{}", machine_arch()),
            "--volume=/usr:/usr:ro".to_owned(),
            format!("--volume={}:/toolchain:ro", self.base.toolchain.display()),
            format!(
                "--volume={}:/vendor:ro",
                self.project.sources(self.library).display()
            ),
        ];
        if self.has_checkout {
            arguments.push(format!(
                "--build-context=rbuilder={}",
                self.project.checkout.display()
            ));
        }
        arguments.extend(self.other_arch.map(|arch| format!("--platform=linux/{arch}")));
        arguments.push(".".to_owned());
        arguments
    }
}

/// Stand-ins for the images of Rust and distroless: folders for what a build mounts from this machine, and the libraries
/// that a program linked here needs.
pub(super) struct Base {
    toolchain: PathBuf,
    /// Cargo's settings for the folder of sources.
    settings: PathBuf,
    folder: tempfile::TempDir,
    is_optimized: bool,
}

impl Base {
    const BUILD: &'static str = "localhost/rust";
    const RUN: &'static str = "localhost/cc";
    const STAND_INS: &'static str = "localhost/stand-ins";

    /// Bases that compile with this machine's Rust.
    ///
    /// # Errors
    ///
    /// There is no Rust.
    pub(super) fn of_this_machine(settings: PathBuf, is_optimized: bool) -> Result<Self> {
        let toolchain = Cmd::new("rustc --print sysroot").read()?;
        Ok(Base {
            toolchain: toolchain.trim_end().into(),
            settings,
            folder: tempfile::Builder::new().prefix("rbuilder-base-").tempdir()?,
            is_optimized,
        })
    }

    /// Makes the images.
    ///
    /// # Errors
    ///
    /// A file of this machine cannot be read, or Buildah failed.
    pub(super) fn import(&self, buildah: &Buildah) -> Result<()> {
        let folder = self.folder.path();
        let settings = match self.is_optimized {
            true => "",
            // The image is the same except for the speed of its manager.
            false => {
                " CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64"
            }
        };
        let environment = format!("PATH=/toolchain/bin:/usr/bin:/bin CARGO_HOME=/cargo{settings}");
        write_build_root(&folder.join("build"), &self.settings, &environment)?;
        buildah.import(&folder.join("build"), Self::BUILD)?;
        write_stand_ins(&folder.join("build"))?;
        buildah.import(&folder.join("build"), Self::STAND_INS)?;
        write_run_root(&folder.join("run"))?;
        buildah.import(&folder.join("run"), Self::RUN)
    }
}

/// Folders into which a build mounts the compiler of this machine.
fn write_build_root(folder: &Path, settings: &Path, environment: &str) -> Result<()> {
    let root = folder.join("root");
    for name in [
        "usr",
        "etc",
        "tmp",
        "proc",
        "dev",
        "sys",
        "toolchain",
        "vendor",
        "cargo",
        "var/lib/apt/lists",
    ] {
        fs_err::create_dir_all(root.join(name))?;
    }
    for name in ["bin", "lib", "lib64", "sbin"] {
        make_link(&Path::new("usr").join(name), &root.join(name))?;
    }
    if Path::new("/etc/alternatives").is_dir() {
        // Debian's `cc` is a link that leads there.
        Cmd::new("cp -a /etc/alternatives").arg(root.join("etc")).run()?;
    }
    fs_err::copy(settings, root.join("cargo/config.toml"))?;
    let dockerfile = format!("FROM scratch\nCOPY root /\nENV {environment}\n");
    fs_err::write(folder.join("Dockerfile"), dockerfile)?;
    Ok(())
}

/// Puts programs in the place of Cargo, rustup and apt-get. What was called ends up in the manager's file.
fn write_stand_ins(folder: &Path) -> Result<()> {
    let programs = folder.join("root/stand-ins");
    fs_err::create_dir_all(&programs)?;
    let note = "#!/bin/sh\necho \"${0##*/} $*\" >> /calls\n";
    let cargo = format!("{note}mkdir -p \"target/$7/release\"\ncp /calls \"target/$7/release/manager\"\n");
    for (name, script) in [("cargo", cargo.as_str()), ("rustup", note), ("apt-get", note)] {
        write_program(&programs.join(name), script)?;
    }
    let dockerfile = "FROM scratch\nCOPY root /\nENV PATH=/stand-ins:/usr/bin:/bin\n";
    fs_err::write(folder.join("Dockerfile"), dockerfile)?;
    Ok(())
}

/// The libraries of distroless/cc, and no more: no shell either.
fn write_run_root(folder: &Path) -> Result<()> {
    let root = folder.join("root");
    for name in ["lib", "lib64", "etc", "tmp", "proc", "dev", "sys"] {
        fs_err::create_dir_all(root.join(name))?;
    }
    let loader = match machine_arch() {
        "amd64" => "lib64/ld-linux-x86-64.so.2",
        _ => "lib/ld-linux-aarch64.so.1",
    };
    fs_err::copy(Path::new("/").join(loader), root.join(loader))?;
    for name in ["libc.so.6", "libm.so.6", "libgcc_s.so.1"] {
        let path = Cmd::new("cc").arg(format!("-print-file-name={name}")).read()?;
        fs_err::copy(path.trim_end(), root.join("lib").join(name))?;
    }
    let user = "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n";
    fs_err::write(root.join("etc/passwd"), user)?;
    fs_err::write(folder.join("Dockerfile"), "FROM scratch\nCOPY root /\n")?;
    Ok(())
}

#[cfg(unix)]
pub(super) fn make_link(original: &Path, link: &Path) -> Result<()> {
    fs_err::os::unix::fs::symlink(original, link)?;
    Ok(())
}

/// The task needs what only Linux has; xtask compiles everywhere for the steps that do not.
#[cfg(not(unix))]
pub(super) fn make_link(_: &Path, _: &Path) -> Result<()> {
    bail!("{NEEDS}")
}

/// The architecture of this machine, as images name it.
pub(super) fn machine_arch() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    }
}

/// Returns true if Buildah printed that it used an earlier result of the instruction that begins like this.
pub(super) fn is_cached(printed: &str, instruction: &str) -> bool {
    let mut lines = printed.lines();
    let is_found = lines.any(|line| line.contains(&format!(": {instruction}")));
    is_found
        && lines
            .next()
            .is_some_and(|line| line.starts_with("--> Using cache"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cached_instruction_is_told_from_one_that_ran() {
        let check = |printed: &str, expected: bool| assert_eq!(is_cached(printed, "RUN cargo"), expected);
        check(
            "[1/2] STEP 4/5: RUN cargo build\n--> Using cache 5ef\n--> 5ef\n",
            true,
        );
        check(
            "[1/2] STEP 4/5: RUN cargo build\nCompiling kube\n--> 5ef\n",
            false,
        );
        check("[1/2] STEP 4/5: RUN rustup\n--> Using cache 5ef\n", false);
    }
}
