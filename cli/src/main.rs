//! The rbuilder command.

use std::process::ExitCode;

use rbuilder_cli::shell::Shell;

fn main() -> ExitCode {
    ExitCode::from(rbuilder_cli::run(std::env::args_os(), &mut Shell::standard()))
}
