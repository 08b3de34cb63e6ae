//! `rbuilder update` on projects from earlier builds of the same version, before projects recorded
//! their scaffolds. We use two examples of this repository at earlier commits (`cargo xtask
//! templates --former`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rbuilder_cli::commands::rebuild_files;
use rbuilder_project::edit::merge::find_markers;
use rbuilder_project::project::ScaffoldedFiles;
use rbuilder_project::tree::Tree;
use serde::Deserialize;

use crate::support::{Folder, Ran};

const RECORD: &str = ".rbuilder/files.sum";
const BASE: &str = ".rbuilder/scaffold.base";

#[derive(Deserialize)]
struct Document {
    projects: Vec<Former>,
    texts: Vec<String>,
}

#[derive(Deserialize)]
struct Former {
    commit: String,
    example: String,
    files: BTreeMap<String, usize>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Fates {
    /// These have the current text and the user's lines.
    merged: usize,
    conflicts: BTreeSet<String>,
    /// The command says that it couldn't bring these up to date.
    named: BTreeSet<String>,
}

fn read_projects() -> Document {
    let packed = include_bytes!("former/projects.bin");
    let bytes = miniz_oxide::inflate::decompress_to_vec(packed).expect("deflated");
    serde_json::from_slice(&bytes).expect("as it was recorded")
}

/// The line occurs in no scaffold.
fn user_line(path: &str, place: &str) -> String {
    let comment = match Path::new(path)
        .extension()
        .and_then(|extension| extension.to_str())
    {
        Some("rs") => "//",
        _ => "#",
    };
    format!("{comment} a user's line at the {place}\n")
}

fn edit(path: &str, text: &str) -> String {
    let end = if text.ends_with('\n') || text.is_empty() {
        ""
    } else {
        "\n"
    };
    format!(
        "{}{text}{end}{}",
        user_line(path, "start"),
        user_line(path, "end")
    )
}

fn read_record(folder: &Folder) -> ScaffoldedFiles {
    ScaffoldedFiles::parse(folder.tree().get(RECORD).map_or("", String::as_str))
}

fn rebuild(folder: &Folder) -> BTreeMap<String, String> {
    let mut files = rebuild_files(&Tree::new(folder.path()), None).expect("it can be rebuilt");
    files.remove(RECORD);
    files
}

/// Edits every scaffolded file, then updates the project.
fn check(label: &str, folder: &Folder) -> Fates {
    let record = read_record(folder);
    let before = folder.tree();
    let mut scaffolded: BTreeSet<String> = rebuild(folder).into_keys().collect();
    scaffolded.extend(record.paths().map(str::to_owned));
    scaffolded.retain(|path| before.contains_key(path));
    for path in &scaffolded {
        folder.write(path, &edit(path, &before[path]));
    }
    let ran = folder.run("update --manifests=false");
    let (after, today) = (folder.tree(), rebuild(folder));
    let mut fates = Fates::default();
    for path in &scaffolded {
        let text = after
            .get(path)
            .unwrap_or_else(|| panic!("{label}: {path} is gone: {}", ran.err));
        for place in ["start", "end"] {
            assert!(text.contains(&user_line(path, place)), "{label}: {path}: {text}");
        }
        let is_named =
            ran.err.contains(&format!("\n  {path}\n")) || ran.err.contains(&format!("warning: {path} "));
        let is_in_conflict = ran.err.contains(&format!("\n  {path}:"));
        assert_eq!(
            is_in_conflict,
            !find_markers(text).is_empty(),
            "{label}: {path}: {}",
            ran.err
        );
        if is_in_conflict {
            fates.conflicts.insert(path.clone());
        } else if is_named {
            assert_eq!(text, &edit(path, &before[path]), "{label}: {path}");
            fates.named.insert(path.clone());
        } else if let Some(today) = today.get(path) {
            // Only the former command has written this file, so it has the current text and the
            // user's lines now.
            if record.contains(path, &before[path]) {
                assert_eq!(text, &edit(path, today), "{label}: {path}");
            }
            fates.merged += 1;
        }
    }
    for (path, text) in today.iter().filter(|(path, _)| !before.contains_key(*path)) {
        let is_named = ran.err.contains(&format!("warning: {path} "));
        assert!(
            after.get(path) == Some(text) || is_named,
            "{label}: {path} is missing: {}",
            ran.err
        );
    }
    assert_eq!(
        ran.code,
        u8::from(!(fates.named.is_empty() && fates.conflicts.is_empty())),
        "{}",
        ran.err
    );
    fates
}

fn write_project(document: &Document, former: &Former) -> Folder {
    let folder = Folder::new();
    for (path, index) in &former.files {
        folder.write(path, &document.texts[*index]);
    }
    folder
}

/// Does what the messages advise.
fn settle(folder: &Folder, fates: &Fates) -> Ran {
    let tree = folder.tree();
    for path in &fates.conflicts {
        let lines = tree[path].lines();
        let is_marker = |line: &&str| {
            ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
                .iter()
                .any(|marker| line.starts_with(marker))
        };
        let text: String = lines
            .filter(|line| !is_marker(line))
            .map(|line| format!("{line}\n"))
            .collect();
        folder.write(path, &text);
    }
    let accept: String = fates
        .named
        .iter()
        .filter(|path| tree.contains_key(*path))
        .map(|path| format!(" --accept {path}"))
        .collect();
    folder.run(&format!("update --manifests=false{accept}"))
}

#[test]
fn update_keeps_edits_and_merges_or_reports_template_changes() {
    let document = read_projects();
    // Only take the oldest project of each example, and every fifth one after it, since all of them
    // take more than a minute.
    let examples: BTreeSet<&str> = document
        .projects
        .iter()
        .map(|former| former.example.as_str())
        .collect();
    let of_example = |example| {
        document
            .projects
            .iter()
            .filter(move |former| former.example == example)
    };
    for former in examples
        .into_iter()
        .flat_map(|example| of_example(example).step_by(5))
    {
        let label = format!("{} {}", &former.commit[..8], former.example);
        let folder = write_project(&document, former);
        let fates = check(&label, &folder);
        assert_eq!(
            fates.named,
            BTreeSet::new(),
            "{label}: the former templates of each file are known"
        );
        settle(&folder, &fates).ok();
        let tree = folder.tree();
        assert!(tree.contains_key(BASE), "{label}");
        let again = folder.run("update --manifests=false").ok();
        assert!(again.out.starts_with("unchanged"), "{label}: {}", again.out);
    }
}
