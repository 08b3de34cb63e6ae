//! The common part of commands that change files: compute a plan from a consistent state of the
//! project, show or apply it, and print the outcome. Nothing here knows about individual commands.

use std::path::Path;

use anyhow::{Result, anyhow};
use rbuilder_generator::Code;
use serde_json::{Value, json};

use crate::plan::apply::{Faults, apply, check_journal, is_command_running, recover};
use crate::plan::{Moment, Plan, render_diff, render_json};
use crate::shell::Shell;
use crate::tree::{Changed, Tree};

/// Format of a command's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Human-readable text.
    Text,
    /// A JSON document on standard output.
    Json,
}

/// How a command shows its plan.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// Only show the changes instead of making them.
    pub dry_run: bool,
    /// Format of the result.
    pub output: Output,
}

/// The result of a command before it writes anything.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The changes to make.
    pub plan: Plan,
    /// Warnings, formatted for the terminal.
    pub warnings: String,
    /// The same warnings as JSON values.
    pub diagnostics: Vec<Value>,
    /// Next steps, printed after the plan was applied.
    pub next: String,
    /// An error to print last, after everything else was done.
    pub failure: Option<anyhow::Error>,
    /// Exit code, e.g. 1 if the user has something to resolve.
    pub exit_code: u8,
}

impl Outcome {
    pub(crate) fn with_next(self, next: &str) -> Outcome {
        Outcome {
            next: next.to_owned(),
            ..self
        }
    }

    pub(crate) fn warn(&mut self, message: &str, help: &str) {
        self.add_warning(None, message, help);
    }

    /// Warns about a file, with the code of the message if it has one.
    pub(crate) fn warn_of_file(&mut self, path: &str, message: &str, help: &str) {
        self.add_warning(Code::of_message(message), &format!("{path}: {message}"), help);
    }

    fn add_warning(&mut self, code: Option<&Code>, message: &str, help: &str) {
        let id = code.map(|code| code.id);
        let shown = id.map(|id| format!("[{id}]")).unwrap_or_default();
        self.warnings
            .push_str(&format!("warning{shown}: {message}\n  = help: {help}\n"));
        self.diagnostics
            .push(json!({ "severity": "warning", "code": id, "message": message, "help": help }));
    }
}

/// Maximum number of restarts because the project changed while it was read.
const MOST_READS: usize = 20;

/// Computes the result of a read-only command (`--check`, `--dry-run`, `--stdout`).
///
/// `make` may be called several times: we wait for a running command, and start over if one ran
/// concurrently with `make`, so that the result comes from a consistent state of the project. For
/// the same reason, an error of `make` only counts if the tree is unchanged since.
pub(crate) fn decide<T>(
    dir: &Path,
    shell: &mut Shell,
    make: &mut dyn FnMut(&Tree) -> Result<T>,
) -> Result<(Tree, T)> {
    for _ in 0..MOST_READS {
        let moment = Moment::take(dir);
        let warning = check_journal(dir)?;
        let tree = Tree::new(dir);
        let made = make(&tree);
        if is_consistent(&made, &tree, &moment) {
            if let Some(warning) = warning {
                shell.warning(&warning);
            }
            return Ok((tree, made?));
        }
    }
    Err(keeps_changing(dir))
}

/// Computes a command's plan and applies it, after recovering from an interrupted command.
///
/// [`apply`] compares a non-empty plan with the tree while it holds the lock. An error or an empty
/// plan gets no such check, so it is only returned if no other command ran concurrently. Otherwise
/// we start over with the new tree.
pub(crate) fn decide_and_apply(
    dir: &Path,
    shell: &mut Shell,
    make: &mut dyn FnMut(&Tree) -> Result<Outcome>,
) -> Result<Outcome> {
    for reads in 0..MOST_READS {
        if let Some(recovery) = recover(dir)? {
            shell.note(&format!("{recovery}\n"));
        }
        // Unless another command is running, don't wait for the next clock tick.
        let moment = match reads {
            0 => Moment::glance(dir),
            _ => Moment::take(dir),
        };
        if is_command_running(dir)? {
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
                    // The tree has changed since, so make another plan.
                    Err(error) if error.is::<Changed>() => {}
                    Err(error) => return Err(error),
                }
            }
            result if is_consistent(&result, &tree, &moment) => return result,
            _ => {}
        }
    }
    Err(keeps_changing(dir))
}

