//! Broken source makes diagnostics, never a panic: the cases' sources, damaged at random.
//!
//! A fuzzer goes further; this bounded run holds the ground. It uses a fixed seed, so that a failure can be
//! seen again.

// The test's own files are what it is about.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::Path;

use rbuilder_generator::{Options, Severity, SourceSet, generate};

const ROUNDS: usize = 1500;
const SNIPPETS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "\"",
    "'",
    "r#\"",
    "/*",
    "*/",
    "//",
    "#[",
    "::",
    "=",
    ",",
    ";",
    "\\",
    "\u{feff}",
    "é",
    "\0",
    "fn f() {",
    "#[kube(",
    "#[rbac(",
    "#[webhook(",
    "mod x;",
    "use super::*;",
    "use crate::*;",
    "type X = X;",
    "-1",
    "'a",
    "b'",
    "0x",
    "1e999",
    "..",
    "impl T {",
    "macro_rules! m {",
    "#![cfg(test)]",
    "#[cfg(any())]",
    "#[path = \"lib.rs\"] mod x;",
    "pub struct A<T>(A<A<T>>);",
];

#[test]
fn damaged_source_never_panics() {
    let packages = packages();
    assert!(packages.len() > 10, "the cases are missing");
    let mut random = Random(0x5eed);
    let mut refused = 0;
    for _ in 0..ROUNDS {
        let mut package = packages[random.below(packages.len())].clone();
        for _ in 0..=random.below(3) {
            let file = random.below(package.len());
            let others = packages[random.below(packages.len())].clone();
            damage(&mut package[file].1, &others, &mut random);
        }
        let mut sources = SourceSet::default();
        package
            .iter()
            .for_each(|(path, text)| sources.insert(path.as_str(), text.as_str()));
        let generated = generate(&sources, &Options::default());
        for diagnostic in &generated.diagnostics {
            let text = sources.get(&diagnostic.path).unwrap_or_default();
            assert!(
                text.get(diagnostic.range.clone()).is_some(),
                "a place outside of the file: {diagnostic:?}"
            );
        }
        let failed = generated
            .diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error);
        assert!(!failed || generated.files.is_empty(), "manifests beside an error");
        refused += usize::from(failed);
    }
    assert!(refused > ROUNDS / 2, "the damage does no harm");
}

/// Imports and aliases in circles, and globs over globs.
#[test]
fn circles_end() {
    let kind = "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\
                #[kube(group = \"g.example.com\", version = \"v1\", kind = \"K\")] pub struct KSpec { a: ";
    let cases = [
        ("X }", "use a::X; mod a { pub use super::X; }"),
        ("X }", "use X as X;"),
        ("X }", "type X = Y; type Y = X;"),
        ("X<i32> }", "type X<T> = Option<X<Vec<T>>>;"),
        (
            "X }",
            "use a::*; mod a { pub use super::b::*; pub use super::*; } mod b { pub use super::a::*; pub use super::*; }",
        ),
        ("Self }", ""),
        ("KSpec }", ""),
        ("super::super::super::X }", ""),
        ("crate::K }", ""),
        ("[KSpec; 3] }", ""),
    ];
    for (field, rest) in cases {
        let mut sources = SourceSet::default();
        sources.insert(
            "Cargo.toml",
            "[package]\nname = \"x\"\n[dependencies]\nkube = \"5\"\nrbuilder = \"0.1\"",
        );
        sources.insert("src/lib.rs", format!("{kind}{field}\n{rest}"));
        let generated = generate(&sources, &Options::default());
        assert!(
            generated.files.is_empty() && !generated.diagnostics.is_empty(),
            "{field} {rest}"
        );
    }
}

type Package = Vec<(String, String)>;

fn packages() -> Vec<Package> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<_> = fs::read_dir(root)
        .expect("cases")
        .map(|case| case.expect("a case").path())
        .collect();
    cases.sort();
    cases.iter().map(|case| package(&case.join("in"))).collect()
}

fn package(folder: &Path) -> Package {
    let mut files = Package::new();
    let mut open = vec![folder.to_owned()];
    while let Some(current) = open.pop() {
        let mut entries: Vec<_> = fs::read_dir(current)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path
                    .strip_prefix(folder)
                    .expect("below the folder")
                    .to_string_lossy()
                    .replace('\\', "/");
                files.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    files
}

fn damage(text: &mut String, others: &Package, random: &mut Random) {
    let (a, b) = (random.boundary(text), random.boundary(text));
    let (start, end) = (a.min(b), a.max(b));
    match random.below(6) {
        0 => text.truncate(start),
        1 => text.replace_range(start..end.min(floor(text, start + 20)), ""),
        2 => text.insert_str(start, SNIPPETS[random.below(SNIPPETS.len())]),
        3 => {
            let copy = text[start..end.min(floor(text, start + 200))].to_owned();
            text.insert_str(random.boundary(text), &copy);
        }
        4 => text.insert_str(
            start,
            &SNIPPETS[random.below(SNIPPETS.len())].repeat(random.below(400)),
        ),
        _ => {
            let other = &others[random.below(others.len())].1;
            let from = random.boundary(other);
            text.insert_str(start, &other[from..floor(other, from + 100)]);
        }
    }
}

/// The character boundary at or before a byte.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

/// xorshift: enough for damage.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn boundary(&mut self, text: &str) -> usize {
        let at = self.below(text.len() + 1);
        floor(text, at)
    }
}
