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

use std::path::Path;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use crate::flags::{Cli, Command, Create, Output, PlanFlags};
use crate::plan::apply::{Faults, apply, is_at_work, look_for_journal, recover};
use crate::plan::{Moment, Plan, diff, json as plan_json, summary};
use crate::shell::Shell;
use crate::tree::{Changed, Tree};

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
    /// The same with a next step.
    fn with_next(self, next: &str) -> Outcome {
        Outcome {
            next: next.to_owned(),
            ..self
        }
    }

    /// Says something that is about no place in the source.
    fn warn(&mut self, message: &str, help: &str) {
        self.warnings
            .push_str(&format!("warning: {message}\n  = help: {help}\n"));
        self.diagnostics
            .push(json!({ "severity": "warning", "message": message, "help": help }));
    }
}

/// How often a command decides anew because the project changed while it was read.
const MOST_READS: usize = 20;

/// Decides what a command says that changes nothing (`--check`, `--dry-run`, `--stdout`), from one state of the project
/// folder: waits for a command that is at work, and decides anew when one ran in between.
///
/// # Errors
/// Those of `make`, about a tree that nobody was changing; when somebody always is.
fn decide<T>(dir: &Path, shell: &mut Shell, make: &mut dyn FnMut(&Tree) -> Result<T>) -> Result<(Tree, T)> {
    for _ in 0..MOST_READS {
        let moment = Moment::take(dir);
        let warning = look_for_journal(dir)?;
        let tree = Tree::new(dir);
        let made = make(&tree);
        if stands(&made, &tree, &moment) {
            if let Some(warning) = warning {
                shell.warning(&warning);
            }
            return Ok((tree, made?));
        }
    }
    Err(never_still(dir))
}

/// Decides what a command does, and does it. Recovers from an interrupted command first.
///
/// What is applied is compared with the tree under the lock (see [`apply`]), and what is only said, which is an error
/// or that nothing is to be done, counts when no other command ran meanwhile. Otherwise the command decides anew, from
/// the tree that the other one has left.
///
/// # Errors
/// Those of `make`, about a tree that nobody was changing; when another command is at work, or somebody always
/// changes the tree; when a write fails.
fn decide_and_apply(
    dir: &Path,
    shell: &mut Shell,
    make: &mut dyn FnMut(&Tree) -> Result<Outcome>,
) -> Result<Outcome> {
    for reads in 0..MOST_READS {
        if let Some(recovery) = recover(dir)? {
            shell.note(&format!("{recovery}\n"));
        }
        // Nobody waits for a tick of the clock who is alone.
        let moment = match reads {
            0 => Moment::glance(dir),
            _ => Moment::take(dir),
        };
        if is_at_work(dir)? {
            continue;
        }
        let tree = Tree::new(dir);
        let made = make(&tree).and_then(|outcome| {
            outcome.plan.check_conflicts()?;
            Ok(outcome)
        });
        match made {
            Ok(outcome) if !outcome.plan.is_empty() => {
                if moment.has_passed() {
                    continue;
                }
                match apply(&tree, &outcome.plan, Faults::default()) {
                    Ok(_) => return Ok(outcome),
                    Err(error) if error.is::<Changed>() => {}
                    Err(error) => return Err(error),
                }
            }
            said if stands(&said, &tree, &moment) => return said,
            _ => {}
        }
    }
    Err(never_still(dir))
}

/// Returns `true` where an answer is about one state of the project: no command ran since the moment, and for a
/// complaint nobody else has changed what was read either.
fn stands<T>(made: &Result<T>, tree: &Tree, moment: &Moment) -> bool {
    moment.holds() && (made.is_ok() || tree.verify_unchanged().is_ok())
}

fn never_still(dir: &Path) -> anyhow::Error {
    anyhow!(
        "another rbuilder command is at work in {}, or another program changes files there: try again when it is done",
        crate::tree::shown(dir)
    )
}

/// Shows what a command would do, or does it, as asked.
fn execute(
    command: &str,
    dir: &Path,
    flags: PlanFlags,
    shell: &mut Shell,
    make: &mut dyn FnMut(&Tree) -> Result<Outcome>,
) -> Result<u8> {
    let outcome = if flags.dry_run {
        let (_, outcome) = decide(dir, shell, make)?;
        outcome.plan.check_conflicts()?;
        outcome
    } else {
        decide_and_apply(dir, shell, make)?
    };
    show(command, &outcome, flags, shell);
    Ok(0)
}

