//! One file per command: flags → request → plan. What is common to all of them is here.

mod completion;
mod create_api;
mod create_webhook;
mod init;
mod kubernetes;
mod man;
mod manifests;
mod owners;
mod scaffold;
mod version;
mod webhooks;

use anyhow::Result;
use serde_json::{Value, json};

use crate::flags::{Cli, Command, Create, Output, PlanFlags};
use crate::plan::apply::{Faults, apply, recover};
use crate::plan::{Plan, diff, json as plan_json, summary};
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

/// A project folder in which no command was left half done.
fn open(dir: &std::path::Path, shell: &mut Shell) -> Result<Tree> {
    if recover(dir)? {
        shell.note("a command that was killed has been undone or finished\n");
    }
    Ok(Tree::new(dir))
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
