//! Messages are printed in any directory of the project. There, the user must be able to open each
//! file that a message names, and to paste each command. JSON and diffs contain project paths.

// The test creates the directories in which it runs commands.
#![allow(clippy::disallowed_methods)]

use crate::support;

use support::{Folder, Ran};

const API: &str = "create api --group cache --version v1alpha1 --kind Memcached";
const TYPES: &str = "src/api/v1alpha1/memcached.rs";

/// Each row has the way up, and the relative paths of [`TYPES`] and `src/main.rs`.
const PLACES: [(&str, &str, &str, &str); 4] = [
    ("src", "..", "api/v1alpha1/memcached.rs", "main.rs"),
    ("src/api", "../..", "v1alpha1/memcached.rs", "../main.rs"),
    ("src/api/v1alpha1", "../../..", "memcached.rs", "../../main.rs"),
    (
        "config/crd/bases",
        "../../..",
        "../../../src/api/v1alpha1/memcached.rs",
        "../../../src/main.rs",
    ),
];

fn project() -> Folder {
    let folder = Folder::new();
    folder
        .run("init --domain example.com --project-name shop --owner Shopkeepers")
        .ok();
    for (place, ..) in PLACES {
        std::fs::create_dir_all(folder.path().join(place)).expect("a folder");
    }
    folder
}

fn with_api() -> Folder {
    let folder = project();
    folder.run(API).ok();
    folder
}

/// The output has to contain these lines.
#[track_caller]
fn check(folder: &Folder, place: &str, line: &str, code: u8, expected: &[String]) -> Ran {
    let ran = folder.inside(place).run(line);
    let printed = format!("{}{}", ran.out, ran.err);
    assert_eq!(ran.code, code, "{printed}");
    for part in expected {
        let found = printed.lines().any(|line| line.contains(part.as_str()));
        assert!(found, "expected `{part}` in {place}, found:\n{printed}");
    }
    ran
}

#[test]
fn changes_and_next_steps_have_relative_paths() {
    for (place, up, types, _) in PLACES {
        let folder = project();
        let expected = [
            format!("   create {types}"),
            format!("Next: edit {types} and "),
            format!("  make -C {up} manifests test"),
        ];
        let ran = check(&folder, place, API, 0, &expected);
        for line in ran.out.lines() {
            let path = line.trim_start().split_once(' ').expect("a verb").1;
            assert!(
                folder.path().join(place).join(path).is_file(),
                "{line} in {place}"
            );
        }
    }
}

#[test]
fn dry_run_shows_paths_of_new_files() {
    for (place, _, types, _) in PLACES {
        let folder = project();
        let expected = [format!("   create {types}"), format!("+++ b/{TYPES}")];
        check(&folder, place, &format!("{API} --dry-run"), 0, &expected);
    }
}

#[test]
fn diagnostics_and_failed_edits_have_relative_paths() {
    for (place, _, types, main) in PLACES {
        let folder = with_api();
        let source = folder.tree()[TYPES].clone();
        folder.write(
            TYPES,
            &source.replace("pub foo:", "#[kube(validation(minimun = 1))]\n    pub foo:"),
        );
        check(&folder, place, "manifests", 1, &[format!("--> {types}:")]);

        folder.write(TYPES, &source);
        folder.write("src/main.rs", "fn main() {}\n");
        let webhook = "create webhook --group cache --version v1alpha1 --kind Memcached --defaulting";
        check(&folder, place, webhook, 1, &[format!("cannot edit {main}: ")]);
    }
}

#[test]
fn json_has_project_paths() {
    for (place, ..) in PLACES {
        let folder = project();
        let ran = folder.inside(place).run(&format!("{API} --output json")).ok();
        let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
        let changes = answer["changes"].as_array().expect("changes");
        assert!(
            changes.iter().any(|change| change["path"] == TYPES),
            "{}",
            ran.out
        );

        let source = folder.tree()[TYPES].replace("pub foo:", "#[kube(fuu)]\n    pub foo:");
        folder.write(TYPES, &source);
        let ran = folder.inside(place).run("manifests --output json");
        let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(answer["diagnostics"][0]["path"], TYPES, "{}", ran.out);
        let ran = folder.inside(place).run("manifests --message-format json");
        assert!(
            ran.out.contains(&format!("\"file_name\":\"{TYPES}\"")),
            "{}",
            ran.out
        );
    }
}
