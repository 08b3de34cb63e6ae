//! The compiler and the generator must report the same errors at the same places. The generator
//! reads the cases in `derive/tests/ui`, and we compare its errors with the compiler's output that
//! is recorded there.

// The test reads its cases from disk.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::Path;

use rbuilder_generator::{Options, Severity, SourceSet, generate};

const CARGO_TOML: &str =
    "[package]\nname = \"ui\"\nedition = \"2024\"\n\n[dependencies]\nrbuilder-derive = \"0.1\"\n";

/// Both report errors with these parts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    line: usize,
    column: usize,
    message: String,
    help: Option<String>,
}

#[test]
fn compiler_and_generator_report_the_same_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../derive/tests/ui");
    let mut cases: Vec<_> = fs::read_dir(&folder)
        .expect("the derive's cases")
        .map(|entry| entry.expect("a case").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    cases.sort();
    assert!(cases.len() >= 7, "the cases are missing");
    for case in cases {
        let source = fs::read_to_string(&case).expect("a source");
        let stderr = fs::read_to_string(case.with_extension("stderr")).expect("what the compiler says");
        let compiler = compiler(&stderr);
        assert!(!compiler.is_empty(), "{}: nothing is said", case.display());
        assert_eq!(generator(&source), compiler, "{}", case.display());
    }
}

/// rustc prints `error: message`, then help on separate lines, and then ` --> file:line:column`.
fn compiler(stderr: &str) -> Vec<Said> {
    let mut said = Vec::new();
    let (mut message, mut help) = (String::new(), None);
    for line in stderr.lines() {
        if let Some(text) = line.strip_prefix("error: ") {
            (message, help) = (text.to_owned(), None);
        } else if let Some(text) = line.trim_start().strip_prefix("help: ") {
            help = Some(text.to_owned());
        } else if let Some(place) = line.trim_start().strip_prefix("--> ") {
            let mut numbers = place.rsplit(':').map_while(|number| number.parse().ok());
            let (column, line) = (numbers.next().expect("a column"), numbers.next().expect("a line"));
            let message = std::mem::take(&mut message);
            said.push(Said {
                line,
                column,
                message,
                help: help.take(),
            });
        }
    }
    said.sort();
    said
}

fn generator(source: &str) -> Vec<Said> {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    sources.insert("src/main.rs", source);
    let diagnostics = generate(&sources, &Options::default()).diagnostics;
    let errors = diagnostics
        .into_iter()
        // A derive can't see the other derives of its item.
        .filter(|said| !said.message.contains("but does not derive `CustomResource`"))
        .filter(|diagnostic| diagnostic.severity == Severity::Error);
    let mut said: Vec<Said> = errors
        .map(|diagnostic| {
            let before = &source[..diagnostic.place.range.start];
            let start_of_line = before.rfind('\n').map_or(0, |at| at + 1);
            Said {
                line: before.matches('\n').count() + 1,
                column: before[start_of_line..].chars().count() + 1,
                message: diagnostic.message,
                help: diagnostic.help,
            }
        })
        .collect();
    said.sort();
    said
}
