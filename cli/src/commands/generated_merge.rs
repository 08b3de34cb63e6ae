//! Merges files that a command generates from the manifests, e.g. a chart or a bundle, with the
//! existing files.
//!
//! The merge base is the files as last written by the command, stored in a single file in
//! `.rbuilder/`. Unlike the base of `rbuilder update`, it can't be reproduced, because the
//! manifests have changed since. Hashes would only reveal that a file was edited, but not how. The
//! base is separate from PROJECT and in plain text, so that branches merge it like the files
//! themselves.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};

use super::check::check_up_to_date;
use crate::commands::scaffold_merge::{ConflictPlace, add_conflicts, refuse_conflicts};
use crate::commands::{Mode, Outcome};
use crate::edit::merge::{Labels, RebasedChange, find_markers, merge_scaffold};
use crate::engine::Output;
use crate::line_ends::is_same_text;
use crate::plan::Plan;
use crate::shell::Shell;
use crate::tree::Tree;

#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) noun: &'static str,
    /// Command that generates it, e.g. `helm`.
    pub(super) command: &'static str,
    pub(super) base: &'static str,
}

pub(super) const CHART: Product = Product {
    noun: "chart",
    command: "helm",
    base: ".rbuilder/chart.txt",
};

pub(super) const BUNDLE: Product = Product {
    noun: "bundle",
    command: "bundle",
    base: ".rbuilder/bundle.txt",
};

pub(super) const DASHBOARDS: Product = Product {
    noun: "set of dashboards and rules",
    command: "grafana",
    base: ".rbuilder/grafana.txt",
};

const PRODUCTS_OF_CONFIG: [Product; 2] = [CHART, BUNDLE];

/// Reminds the user of products to update after a plan changed `config/`. Empty if there are none.
pub(super) fn remind_of_products(command: &str, plan: &Plan, tree: &Tree) -> String {
    let is_stale = |product: &&Product| {
        // A bundle contains the samples as examples; a chart doesn't.
        let is_part = |path: &str| {
            path.starts_with("config/")
                && (product.command == "bundle" || !path.starts_with("config/samples/"))
        };
        // The products themselves can't be compared, because a bundle depends on options that
        // aren't recorded.
        product.command != command
            && plan.changes().keys().any(|path| is_part(path))
            && matches!(tree.read(product.base), Ok(Some(_)))
    };
    let stale: Vec<&Product> = PRODUCTS_OF_CONFIG.iter().filter(is_stale).collect();
    if stale.is_empty() {
        return String::new();
    }
    let nouns: Vec<String> = stale
        .iter()
        .map(|product| format!("the {}", product.noun))
        .collect();
    let commands: String = stale
        .iter()
        .map(|product| match product.command {
            "bundle" => "  rbuilder bundle   # with the options of your release\n".to_owned(),
            command => format!("  rbuilder {command}\n"),
        })
        .collect();
    format!(
        "config/ has changed. To update {}, run:\n{commands}",
        nouns.join(" and ")
    )
}

pub(super) fn check_product(
    product: Product,
    dir: &Path,
    output: Output,
    shell: &mut Shell,
    make: &mut dyn FnMut(&Tree) -> Result<Outcome>,
) -> Result<u8> {
    let Product { noun, command, .. } = product;
    let stale = format!("the {noun} is not up to date: run `rbuilder {command}`");
    let mode = Mode {
        dry_run: true,
        output,
    };
    check_up_to_date(command, &stale, dir, mode, shell, &mut |tree| {
        let outcome = make(tree)?;
        outcome.plan.check_conflicts()?;
        Ok(outcome)
    })
}

pub(super) struct GeneratedMerge {
    product: Product,
    base: BTreeMap<String, String>,
    theirs: BTreeMap<String, String>,
    /// Whether to overwrite files that aren't in the base, and to restore deleted ones.
    force: bool,
    conflicts: Vec<ConflictPlace>,
    deleted: Vec<String>,
    /// Files that the product no longer contains but the user edited.
    unused: Vec<String>,
}

