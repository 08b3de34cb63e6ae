//! `rbuilder completion`: prints a completion script for a shell.

use anyhow::Result;
use clap::CommandFactory;

use crate::flags::Cli;
use crate::shell::Shell;

pub(super) fn run(kind: clap_complete::Shell, shell: &mut Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(kind, &mut Cli::command(), "rbuilder", &mut script);
    shell.out(&String::from_utf8(script)?);
    Ok(0)
}
