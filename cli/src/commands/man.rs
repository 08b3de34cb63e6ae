//! `rbuilder man`: prints the manual page of a command, for packagers.

use crate::flags::command;
use crate::shell::Shell;
use anyhow::{Result, bail};

pub(super) fn run(words: &[String], shell: &mut Shell) -> Result<u8> {
    let mut command = command();
    command.build();
    let mut name = "rbuilder".to_owned();
    for word in words {
        let Some(inner) = command.find_subcommand(word) else {
            bail!("unknown command `{} {word}`", name.replace('-', " "));
        };
        command = inner.clone();
        name = format!("{name}-{word}");
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).title(name).render(&mut page)?;
    shell.out(&String::from_utf8(page)?);
    Ok(0)
}