/// Tells of a plan what was done, or what would be.
fn show(command: &str, outcome: &Outcome, flags: PlanFlags, shell: &mut Shell) {
    let Outcome {
        plan,
        warnings,
        diagnostics,
        next,
    } = outcome;
    if flags.output == Output::Json {
        let mut answer = plan_json(plan, command, !flags.dry_run);
        answer["diagnostics"] = json!(diagnostics);
        return shell.out(&format!("{answer:#}\n"));
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
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // the tests play the other command and the other program

    use std::cell::Cell;

    use anyhow::bail;
    use rbuilder_generator::Sources;

    use super::*;

    /// A project with a file in a folder.
    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("src")).expect("a folder");
        std::fs::write(folder.path().join("src/lib.rs"), "old").expect("a file");
        folder
    }

    /// Writes the file as another command does.
    fn run_another(dir: &Path, text: &str) {
        let tree = Tree::new(dir);
        let mut plan = Plan::default();
        plan.replace(&tree, "src/lib.rs", text)
            .expect("it may be written");
        apply(&tree, &plan, Faults::default()).expect("nobody else is at work");
    }

    fn outcome(tree: &Tree, path: &str, text: &str) -> Result<Outcome> {
        let mut plan = Plan::default();
        plan.replace(tree, path, text)?;
        Ok(Outcome {
            plan,
            ..Outcome::default()
        })
    }

    fn shell() -> Shell {
        Shell::to(Box::new(std::io::sink()), Box::new(std::io::sink()))
    }

    /// Runs a command that decides this, first of all about a tree that is still.
    fn perform(
        dir: &Path,
        make: &mut dyn FnMut(&Tree, usize) -> Result<Outcome>,
    ) -> (usize, Result<Outcome>) {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let reads = Cell::new(0);
        let done = decide_and_apply(dir, &mut shell(), &mut |tree| {
            reads.set(reads.get() + 1);
            make(tree, reads.get())
        });
        (reads.get(), done)
    }

    #[test]
    fn a_complaint_about_a_tree_that_a_command_changed_is_not_made() {
        let folder = project();
        let dir = folder.path();
        let (reads, done) = perform(dir, &mut |tree, read| {
            if read == 1 {
                run_another(dir, "new");
                bail!("something is missing");
            }
            outcome(tree, "out", "")
        });
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(reads, 2);
    }

    #[test]
    fn a_complaint_about_a_file_that_was_edited_meanwhile_is_not_made() {
        let folder = project();
        let dir = folder.path();
        let mut make = |tree: &Tree, read| {
            let text = tree.sources([]).text("src/lib.rs").expect("it can be read");
            if read == 1 {
                // The project folder itself stays as it was.
                std::fs::write(dir.join("src/lib.rs"), "new").expect("a file");
            }
            match text.as_deref() {
                Some("new") => outcome(tree, "out", ""),
                text => bail!("found {text:?}"),
            }
        };
        let (reads, done) = perform(dir, &mut make);
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(reads, 2);

        std::fs::write(dir.join("src/lib.rs"), "old").expect("a file");
        let reads = Cell::new(0);
        let done = decide(dir, &mut shell(), &mut |tree| {
            reads.set(reads.get() + 1);
            make(tree, reads.get())
        });
        assert!(done.is_ok(), "{done:?}");
    }

    #[test]
    fn what_was_made_from_old_source_is_made_anew() {
        // The root of the project has not changed for the first of them.
        for is_command in [false, true] {
            let folder = project();
            let dir = folder.path();
            let (reads, done) = perform(dir, &mut |tree, read| {
                let text = tree.sources([]).text("src/lib.rs").expect("it can be read");
                match (read, is_command) {
                    (1, true) => run_another(dir, "new"),
                    (1, false) => std::fs::write(dir.join("src/lib.rs"), "new").expect("a file"),
                    _ => {}
                }
                outcome(tree, "out", &text.expect("it is there"))
            });
            assert!(done.is_ok(), "{done:?}");
            assert_eq!(reads, 2);
            assert_eq!(Tree::new(dir).read("out").expect("text").as_deref(), Some("new"));
        }
    }

    #[test]
    fn that_nothing_is_to_be_done_is_said_of_one_state() {
        let folder = project();
        let dir = folder.path();
        let (reads, done) = perform(dir, &mut |tree, read| {
            let there = outcome(tree, "src/lib.rs", "old");
            if read == 1 {
                run_another(dir, "new");
            }
            there
        });
        assert!(done.is_ok_and(|outcome| !outcome.plan.is_empty()));
        assert_eq!(reads, 2);
    }

    #[test]
    fn a_complaint_about_a_still_tree_is_made_at_once() {
        let folder = project();
        let (reads, done) = perform(folder.path(), &mut |tree, _| {
            tree.read("src/lib.rs")?;
            bail!("something is missing")
        });
        let error = done.expect_err("it fails").to_string();
        assert_eq!((reads, error.as_str()), (1, "something is missing"));
    }

    #[test]
    fn a_tree_that_is_never_still_is_given_up() {
        let folder = project();
        let dir = folder.path();
        let (reads, done) = perform(dir, &mut |_, read| {
            run_another(dir, &read.to_string());
            bail!("something is missing")
        });
        let error = done.expect_err("it fails").to_string();
        assert!(
            error.starts_with("another rbuilder command is at work in"),
            "{error}"
        );
        assert_eq!(reads, MOST_READS);
    }
}
