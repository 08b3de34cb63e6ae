//! The rbuilder command as a library, so that tests can run it without starting a process.
//!
//! Every command that changes files goes through the same steps: flags → request →
//! [`Plan`](rbuilder_project::plan::Plan) → show, compare or apply. All reading and writing is done
//! by `rbuilder-project`, and all printing by [`shell`]. The one exception is the store of
//! `rbuilder envtest`, which belongs to no project and is handled by
//! `rbuilder_control_plane::downloads`.

mod cluster;
pub mod commands;
mod crd_file;
mod engine;
pub mod flags;
pub mod peers;
mod replacement;
mod report;
pub mod request;
mod sarif;
pub mod shell;

use std::ffi::OsString;

use clap::error::ErrorKind;
use rbuilder_products::{api_docs, bundle, chart, grafana};
use rbuilder_project::{
    color, count, disk, edit, library, line_ends, overlay, paths, plan, posix, programs, project, render,
    tree,
};

use crate::commands::{Row, SourceErrors};
use crate::flags::Output;
use crate::shell::{Shell, Verbosity};

/// Runs a command line, including the program's name. Returns the exit code: 0 for success, 1 if
/// the command failed or `--check` found a difference, 2 for an invalid command line.
pub fn run<I, T>(arguments: I, shell: &mut Shell) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    // Look for `--color` before parsing, since parser errors may be colored as well.
    shell.set_color(flags::color_in(&arguments));
    let cli = match flags::parse(&arguments) {
        Ok(cli) => cli,
        Err(mut error) => {
            peers::replace_tip(&mut error, &arguments);
            return show_unparsed(&error, &arguments, shell);
        }
    };
    shell.set_verbosity(match (cli.quiet, cli.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    });
    let row = Row::of(cli.command);
    let (output, command) = (row.output, row.name);
    let code = match row.run(&cli.dir, shell) {
        Ok(code) => code,
        Err(error) => {
            print_error(&error, output, command, shell);
            1
        }
    };
    shell.finish(code)
}

/// Prints either the requested help with examples, or the error in the command line.
fn show_unparsed(error: &clap::Error, arguments: &[OsString], shell: &mut Shell) -> u8 {
    let text = error.render();
    let mut text = match shell.color() {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    // Append the examples only here, because clap would wrap their lines to the terminal width.
    if error.kind() == ErrorKind::DisplayHelp
        && let Some(examples) = flags::find_examples(&peers::find_command_path(arguments))
    {
        text.push_str(&format!("\n{examples}\n"));
    }
    match error.use_stderr() {
        true => shell.note_painted(&text),
        false => shell.out(&text),
    }
    shell.finish(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn print_error(error: &anyhow::Error, output: Output, command: &str, shell: &mut Shell) {
    if output == Output::Json {
        let source = error.downcast_ref::<SourceErrors>();
        let answer = serde_json::json!({
            "command": command,
            "applied": false,
            "error": format!("{error:#}"),
            "diagnostics": source.map(|source| source.diagnostics.as_slice()).unwrap_or_default(),
        });
        return shell.out(&format!("{answer:#}\n"));
    }
    print_text_error(error, shell);
}

/// Prints an error. Errors about the source include locations.
fn print_text_error(error: &anyhow::Error, shell: &mut Shell) {
    if let Some(source) = error.downcast_ref::<SourceErrors>() {
        shell.message(&source.snippets);
    }
    shell.error(error);
}
