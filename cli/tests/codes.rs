//! The codes of what the command reports itself: each example has the diagnostic that it is about.

use std::collections::BTreeSet;

use rbuilder_generator::codes::{Code, ExamplePlace};
use serde_json::Value;

use crate::support::Folder;

fn write_package(folder: &Folder, files: [(&'static str, String); 2]) {
    for (path, text) in files {
        folder.write(path, &text);
    }
}

/// Returns the severities and codes that the command reports for an example.
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
        _ => {
            write_package(&folder, code.package_before(example));
            folder.run("manifests").ok();
            folder.git("init --quiet");
            folder.git("add --all");
            write_package(&folder, code.package(example));
            let ran = folder.run("manifests --dry-run --output json");
            let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
            answer["diagnostics"].clone()
        }
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let diagnostics = diagnostics.as_array().cloned().unwrap_or_default();
    diagnostics
        .iter()
        .map(|said| (text(&said["severity"]), text(&said["code"])))
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
