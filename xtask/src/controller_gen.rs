//! Go's controller-gen, for the tasks that hold rbuilder to it: built once and kept in the user's cache folder.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::assets;
use crate::sh::Cmd;

/// The version that rbuilder is held to.
pub(crate) const VERSION: &str = "v0.21.0";

/// The binary; builds it where it is missing, which takes Go and about a minute.
///
/// # Errors
///
/// Go is missing, or the build failed.
pub(crate) fn ensure_controller_gen() -> Result<PathBuf> {
    let folder = assets::cache_folder()?.join(format!("rbuilder/controller-gen/{VERSION}"));
    let binary = folder.join("controller-gen");
    if !binary.is_file() {
        build(&folder)?;
    }
    Ok(binary)
}

fn build(folder: &Path) -> Result<()> {
    if !assets::has_go() {
        bail!(
            "controller-gen is built from its Go module, and `go` is not on the path: install Go 1.26 or newer"
        );
    }
    eprintln!("building controller-gen {VERSION}; this takes a minute, once");
    fs_err::create_dir_all(folder)?;
    // Installed beside the place and moved there, so that a build that was killed leaves nothing under the name.
    let partial = tempfile::Builder::new().prefix(".build-").tempdir_in(folder)?;
    Cmd::new("go install")
        .arg(format!(
            "sigs.k8s.io/controller-tools/cmd/controller-gen@{VERSION}"
        ))
        .env("GOBIN", partial.path())
        .env("CGO_ENABLED", "0")
        .run()?;
    fs_err::rename(
        partial.path().join("controller-gen"),
        folder.join("controller-gen"),
    )?;
    Ok(())
}