impl GeneratedMerge {
    /// Reads a product's base. Fails if the base has git conflicts, or if conflicts of an earlier
    /// run are unresolved.
    pub(super) fn read(product: Product, plan: &Plan, tree: &Tree, force: bool) -> Result<Self> {
        let text = plan.read(tree, product.base)?.unwrap_or_default();
        let merge = GeneratedMerge {
            base: parse_base(product.base, &text)?,
            product,
            theirs: BTreeMap::new(),
            force,
            conflicts: Vec::new(),
            deleted: Vec::new(),
            unused: Vec::new(),
        };
        merge.check_markers(tree)?;
        Ok(merge)
    }

    pub(super) fn base(&self, path: &str) -> Option<&str> {
        self.base.get(path).map(String::as_str)
    }

    pub(super) fn has_conflict(&self, path: &str) -> bool {
        self.conflicts.iter().any(|(place, _)| place == path)
    }

    pub(super) fn add(
        &mut self,
        plan: &mut Plan,
        tree: &Tree,
        files: BTreeMap<String, String>,
    ) -> Result<()> {
        for (path, text) in files {
            let base = self.base.get(&path).cloned();
            self.merge_file(plan, tree, &path, (base.as_ref(), Some(&text)))?;
            self.theirs.insert(path, text);
        }
        Ok(())
    }

    pub(super) fn add_onto(
        &mut self,
        plan: &mut Plan,
        tree: &Tree,
        path: &str,
        change: RebasedChange,
    ) -> Result<()> {
        let is_ours = self.base.contains_key(path) || self.force;
        let written = self.base.get(path).cloned();
        match tree.read(path)? {
            Some(_) if is_ours => {
                self.merge_file(plan, tree, path, (Some(&change.base), Some(&change.theirs)))?;
            }
            _ => self.merge_file(plan, tree, path, (written.as_ref(), Some(&change.written)))?,
        }
        self.theirs.insert(path.to_owned(), change.written);
        Ok(())
    }

    /// Adds the removal of files that the product no longer contains, and the base for the next
    /// merge.
    pub(super) fn finish(&mut self, plan: &mut Plan, tree: &Tree) -> Result<()> {
        let is_gone = |path: &&String| !self.theirs.contains_key(*path);
        let gone: Vec<String> = self.base.keys().filter(is_gone).cloned().collect();
        for path in &gone {
            let base = self.base.get(path).cloned();
            self.merge_file(plan, tree, path, (base.as_ref(), None))?;
        }
        let Product {
            base: path,
            noun,
            command,
        } = self.product;
        let heading = format!(
            "# Code generated by rbuilder. DO NOT EDIT. The {noun} as `rbuilder {command}` last wrote it, the base for merging later changes.\n"
        );
        plan.replace(tree, path, &(heading + &print_base(&self.theirs)))
    }

    fn check_markers(&self, tree: &Tree) -> Result<()> {
        let mut places = String::new();
        for path in self.base.keys() {
            let text = tree.read(path)?.unwrap_or_default();
            if let Some(line) = find_markers(&text).first() {
                places.push_str(&format!("\n  {path}:{line}"));
            }
        }
        match places.is_empty() {
            true => Ok(()),
            false => bail!("conflicts of an earlier run are unresolved; no files were written:{places}"),
        }
    }

