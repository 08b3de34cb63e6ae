//! `rbuilder run`: runs the manager on this machine, like the `run` target in the Makefile.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use rbuilder_control_plane::Workspace;

use super::{find_binary, find_kubectl, manifests};
use crate::cluster::{Interrupt, run_in_foreground};
use crate::flags::RunFlags;
use crate::programs::find_program;
use crate::shell::Shell;

pub(super) const NO_CARGO: &str =
    "cargo was not found: install Rust (https://rustup.rs) and put its directory on the PATH";

pub(super) fn run(dir: &Path, flags: &RunFlags, shell: &mut Shell) -> Result<u8> {
    manifests::generate_if_asked(dir, &flags.generation, shell)?;
    let interrupt = Interrupt::install()?;
    let cargo = find_program("cargo").context(NO_CARGO)?;
    shell.note("cargo fmt\n");
    if !run_in_foreground(Command::new(&cargo).arg("fmt").current_dir(dir), &interrupt)?.success() {
        bail!("`cargo fmt` failed");
    }
    let mut command = Command::new(&cargo);
    command
        .args(["run", "--bin", &find_binary(dir), "--"])
        .args(&flags.arguments);
    command.current_dir(dir);
    // The manager uses the current context of its kubeconfig, so another context needs a temporary
    // kubeconfig.
    let mut workspace = None;
    if flags.cluster.context.is_some() {
        let kubeconfig = find_kubectl(dir, &flags.cluster.choice())?.read_kubeconfig()?;
        let made = workspace.insert(Workspace::create()?);
        command.env("KUBECONFIG", made.write("kubeconfig", &kubeconfig)?);
    } else if let Some(kubeconfig) = &flags.cluster.kubeconfig {
        command.env("KUBECONFIG", std::path::absolute(kubeconfig)?);
    }
    let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    shell.note(&format!("cargo {}\n", arguments.join(" ")));
    let status = run_in_foreground(&mut command, &interrupt)?;
    // No exit code: the manager was terminated by a signal.
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1))
}
