//! `cargo xtask templates --former`: finds old templates in the git history. These are from the
//! time before projects recorded their scaffolds.
//!
//! `rbuilder update` needs them in order to find out what a file looked like when it was
//! scaffolded. Newer projects have a record of that, which means that we never have to update this
//! archive.

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_templates::{Archive, Command, OnExists, Release, TEMPLATES, Template, TemplateSet, When};
use serde_json::{Value, from_value, json};

use crate::repo;
use crate::sh::Cmd;
use crate::templates::current_versions;

pub(crate) const FORMER: &str = "templates/data/former.bin";

/// Example projects as they were in the past. They are needed by the tests of `rbuilder update`.
pub(crate) const FORMER_PROJECTS: &str = "cli/tests/former/projects.bin";

/// We record the history of two projects. The first has webhooks and a conversion, and the second
/// just has a controller.
const EXAMPLES: [&str; 2] = ["examples/cronjob-operator", "examples/memcached-operator"];

/// These files belong to the projects, but they aren't scaffolded.
const OTHERS: [&str; 4] = ["/Cargo.lock", "/config/crd/bases/", "/dist/", "/bundle"];

const TABLE: &str = "templates/src/table.rs";

/// Returns an archive with the templates from all commits that changed them, up to `last`.
pub(crate) fn read_former_templates(last: &str) -> Result<Archive> {
    let commits = git("log --reverse --format=%H")
        .args([last, "--", "templates"])
        .read()?;
    let mut releases: Vec<Release> = Vec::new();
    for commit in commits.lines() {
        // In the first commits, the table has another format.
        if !git("cat-file -e").arg(format!("{commit}:{TABLE}")).succeeds() {
            continue;
        }
        let table = show(commit, TABLE)?;
        let release = Release {
            // The versions are the same for all of these commits.
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

/// Returns the example projects from all commits that regenerated them, up to `last`.
///
/// The result is compressed JSON. Each text is contained only once, even if it's used by many
/// commits. All texts of a path are next to each other, since they are similar and this makes the
/// result smaller.
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

/// Parses a row of the table, e.g. `Init Always Owned "init/Makefile.tera" => "Makefile",`. The
/// template's text is not part of the row. If there's no such condition anymore, we use the
/// condition in the current row instead.
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
