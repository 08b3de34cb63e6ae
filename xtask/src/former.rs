//! `cargo xtask templates --former`: extracts the templates that predate recorded scaffolds from
//! the git history.
//!
//! `rbuilder update` uses them to find the scaffolded version of a file. Newer projects record
//! their scaffold, so the archive never has to be updated.

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_templates::{Archive, Command, OnExists, Release, TEMPLATES, Template, TemplateSet, When};
use serde_json::{Value, from_value, json};

use crate::repo;
use crate::sh::Cmd;
use crate::templates::current_versions;

/// Path of the archive.
pub(crate) const FORMER: &str = "templates/data/former.bin";

/// Old versions of example projects, used by the tests of `rbuilder update`.
pub(crate) const FORMER_PROJECTS: &str = "cli/tests/former/projects.bin";

/// The projects whose history is recorded: one with webhooks and a conversion, and one with only a
/// controller.
const EXAMPLES: [&str; 2] = ["examples/cronjob-operator", "examples/memcached-operator"];

/// Files in the projects that are not scaffolded.
const OTHERS: [&str; 4] = ["/Cargo.lock", "/config/crd/bases/", "/dist/", "/bundle"];

/// Path of the template table.
const TABLE: &str = "templates/src/table.rs";

/// Returns an archive of the templates in each commit up to `last` that changed them.
pub(crate) fn read_former_templates(last: &str) -> Result<Archive> {
    let commits = git("log --reverse --format=%H")
        .args([last, "--", "templates"])
        .read()?;
    let mut releases: Vec<Release> = Vec::new();
    for commit in commits.lines() {
        // The first commits contain a table in a different format.
        if !git("cat-file -e").arg(format!("{commit}:{TABLE}")).succeeds() {
            continue;
        }
        let table = show(commit, TABLE)?;
        let release = Release {
            // The versions did not change in these commits.
            versions: current_versions(),
            templates: TemplateSet::new(read_rows(commit, &table)?),
        };
        if !releases.contains(&release) {
            releases.push(release);
        }
    }
    Ok(Archive::new(releases))
}

fn read_rows(commit: &str, table: &str) -> Result<Vec<Template>> {
    let rows = table.lines().filter_map(parse_row);
    rows.map(|row| {
        let text = show(commit, &format!("templates/files/{}", row.name))?;
        Ok(Template {
            text: text.into(),
            ..row
        })
    })
    .collect()
}

/// Returns the example projects of each commit up to `last` that regenerated them, as compressed
/// JSON. The document contains each distinct text once. The texts of a path are adjacent to improve
/// compression.
pub(crate) fn read_former_projects(last: &str) -> Result<Vec<u8>> {
    let mut projects = Vec::new();
    let mut texts: BTreeSet<(String, String)> = BTreeSet::new();
    for example in EXAMPLES {
        let record = format!("{example}/.rbuilder/files.sum");
        let commits = git("log --reverse --format=%H")
            .args([last, "--", &record])
            .read()?;
        for commit in commits.lines() {
            let files = read_project(commit, example)?;
            texts.extend(files.iter().cloned());
            projects.push((commit.to_owned(), example, files));
        }
    }
    let texts: Vec<(String, String)> = texts.into_iter().collect();
    let projects: Vec<Value> = projects
        .into_iter()
        .map(|(commit, example, files)| {
            let files = files.into_iter().map(|file| {
                let index = texts.binary_search(&file).unwrap_or_default();
                (file.0, json!(index))
            });
            json!({ "commit": commit, "example": example, "files": files.collect::<serde_json::Map<_, _>>() })
        })
        .collect();
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    let document = serde_json::to_vec(&json!({ "projects": projects, "texts": texts }))?;
    Ok(miniz_oxide::deflate::compress_to_vec(&document, 10))
}

/// Returns the paths and contents of a project's files in a commit.
fn read_project(commit: &str, example: &str) -> Result<Vec<(String, String)>> {
    let listed = git("ls-tree -r --name-only")
        .args([commit, "--", example])
        .read()?;
    let paths = listed
        .lines()
        .filter(|path| OTHERS.iter().all(|other| !path.contains(other)));
    paths
        .map(|path| {
            let inner = path.trim_start_matches(example).trim_start_matches('/');
            Ok((inner.to_owned(), show(commit, path)?))
        })
        .collect()
}

/// Parses a row of the table without its text, such as
/// `Init Always Owned "init/Makefile.tera" => "Makefile",`. If its condition no longer exists, the
/// current row's condition is used.
fn parse_row(line: &str) -> Option<Template> {
    let (left, destination) = line.trim().strip_suffix("\",")?.split_once("\" => \"")?;
    let (words, name) = left.split_once('"')?;
    let mut words = words.split_whitespace();
    let mut word = || words.next().unwrap_or_default();
    let (command, when, on_exists) = (word(), word(), word());
    let today = TEMPLATES.iter().find(|row| row.name == name);
    Some(Template {
        name: name.to_owned().into(),
        destination: destination.replace("\\\"", "\"").into(),
        command: from_value::<Command>(json!(command)).ok()?,
        when: from_value::<When>(json!(when))
            .ok()
            .or(today.map(|row| row.when))?,
        on_exists: from_value::<OnExists>(json!(on_exists))
            .ok()
            .or(today.map(|row| row.on_exists))?,
        text: "".into(),
    })
}

fn show(commit: &str, path: &str) -> Result<String> {
    git("show").arg(format!("{commit}:{path}")).read()
}

fn git(line: &str) -> Cmd {
    Cmd::new(&format!("git {line}")).dir(repo::root())
}
