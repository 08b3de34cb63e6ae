//! `cargo xtask examples`: generates the example projects with the real command. The projects are
//! committed.
//!
//! We start with an empty folder, and either follow the steps of a tutorial, or run the commands
//! from examples.yaml and apply a diff from examples/patches. After that, we add the files
//! written by hand and generate the manifests. Finally, the result is compared with the committed
//! files. This means that reviewers can see what effect a change of a template, a tutorial or the
//! generator has.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::committed::{Check, Files, read_tree, update_tree, write_file};
use crate::page::{Action, Page};
use crate::repo;

/// A row of examples.yaml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Project {
    name: String,
    page: Option<String>,
    #[serde(default)]
    commands: Vec<String>,
    kept: Vec<String>,
}

/// Generates all projects. The results are either written or compared with the existing ones.
pub(crate) fn update_projects(args: &Check) -> Result<()> {
    let bin = repo::build_rbuilder()?;
    let mut stale = Vec::new();
    let projects: Vec<Project> = serde_saphyr::from_str(include_str!("examples.yaml"))?;
    for project in projects {
        let new = generate(&project, &bin)?;
        if !update_tree(&format!("examples/{}", project.name), &new, args.check)? {
            stale.push(project.name);
        }
    }
    ensure!(
        stale.is_empty(),
        "stale: examples/{}; run `cargo xtask examples` and read the diff",
        stale.join(", examples/")
    );
    Ok(())
}

fn generate(project: &Project, bin: &Path) -> Result<Files> {
    // The folder must be as deep as examples/<name>, because the project has a dependency on
    // `rbuilder` with a relative path to this checkout.
    let folder = repo::root().join("target").join(&project.name);
    if folder.exists() {
        fs_err::remove_dir_all(&folder)?;
    }
    // If the project was not a repository, its workflows and its workspace would belong to the
    // repository that contains the folder.
    let repository = folder.join(".git");
    fs_err::create_dir_all(&repository)?;
    follow_recipe(project, bin, &folder)?;
    let committed = repo::root().join("examples").join(&project.name);
    for path in &project.kept {
        if committed.join(path).is_file() {
            write_file(&folder.join(path), &fs_err::read(committed.join(path))?)?;
        }
    }
    rbuilder(bin, &folder, "manifests")?;
    fs_err::remove_dir(&repository)?;
    let files = read_tree(&folder)?;
    fs_err::remove_dir_all(&folder)?;
    Ok(files)
}

fn follow_recipe(project: &Project, bin: &Path, folder: &Path) -> Result<()> {
    if let Some(path) = &project.page {
        for step in Page::read(path)?.steps {
            for command in step.action.rbuilder_commands() {
                rbuilder(bin, folder, command)?;
            }
            let edited = step.action.edit_file(folder);
            edited.with_context(|| format!("{path}:{}", step.line))?;
        }
    }
    for command in &project.commands {
        rbuilder(bin, folder, command)?;
    }
    let patch = format!("examples/patches/{}.diff", project.name);
    let text = fs_err::read_to_string(repo::root().join(&patch)).unwrap_or_default();
    for (path, diff) in split_patch(&text) {
        let change = Action::Change { path, diff };
        change.edit_file(folder).with_context(|| patch.clone())?;
    }
    Ok(())
}

/// Splits a diff of several files into the paths and diffs of individual files. Each of them starts
/// with a line `+++ path`.
fn split_patch(text: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            parts.push((path.to_owned(), String::new()));
        } else if let Some((_, diff)) = parts.last_mut() {
            diff.push_str(line);
            diff.push('\n');
        }
    }
    parts
}

fn rbuilder(bin: &Path, folder: &Path, line: &str) -> Result<()> {
    repo::rbuilder_command(bin, folder, line)?.read().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_patch_by_file() {
        let text = "A comment.\n+++ a/b\n x\n+y\n+++ c\n-z\n";
        let expected = [("a/b", " x\n+y\n"), ("c", "-z\n")];
        assert_eq!(
            split_patch(text),
            expected.map(|(path, diff)| (path.to_owned(), diff.to_owned()))
        );
    }
}
