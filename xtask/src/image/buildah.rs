//! Runs Buildah. The base images are created from files on this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::project::{Library, Project};
use crate::assets::architecture;
use crate::run::{BASH, capture, run_script};
use crate::sh::Cmd;
use crate::tools;

/// A store for images. The folder is removed on drop.
pub(super) struct Buildah {
    folder: PathBuf,
    driver: &'static str,
}

impl Buildah {
    /// Creates an empty store in a folder. Also installs Buildah if necessary.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        if !Cmd::new("buildah --version").succeeds() {
            let apt = "apt-get install --yes --no-install-recommends buildah";
            as_root("sh -c")
                .arg(format!("{apt} || (apt-get update && {apt})"))
                .run()?;
        }
        // We prefer overlays because layers can be shared, but some systems don't allow them.
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

    pub(super) fn command(&self, line: &str) -> Cmd {
        as_root("buildah --root")
            .arg(self.folder.join("store"))
            .arg("--runroot")
            .arg(self.folder.join("run"))
            .args(["--storage-driver", self.driver])
            .words(line)
    }

    /// Builds an image from a folder that contains a Dockerfile.
    fn import(&self, folder: &Path, name: &str) -> Result<()> {
        let import = self
            .command("bud --isolation chroot --quiet --tag")
            .arg(name)
            .arg(folder);
        import.read().map(drop)
    }

    pub(super) fn build(&self, build: &Build<'_>, name: &str) -> Result<String> {
        let (result, printed) = self.try_build(build, name)?;
        result.with_context(|| format!("{name} cannot be built:\n{printed}"))?;
        Ok(printed)
    }

    /// Tries to build an image and expects the build to fail. Returns the output.
    pub(super) fn fail_to_build(&self, build: &Build<'_>) -> Result<String> {
        let (result, printed) = self.try_build(build, "localhost/failing")?;
        ensure!(result.is_err(), "it can be built:\n{printed}");
        Ok(printed)
    }

    fn try_build(&self, build: &Build<'_>, name: &str) -> Result<(Result<()>, String)> {
        let command = self
            .command("bud --isolation chroot --pull=never --layers --tag")
            .arg(name)
            .args(build.arguments())
            .dir(&build.project.folder);
        capture(command.echo())
    }
}

impl Drop for Buildah {
    fn drop(&mut self) {
        // Working containers have mounts, so they must be removed first. The files in the store
        // belong to root.
        let _ = self.command("rm --all").succeeds();
        let _ = as_root("rm").arg("-rf").arg(&self.folder).succeeds();
    }
}

/// Describes what is required for building images.
const NEEDS: &str = "it takes Linux, and root or `sudo` without a password";

pub(super) fn as_root(line: &str) -> Cmd {
    match Cmd::new("test -w /root").succeeds() {
        true => Cmd::new(line),
        false => Cmd::new("sudo --non-interactive --preserve-env").words(line),
    }
}

pub(super) struct Build<'a> {
    base: &'a Base,
    project: &'a Project,
    library: Library,
    has_checkout: bool,
    /// If this is set, we build for another architecture, with a stand-in for Cargo.
    other_arch: Option<&'static str>,
}

impl<'a> Build<'a> {
    pub(super) fn new(base: &'a Base, project: &'a Project, library: Library) -> Self {
        Build {
            base,
            project,
            library,
            has_checkout: false,
            other_arch: None,
        }
    }

    /// Adds our checkout to the build. `make docker-build` does the same if there is a path to
    /// rbuilder in Cargo.toml.
    pub(super) fn with_checkout(self) -> Self {
        Build {
            has_checkout: true,
            ..self
        }
    }

    /// Builds for a different architecture. Programs are replaced with stand-ins that record their
    /// arguments.
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
            // Needed for `FROM`, since Buildah doesn't set this when it builds for another
            // platform.
            format!("--build-arg=BUILDPLATFORM=linux/{}", architecture()),
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

/// Replacements for the Rust image and the distroless image.
///
/// There are only mount points for the toolchain of this machine, and the libraries needed by
/// programs linked on this machine.
pub(super) struct Base {
    toolchain: PathBuf,
    /// Cargo configuration that uses the vendored sources.
    settings: PathBuf,
    folder: tempfile::TempDir,
    is_optimized: bool,
}

impl Base {
    const BUILD: &'static str = "localhost/rust";
    const RUN: &'static str = "localhost/cc";
    const STAND_INS: &'static str = "localhost/stand-ins";

    /// Creates the base images. They compile with the Rust of this machine.
    pub(super) fn of_this_machine(settings: PathBuf, is_optimized: bool) -> Result<Self> {
        let toolchain = Cmd::new("rustc --print sysroot").read()?;
        Ok(Base {
            toolchain: toolchain.trim_end().into(),
            settings,
            folder: tempfile::Builder::new().prefix("rbuilder-base-").tempdir()?,
            is_optimized,
        })
    }

    /// Builds the base images and adds them to the store.
    pub(super) fn import(&self, buildah: &Buildah) -> Result<()> {
        let folder = self.folder.path();
        let settings = match self.is_optimized {
            true => "",
            // We don't need optimizations here, since we don't care how fast the manager is.
            false => {
                " CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64"
            }
        };
        let environment = format!("PATH=/toolchain/bin:/cargo/bin:/usr/bin:/bin CARGO_HOME=/cargo{settings}");
        let chef = tools::ensure_tool("cargo-chef")?;
        for (function, root, image) in [
            ("build_root", "build", Self::BUILD),
            ("stand_ins", "build", Self::STAND_INS),
            ("run_root", "run", Self::RUN),
        ] {
            let script = format!("{}\n{function}", include_str!("roots.sh"));
            let bash = Cmd::new(BASH)
                .dir(folder)
                .env("SETTINGS", &self.settings)
                .env("CHEF", &chef)
                .env("ENVIRONMENT", &environment);
            run_script(bash, &script, &[])?;
            buildah.import(&folder.join(root), image)?;
        }
        Ok(())
    }
}

/// Returns true if Buildah didn't run an instruction because the result was cached. `instruction`
/// is compared with its start.
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
    fn recognizes_cached_instruction() {
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
