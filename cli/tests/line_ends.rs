//! On Windows, git checks out files with `\r
//! `. Every command must work as it does on other systems.

use std::collections::BTreeMap;

use crate::older;
use crate::support::{Folder, Ran};

fn to_windows(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Git would convert all files in a fresh checkout.
fn check_out(folder: &Folder) {
    for (path, text) in folder.tree().iter().filter(|(path, _)| !path.ends_with('/')) {
        folder.write(path, &to_windows(text));
    }
}

/// Git converts the files when they are committed.
fn committed(folder: &Folder) -> BTreeMap<String, String> {
    let each = |(path, text): (String, String)| (path, text.replace("\r\n", "\n"));
    folder.tree().into_iter().map(each).collect()
}

/// Compares the results, and checks that existing files keep their line endings.
fn run_in_both(unix: &Folder, windows: &Folder, line: &str, run: impl Fn(&Folder) -> Ran) {
    check_out(windows);
    let before = windows.tree();
    let (expected, found) = (run(unix), run(windows));
    let told = |ran: &Ran| (ran.code, format!("{}{}", ran.out, ran.err).replace("\r\n", "\n"));
    let place = |folder: &Folder, (code, text): (u8, String)| {
        (
            code,
            text.replace(folder.path().to_str().expect("a plain path"), "."),
        )
    };
    assert_eq!(
        place(windows, told(&found)),
        place(unix, told(&expected)),
        "{line}"
    );
    assert_eq!(committed(windows), committed(unix), "{line}");
    for (path, text) in windows.tree() {
        if before.contains_key(&path) {
            assert_eq!(text, to_windows(&text), "{line}: {path}");
        }
    }
}

fn new_projects() -> (Folder, Folder) {
    let folders = (Folder::new(), Folder::new());
    for folder in [&folders.0, &folders.1] {
        folder.run("init --domain example.com --project-name shop").ok();
    }
    folders
}

#[test]
fn commands_work_the_same_with_windows_line_endings() {
    let (unix, windows) = new_projects();
    for line in [
        "create api --group cache --version v1alpha1 --kind Cup",
        "create webhook --group cache --version v1alpha1 --kind Cup --defaulting --programmatic-validation",
        "manifests --check",
        "update",
        "create api --group cache --version v1 --kind Cup",
        "manifests --check",
        "helm",
        "helm --check",
        "bundle",
        "bundle --check",
        "docs",
        "docs --check",
        "grafana",
        "grafana --check",
        "edit --multigroup",
        "create api --group tea --version v1 --kind Leaf",
        "create api --group apps --version v1 --kind Deployment --controller --resource=false",
        "delete api --group tea --version v1 --kind Leaf",
        "manifests --check",
        "helm",
        "bundle --version 0.2.0",
        "delete webhook --group cache --version v1alpha1 --kind Cup --defaulting",
        "update",
    ] {
        run_in_both(&unix, &windows, line, |folder| folder.run(line));
    }
}

#[test]
fn update_merges_with_windows_line_endings() {
    let (unix, windows) = new_projects();
    for folder in [&unix, &windows] {
        folder
            .run("create api --group cache --version v1 --kind Cup")
            .ok();
        older::age(folder);
        folder.replace("Makefile", "\n", "\n# Ours.\n");
    }
    run_in_both(&unix, &windows, "update", |folder| {
        older::update(folder, "update")
    });
}

#[test]
fn diff_of_a_stale_file_only_shows_changes() {
    let (_, windows) = new_projects();
    windows
        .run("create api --group cache --version v1 --kind Cup")
        .ok();
    check_out(&windows);
    windows.replace("src/api/v1/cup.rs", "CupSpec defines", "CupSpec states");
    let ran = windows.run("manifests --check");
    let diff = ran.out.lines().filter(|line| line.starts_with(['+', '-']));
    assert_eq!(ran.code, 1);
    assert_eq!(diff.count(), 4, "{}", ran.out);
}
