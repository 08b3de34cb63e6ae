//! Checks the examples of the codes that the command itself reports. Each example must have the
//! diagnostic that it is about.

use std::collections::BTreeSet;

use rbuilder_generator::codes::{BECOMES, Code, ExamplePlace};
use serde_json::Value;

use crate::support::Folder;

fn write_package(folder: &Folder, files: [(&'static str, String); 2]) {
    for (path, text) in files {
        folder.write(path, &text);
    }
}

/// Returns the severities and codes.
fn reported(code: &Code, example: &str) -> BTreeSet<(String, String)> {
    let folder = Folder::new();
    let diagnostics = match code.place {
        ExamplePlace::Object => {
            write_package(&folder, code.package(example));
            folder.write("object.yaml", &code.object(example));
            let ran = folder.run("validate object.yaml --output json");
            let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
            answer["objects"][0]["diagnostics"].clone()
        }
        ExamplePlace::Project => return reported_in_project(example),
        ExamplePlace::Selection => {
            write_package(&folder, code.package(example));
            let ran = folder.run("manifests --dry-run --output json");
            let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
            answer["diagnostics"].clone()
        }
        _ => {
            let before = example.split(BECOMES).next().unwrap_or_default();
            write_package(&folder, code.package(before));
            folder.run("manifests").ok();
            folder.git("init --quiet");
            folder.git("add --all");
            write_package(&folder, code.package(example));
            let ran = folder.run("manifests --dry-run --output json");
            let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
            answer["diagnostics"].clone()
        }
    };
    list_codes(&diagnostics, "severity")
}

/// Puts a file with the example into a scaffolded project. Returns the severities and codes that
/// `doctor` and `manifests` report.
fn reported_in_project(example: &str) -> BTreeSet<(String, String)> {
    let folder = Folder::new();
    folder
        .run("init --domain example.com --project-name widgets")
        .ok();
    folder
        .run("create api --group shop --version v1 --kind Widget")
        .ok();
    folder.run("manifests").ok();
    let path = example.lines().next().and_then(|line| line.strip_prefix("# "));
    folder.write(path.expect("a path"), &format!("{example}\n"));
    let answer = |line: &str| serde_json::from_str::<Value>(&folder.run(line).out).expect("JSON");
    let mut found = list_codes(&answer("doctor --output json")["findings"], "status");
    // `doctor` also has checks without a code.
    found.retain(|(_, code)| !code.is_empty());
    let diagnostics = answer("manifests --dry-run --output json")["diagnostics"].clone();
    found.extend(list_codes(&diagnostics, "severity"));
    found
}

fn list_codes(found: &Value, severity: &str) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = found.as_array().into_iter().flatten();
    list.map(|said| (text(&said[severity]), text(&said["code"])))
        .collect()
}

fn of_command() -> impl Iterator<Item = &'static Code> {
    Code::all().filter(|code| !code.is_about_source())
}

#[test]
fn wrong_examples_have_exactly_their_code() {
    for code in of_command() {
        let level = match code.level {
            rbuilder_generator::Severity::Error => "error",
            rbuilder_generator::Severity::Warning => "warning",
            rbuilder_generator::Severity::Note => "note",
        };
        let expected = BTreeSet::from([(level.to_owned(), code.id.to_owned())]);
        assert_eq!(reported(code, code.wrong), expected, "{}", code.id);
    }
}

#[test]
fn right_examples_are_clean() {
    for code in of_command() {
        assert_eq!(reported(code, code.right), BTreeSet::new(), "{}", code.id);
    }
}
