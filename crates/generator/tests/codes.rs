//! Each example of a code must cause the diagnostic that it is about, and each message in the
//! golden cases must have a code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rbuilder_generator::codes::Code;
use rbuilder_generator::{Diagnostic, Options, SourceSet, find_replacement, generate};

fn diagnostics(code: &Code, example: &str) -> Vec<Diagnostic> {
    diagnostics_of(&code.package(example))
}

fn diagnostics_of(package: &[(&'static str, String)]) -> Vec<Diagnostic> {
    let mut sources = SourceSet::default();
    for (path, text) in package {
        sources.insert(*path, text.as_str());
    }
    generate(&sources, &Options::default()).diagnostics
}

#[test]
fn wrong_examples_have_exactly_their_code() {
    let mut unexpected = Vec::new();
    for code in Code::all().filter(|code| code.is_about_source()) {
        let found = diagnostics(code, code.wrong);
        let codes: BTreeSet<Option<&str>> = found
            .iter()
            .map(|said| Code::of_message(&said.message).map(|code| code.id))
            .collect();
        let has_level = found.iter().all(|said| said.severity == code.level);
        if codes != BTreeSet::from([Some(code.id)]) || !has_level {
            unexpected.push((code.id, found));
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

#[test]
fn right_examples_are_clean() {
    let unexpected: Vec<_> = Code::all()
        .filter(|code| code.is_about_source())
        .map(|code| (code.id, diagnostics(code, code.right)))
        .filter(|(_, found)| !found.is_empty())
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

/// `rbuilder explain` says for which codes `--fix` corrects the example. With the others, the user
/// has a choice.
#[test]
fn replacements_correct_wrong_examples() {
    let mut corrected = Vec::new();
    for code in Code::all().filter(|code| code.is_about_source()) {
        let mut package = code.package(code.wrong);
        let found = diagnostics_of(&package);
        for said in found.iter().rev() {
            if let Some(replacement) = find_replacement(said, &package[1].1) {
                package[1].1.replace_range(replacement.range, &replacement.text);
            }
        }
        if package != code.package(code.wrong) {
            assert_eq!(diagnostics_of(&package), [], "{}: {}", code.id, package[1].1);
            corrected.push(code.id);
        }
        assert_eq!(
            code.is_corrected(),
            corrected.last() == Some(&code.id),
            "{}",
            code.id
        );
    }
    let expected = [
        "RB0201", "RB0202", "RB0203", "RB0205", "RB0206", "RB0208", "RB0306", "RB0402", "RB0411", "RB0504",
        "RB0505", "RB0506", "RB0601", "RB0602", "RB0604", "RB0605", "RB0607", "RB0701", "RB0705",
    ];
    assert_eq!(corrected, expected);
}

/// In the golden cases, a diagnostic starts with its severity, its code and its message.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test reads the cases")]
fn every_message_of_the_golden_cases_has_a_code() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut without = Vec::new();
    let mut count = 0;
    for case in fs::read_dir(cases).expect("the cases") {
        let text = fs::read_to_string(case.expect("a case").path().join("stderr")).unwrap_or_default();
        for line in text.lines() {
            let severities = ["error", "warning", "note"];
            let Some(rest) = severities.iter().find_map(|severity| line.strip_prefix(severity)) else {
                continue;
            };
            match rest.as_bytes() {
                [b'[', ..] => count += 1,
                [b':', ..] => without.push(line.to_owned()),
                _ => {}
            }
        }
    }
    assert!(count > 200, "{count} messages");
    assert!(
        without.is_empty(),
        "add these to a row of crates/generator/src/codes/: {without:#?}"
    );
}

/// The marker parser has to know the codes without the table.
#[test]
fn parser_knows_all_codes() {
    let known: Vec<String> = rbuilder_syntax::codes().collect();
    let codes: Vec<&str> = Code::all().map(|code| code.id).collect();
    assert_eq!(known, codes);
}