/// Whether no command has run since `moment`. After an error, the files that were read must also be
/// unchanged by other programs.
fn is_consistent<T>(made: &Result<T>, tree: &Tree, moment: &Moment) -> bool {
    moment.holds() && (made.is_ok() || tree.verify_unchanged().is_ok())
}

fn keeps_changing(dir: &Path) -> anyhow::Error {
    anyhow!(
        "another rbuilder command is running in {}, or another program is changing files there: try again when it has finished",
        crate::tree::display_root(dir)
    )
}

/// Computes a command's plan without applying it. Fails on existing files that conflict with the
/// plan.
pub(crate) fn preview(
    dir: &Path,
    shell: &mut Shell,
    make: &mut dyn FnMut(&Tree) -> Result<Outcome>,
) -> Result<Outcome> {
    let (_, outcome) = decide(dir, shell, make)?;
    outcome.plan.check_conflicts()?;
    Ok(outcome)
}

/// Prints the changes that were made, or would be made with `--dry-run`.
pub(crate) fn show_outcome(command: &str, outcome: &Outcome, mode: Mode, shell: &mut Shell) {
    let Outcome {
        plan,
        warnings,
        diagnostics,
        next,
        failure,
        ..
    } = outcome;
    if mode.output == Output::Json {
        let mut answer = render_json(plan, command, !mode.dry_run);
        answer["diagnostics"] = json!(diagnostics);
        if let Some(failure) = failure {
            answer["error"] = format!("{failure:#}").into();
        }
        return shell.out(&format!("{answer:#}\n"));
    }
    shell.message(warnings);
    if mode.dry_run && !plan.is_empty() {
        shell.summary(plan, false);
        shell.diff(&render_diff(plan));
        shell.note("dry run: no files were written\n");
    } else {
        shell.summary(plan, true);
        if !plan.is_empty() {
            shell.note(next);
        }
    }
    if let Some(failure) = failure {
        shell.error(failure);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)] // the tests act as the other command and the other program

    use std::cell::Cell;

    use anyhow::bail;
    use rbuilder_generator::Sources;

    use super::*;

    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("src")).expect("a folder");
        std::fs::write(folder.path().join("src/lib.rs"), "old").expect("a file");
        folder
    }

    /// Writes the file as another command would.
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

    /// Runs a command that makes these decisions. Waits first, so that the tree isn't recently
    /// changed.
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
    fn retries_after_another_command_changed_the_tree() {
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
    fn retries_after_an_edit_of_a_file_that_was_read() {
        let folder = project();
        let dir = folder.path();
        let mut make = |tree: &Tree, read| {
            let text = tree.sources([]).text("src/lib.rs").expect("it can be read");
            if read == 1 {
                // Doesn't change the project directory itself.
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
    fn retries_if_the_source_has_changed() {
        // Without a command, the project's root directory doesn't change.
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
    fn retries_an_empty_plan_for_a_changed_tree() {
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
    fn fails_at_once_if_the_tree_is_unchanged() {
        let folder = project();
        let (reads, done) = perform(folder.path(), &mut |tree, _| {
            tree.read("src/lib.rs")?;
            bail!("something is missing")
        });
        let error = done.expect_err("it fails").to_string();
        assert_eq!((reads, error.as_str()), (1, "something is missing"));
    }

    #[test]
    fn gives_up_if_the_tree_keeps_changing() {
        let folder = project();
        let dir = folder.path();
        let (reads, done) = perform(dir, &mut |_, read| {
            run_another(dir, &read.to_string());
            bail!("something is missing")
        });
        let error = done.expect_err("it fails").to_string();
        assert!(
            error.starts_with("another rbuilder command is running in"),
            "{error}"
        );
        assert_eq!(reads, MOST_READS);
    }
}