    fn merge_file(
        &mut self,
        plan: &mut Plan,
        tree: &Tree,
        path: &str,
        (base, theirs): (Option<&String>, Option<&String>),
    ) -> Result<()> {
        let target = path.to_owned();
        let ours = tree.read(path)?;
        match (ours, base, theirs) {
            (None, _, Some(theirs)) if self.force => plan.replace(tree, &target, theirs)?,
            // Nothing new to write, so keep whatever the user has.
            (_, base, theirs) if base == theirs => plan.keep(&target),
            (None, None, Some(theirs)) => plan.replace(tree, &target, theirs)?,
            (None, _, Some(_)) => self.deleted.push(target),
            (None, ..) => {}
            (Some(_), None, Some(theirs)) => plan.put_owned(tree, &target, theirs, self.force)?,
            // The user didn't edit the file.
            (Some(ours), Some(base), Some(theirs)) if is_same_text(&ours, base) => {
                plan.replace(tree, &target, theirs)?
            }
            (Some(ours), Some(base), Some(theirs)) => {
                let labels = Labels {
                    base: format!("rbuilder {}, before", self.product.command),
                    theirs: format!("rbuilder {}", self.product.command),
                };
                let merged = merge_scaffold(path, (base, &ours, theirs), &labels);
                let places = merged.conflicts.iter().map(|line| (target.clone(), *line));
                self.conflicts.extend(places);
                plan.merge(tree, &target, &merged.text)?;
            }
            (Some(ours), Some(base), None) if is_same_text(&ours, base) => plan.delete(tree, &target)?,
            (Some(_), _, None) => self.unused.push(target),
        }
        Ok(())
    }

    pub(super) fn check(&self, no_conflicts: bool) -> Result<()> {
        match no_conflicts {
            true => refuse_conflicts(self.product.noun, &self.conflicts),
            false => Ok(()),
        }
    }

    /// Adds warnings and the next steps. Conflicts become errors with exit code 1. `check` is the
    /// command that checks the product.
    pub(super) fn report(&self, outcome: &mut Outcome, next: &str, check: &str) {
        let Product { noun, command, .. } = self.product;
        for path in &self.deleted {
            outcome.warn(
                &format!("{path} was deleted in this project, so changes to it are skipped"),
                &format!("to restore the file, run `rbuilder {command}` with the same flags and `--force`"),
            );
        }
        for path in &self.unused {
            outcome.warn(
                &format!("{path} is no longer part of the {noun}, and was kept because you have changed it"),
                "delete it if you do not need it",
            );
        }
        if self.conflicts.is_empty() {
            outcome.next = format!("Next: {next}, then run:\n  {check}\n");
            return;
        }
        add_conflicts(outcome, noun, &self.conflicts, check);
    }
}

/// Prints a base: the path of each file, followed by its lines with a leading space.
fn print_base(files: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    for (path, text) in files {
        out.push_str(path);
        out.push('\n');
        for line in text.lines() {
            out.push(' ');
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Returns the first line of a base with a git conflict marker, counted from 1.
pub(super) fn find_conflict_in_base(text: &str) -> Option<usize> {
    const MARKERS: [&str; 4] = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];
    let is_marker = |line: &str| MARKERS.iter().any(|marker| line.starts_with(marker));
    text.lines().position(is_marker).map(|index| index + 1)
}

/// Parses a base. All its files end with a newline. Fails on git conflicts.
pub(super) fn parse_base(base: &str, text: &str) -> Result<BTreeMap<String, String>> {
    if let Some(line) = find_conflict_in_base(text) {
        bail!("{base}:{line} has a Git merge conflict: resolve it as in the files themselves");
    }
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut path = None;
    for line in text.lines() {
        match (line.strip_prefix(' '), &path) {
            (Some(line), Some(path)) => {
                let file: &mut String = files.entry(String::clone(path)).or_default();
                file.push_str(line);
                file.push('\n');
            }
            (None, _) if !line.starts_with('#') && !line.is_empty() => {
                path = Some(line.to_owned());
                files.insert(line.to_owned(), String::new());
            }
            _ => {}
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_base_that_it_prints() {
        let files = [
            ("a.yaml", "x: 1\n\n# y\n z\n"),
            ("templates/empty", ""),
            ("values.yaml", "<<<<<<< this project\n"),
        ];
        let files: BTreeMap<String, String> = files
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into();
        assert_eq!(parse_base("", &print_base(&files)).expect("as printed"), files);
        assert!(parse_base("", "a\n x\n<<<<<<< HEAD\n y\n").is_err());
        assert!(parse_base("", "").expect("nothing").is_empty());
    }
}
