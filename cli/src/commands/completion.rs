//! `rbuilder completion`: prints a completion script for a shell.

use crate::flags::command;
use crate::shell::Shell;
use anyhow::Result;

pub(super) fn run(kind: clap_complete::Shell, shell: &mut Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(kind, &mut command(), "rbuilder", &mut script);
    shell.out(&String::from_utf8(script)?);
    Ok(0)
}
