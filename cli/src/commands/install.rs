//! `rbuilder install` and `rbuilder uninstall`: applies and deletes the CRDs of the project, as the targets of its
//! Makefile do, without make and a shell.

use std::path::Path;

use anyhow::Result;

use super::{find_kubectl, manifests};
use crate::flags::{DeleteFlags, InstallCrdsFlags};
use crate::shell::Shell;

/// The directory that is rendered.
const CRDS: &str = "config/crd";

/// Server-side apply, because client-side apply stores the object in an annotation, and a CRD can exceed its size limit.
pub(super) const APPLY: [&str; 5] = ["apply", "--server-side", "--force-conflicts", "-f", "-"];

pub(super) fn install(dir: &Path, flags: &InstallCrdsFlags, shell: &mut Shell) -> Result<u8> {
    let kubectl = find_kubectl(dir, &flags.cluster)?;
    manifests::generate_if_asked(dir, &flags.generation, shell)?;
    let crds = kubectl.render(CRDS)?;
    if crds.trim().is_empty() {
        shell.note("no CRDs to install\n");
        return Ok(0);
    }
    kubectl.show_pipe(CRDS, &APPLY, shell);
    kubectl.run(&APPLY, &crds, shell)?;
    Ok(0)
}

pub(super) fn uninstall(dir: &Path, flags: &DeleteFlags, shell: &mut Shell) -> Result<u8> {
    delete(CRDS, dir, flags, shell)
}

/// Deletes what a directory of the project renders to.
pub(super) fn delete(folder: &str, dir: &Path, flags: &DeleteFlags, shell: &mut Shell) -> Result<u8> {
    let kubectl = find_kubectl(dir, &flags.cluster)?;
    let objects = kubectl.render(folder)?;
    if objects.trim().is_empty() {
        shell.note("nothing to delete\n");
        return Ok(0);
    }
    let ignore = format!("--ignore-not-found={}", flags.ignore_not_found);
    let arguments = ["delete", &ignore, "-f", "-"];
    kubectl.show_pipe(folder, &arguments, shell);
    kubectl.run(&arguments, &objects, shell)?;
    Ok(0)
}
