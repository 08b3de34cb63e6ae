//! One file per command: flags → request → plan. What is common to all of them is here.

mod completion;
mod create_api;
mod create_webhook;
mod init;
mod kubernetes;
mod kubernetes_kind;
mod man;
mod manifests;
mod owners;
mod scaffold;
mod version;
mod webhooks;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::flags::{Cli, Command, Create, Output, PlanFlags};
use crate::plan::apply::{Faults, apply, look_for_journal, recover};
use crate::plan::{Moment, Plan, diff, json as plan_json, summary};
use crate::shell::Shell;
use crate::tree::Tree;

pub use create_api::plan as plan_create_api;
pub use create_webhook::plan as plan_create_webhook;
pub use init::plan as plan_init;
pub(crate) use manifests::SourceErrors;

/// Runs a command; returns the exit code.
///
/// # Errors
/// Says what was wrong and what to write instead; nothing was written then.
pub fn run(cli: Cli, shell: &mut Shell) -> Result<u8> {
    let dir = cli.dir;
    match cli.command {
        Command::Init(flags) => init::run(&dir, &flags, shell),
        Command::Create(Create::Api(flags)) => create_api::run(&dir, &flags, shell),
        Command::Create(Create::Webhook(flags)) => create_webhook::run(&dir, &flags, shell),
        Command::Manifests(flags) => manifests::run(&dir, &flags, shell),
        Command::Completion { shell: kind } => completion::run(kind, shell),
        Command::Version => version::run(shell),
        Command::Man { command } => man::run(&command, shell),
    }
}

/// What a command has decided.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The changes.
    pub plan: Plan,
    /// Warnings, ready to be shown.
    pub warnings: String,
    /// The same as data.
    pub diagnostics: Vec<Value>,
    /// What to do next, once the plan is applied.
    pub next: String,
}

impl Outcome {
    /// Says something that is about no place in the source.
    fn warn(&mut self, message: &str, help: &str) {
        self.warnings
            .push_str(&format!("warning: {message}\n  = help: {help}\n"));
        self.diagnostics
            .push(json!({ "severity": "warning", "message": message, "help": help }));
    }
}

/// How often a command that changes nothing reads the project anew because another one was at work meanwhile.
const MOST_READS: usize = 20;

/// Decides what a command does, from one state of the project folder.
///
/// A command that will apply a plan first recovers from an interrupted one, and [`apply`] sees to it that nothing has
/// changed since. One that will not (`--check`, `--dry-run`, `--stdout`) changes nothing at all: it waits for a
/// command that is at work, and decides anew when one ran in between.
fn decide<T>(
    dir: &std::path::Path,
    only_reads: bool,
    shell: &mut Shell,
    make: &mut dyn FnMut(&Tree) -> Result<T>,
) -> Result<(Tree, T)> {
    if !only_reads {
        if let Some(recovery) = recover(dir)? {
            shell.note(&format!("{recovery}\n"));
        }
        let tree = Tree::new(dir);
        let made = make(&tree)?;
        return Ok((tree, made));
    }
    for _ in 0..MOST_READS {
        let moment = Moment::take(dir);
        let warning = look_for_journal(dir)?;
        let tree = Tree::new(dir);
        let made = make(&tree);
        if moment.holds() {
            if let Some(warning) = warning {
                shell.warning(&warning);
            }
            return Ok((tree, made?));
        }
    }
    bail!(
        "another rbuilder command is at work in {}, or another program creates files there: try again when it is done",
        crate::tree::shown(dir)
    )
}

/// Shows a plan or applies it, as asked.
fn finish(command: &str, tree: &Tree, outcome: &Outcome, flags: PlanFlags, shell: &mut Shell) -> Result<u8> {
    let Outcome {
        plan,
        warnings,
        diagnostics,
        next,
    } = outcome;
    plan.check_conflicts()?;
    if !flags.dry_run {
        apply(tree, plan, Faults::default())?;
    }
    if flags.output == Output::Json {
        let mut answer = plan_json(plan, command, !flags.dry_run);
        answer["diagnostics"] = json!(diagnostics);
        shell.out(&format!("{answer:#}\n"));
        return Ok(0);
    }
    shell.message(warnings);
    if flags.dry_run && !plan.is_empty() {
        shell.diff(&diff(plan));
        shell.note(&format!("dry run: nothing was written\n{}", summary(plan)));
    } else {
        shell.out(&summary(plan));
        if !plan.is_empty() {
            shell.note(next);
        }
    }
    Ok(0)
}
