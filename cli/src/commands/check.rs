//! `--check`: checks whether generated files are up to date, without writing any.

use std::path::Path;

use anyhow::{Result, anyhow};

use super::{Mode, Outcome, decide, show_outcome};
use crate::engine::Output;
use crate::plan::{render_diff, render_json};
use crate::shell::Shell;
use crate::tree::Tree;

/// Runs a command with `--check`. If it would change files, shows the changes and fails with the
/// error `stale`.
pub(super) fn check_up_to_date(
    command: &str,
    stale: &str,
    dir: &Path,
    mode: Mode,
    shell: &mut Shell,
    make: &mut dyn FnMut(&Tree) -> Result<Outcome>,
) -> Result<u8> {
    let (_, outcome) = decide(dir, shell, make)?;
    if !outcome.plan.is_empty() {
        report_stale(command, stale, &outcome, mode.output, shell);
        return Ok(1);
    }
    outcome.plan.check_conflicts()?;
    show_outcome(command, &outcome, mode, shell);
    Ok(outcome.exit_code)
}

fn report_stale(command: &str, stale: &str, outcome: &Outcome, output: Output, shell: &mut Shell) {
    shell.message(&outcome.warnings);
    if output == Output::Json {
        let mut answer = render_json(&outcome.plan, command, false);
        answer["diagnostics"] = outcome.diagnostics.clone().into();
        if let Some(failure) = &outcome.failure {
            answer["error"] = format!("{failure:#}").into();
        }
        return shell.out(&format!("{answer:#}\n"));
    }
    shell.diff(&render_diff(&outcome.plan));
    shell.error(&anyhow!("{stale}"));
    if let Some(failure) = &outcome.failure {
        shell.error(failure);
    }
}
