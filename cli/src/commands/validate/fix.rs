//! `rbuilder validate --fix`: corrects object files where a message says exactly what to write.
//!
//! Only changes files below the project directory, or below the current directory outside of
//! projects, and none reached through a symlink. Output of kustomize or Helm and the standard input
//! aren't files, and generated files would be overwritten.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use rbuilder_generator::Diagnostic;

use super::inputs::plain;
use super::{Judged, Object};
use crate::commands::manifests::GeneratedPaths;
use crate::commands::verdicts::{is_in_file, parse_objects};
use crate::commands::{Outcome, decide_and_apply, preview};
use crate::plan::{Change, Plan, render_diff};
use crate::replacement::{correct, find_replacement};
use crate::shell::Shell;
use crate::tree::{InputFile, Tree, display_root, with_slashes};

/// Corrects the files of a run, or only shows the corrections if `is_dry`. Returns the paths of
/// files with corrections.
pub(super) fn correct_files(
    dir: &Path,
    files: &mut [InputFile],
    is_dry: bool,
    judge: &mut dyn FnMut(&InputFile) -> Vec<Diagnostic>,
    shell: &mut Shell,
) -> Result<Vec<String>> {
    let mut left = BTreeSet::new();
    let mut make = |tree: &Tree| {
        let mut plan = Plan::default();
        // `decide_and_apply` may call this several times.
        left.clear();
        let generated = GeneratedPaths::read(tree);
        for file in files.iter() {
            correct_file(file, tree, &generated, &mut plan, judge, &mut left)?;
        }
        Ok(Outcome {
            plan,
            ..Outcome::default()
        })
    };
    let outcome = match is_dry {
        true => preview(dir, shell, &mut make)?,
        false => decide_and_apply(dir, shell, &mut make)?,
    };
    if outcome.plan.is_empty() && left.is_empty() {
        shell.note("nothing to correct\n");
    }
    for reason in left {
        shell.warning(&reason);
    }
    if !outcome.plan.is_empty() {
        shell.summary(&outcome.plan, false);
    }
    if is_dry && !outcome.plan.is_empty() {
        shell.note_always(&render_diff(&outcome.plan));
        shell.note("dry run: no files were written\n");
    }
    let mut corrected = BTreeSet::new();
    for file in files.iter_mut() {
        let Ok(path) = find_place(&file.path, dir) else {
            continue;
        };
        if let Some(after) = outcome.plan.changes().get(&path).and_then(Change::after) {
            if !is_dry {
                after.clone_into(&mut file.text);
            }
            corrected.insert(path);
        }
    }
    Ok(corrected.into_iter().collect())
}

/// Adds the corrections of a file to a plan, or the reason why there are none to `left`.
fn correct_file(
    file: &InputFile,
    tree: &Tree,
    generated: &GeneratedPaths,
    plan: &mut Plan,
    judge: &mut dyn FnMut(&InputFile) -> Vec<Diagnostic>,
    left: &mut BTreeSet<String>,
) -> Result<()> {
    let mut judge_text = |text: &str| {
        judge(&InputFile {
            path: file.path.clone(),
            text: text.to_owned(),
            is_named: file.is_named,
        })
    };
    let has_correction = |diagnostics: Vec<Diagnostic>| {
        let mut diagnostics = diagnostics.iter();
        diagnostics.any(|said| find_replacement(said, &file.text).is_some())
    };
    let refusal = match find_path(file, tree) {
        Ok(path) => {
            let Some(text) = correct(&file.text, &mut judge_text) else {
                return Ok(());
            };
            if generated.contain(&path) {
                left.insert(format!("{} is not corrected: it is generated", file.path));
                return Ok(());
            }
            return plan.merge(tree, &path, &text);
        }
        Err(refusal) => refusal,
    };
    // Don't mention files without anything to correct.
    if has_correction(judge_text(&file.text)) {
        left.insert(format!("{} is not corrected: {refusal}", file.path));
    }
    Ok(())
}

fn find_path(file: &InputFile, tree: &Tree) -> Result<String, String> {
    let path = find_place(&file.path, tree.root())?;
    match tree.read(&path) {
        Ok(Some(text)) if text == file.text => Ok(path),
        Ok(_) => Err("it has changed while the command was running".to_owned()),
        Err(reason) => Err(format!("{reason:#}")),
    }
}

fn find_place(path: &str, dir: &Path) -> Result<String, String> {
    if !is_in_file(path) {
        return Err("correct the files that it is made from".to_owned());
    }
    let below = || {
        let below = plain(&dir.join(path))?.strip_prefix(plain(dir)?).ok()?.to_owned();
        Some(with_slashes(below.to_str()?))
    };
    below().ok_or_else(|| format!("it is not below {}", display_root(dir)))
}

/// Validates the objects in a file. Empty for a file that isn't YAML.
pub(super) fn judge_file(file: &InputFile, mut judge: impl FnMut(Object) -> Judged) -> Vec<Diagnostic> {
    let objects = parse_objects(&file.path, &file.text).unwrap_or_default();
    objects
        .into_iter()
        .flat_map(|object| judge(object).diagnostics)
        .collect()
}
