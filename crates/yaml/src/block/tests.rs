//! Compares the reader with the general parser.

#![expect(
    clippy::disallowed_methods,
    reason = "the real texts are files of this repository"
)]

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::read;
use crate::place::{Node, parse_any_nodes, parse_any_values};

fn compare(text: &str) -> bool {
    let Some(found) = read::<Value>(text) else {
        return false;
    };
    let expected = parse_any_values(text).map_err(|error| crate::describe_cause(&error));
    assert_eq!(Ok(found), expected, "\n{text}");
    // The general parser reads some texts only after spaces are added, which shifts all subsequent
    // places.
    let is_shifted = |error| crate::describe_cause(&error).contains(crate::CONTINUED);
    if serde_saphyr::from_multiple::<Value>(text).is_err_and(is_shifted) {
        return true;
    }
    let list = |nodes: Vec<Node>| nodes.iter().map(Node::places).collect::<Vec<_>>();
    let expected = parse_any_nodes(text).expect("values were read");
    assert_eq!(read(text).map(list), Some(list(expected)), "\n{text}");
    true
}

fn add_yaml_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() && name != "target" && name != ".git" {
            add_yaml_files(&path, files);
        } else if crate::is_yaml(name) {
            files.push(path);
        }
    }
}

#[test]
fn real_files_are_read_equally() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["examples", "testdata", "cli/tests", "crates"] {
        let folder = workspace.join(folder);
        if folder.is_dir() {
            add_yaml_files(&folder, &mut files);
        }
    }
    let texts = files.iter().map(std::fs::read_to_string);
    let texts: Vec<String> = texts.collect::<Result<_, _>>().expect("UTF-8");
    let fast = texts.iter().filter(|text| compare(text)).count();
    // Chart templates aren't YAML, and people write flow collections.
    assert!(fast * 2 > texts.len(), "only {fast} of {} files", texts.len());
}

#[test]
fn printed_constructs_are_read() {
    for text in [
        "a: 1\n",
        "a: 1",
        "- 'b'\n-",
        "---\n# note\na: x # note\nb:\n- 1\n- c: 2\n  d: {}\n-   - e\n    - f\n- []\n",
        "a:\n  b:\n    c: null\n  d:\n---\n- x\n",
        "description: |-\n  One\n    two\n\n  three\nnext: |\n\n\n  x\n\nlast: |+\n  y\n\n",
        "a: >-\n  One\n  two\n\n  three\nb: >\n  c\n",
        "a: one\n  two\n\n  three: not a key?\n",
        "a: 'it''s\n  folded'\nb: \"x \\\"y\\\" \\u00e9\\\n  z\n\n  w\"\n",
        "'on': \"\"\n\"off\": ''\nx-y: -1\nf:a: .spec.x\nargs:\n- --leader-elect\n- -v\n",
        "a: 1.0\nb: 2024-01-01\nc: 0x1F\nd: 010\ne: 1e3\ng: ~\nh: yes\ni: 10Mi\nj: +1\n",
        "a:\n  b: 'c\n d\n\ne'\n",
        "a: >\n\n  b\n  c\n    d\n  \te\n\n  f\n\n    g\n",
        "a: é\u{a0}ü\nü: ñ\n",
    ] {
        let is_read = compare(text);
        // The colon in a plain scalar ends the text for both parsers.
        assert_eq!(is_read, !text.contains("not a key"), "{text}");
    }
}

#[test]
fn other_yaml_is_left_to_the_general_parser() {
    for text in [
        "",
        "# note\n",
        "a: |\n  b",
        "x\n",
        "a: &b 1\n",
        "a: *b\n",
        "a: !!str 1\n",
        "a: [1]\n",
        "a: {b: 1}\n",
        "? a\n: b\n",
        "<<: a\n",
        "a: 1\na: 2\n",
        "a: b: c\n",
        "a:\n  b: 1\n c: 2\n",
        "a:\n- b\n c: 2\n",
        "a: 'b' c\n",
        "a: 'b\n",
        "a:\tb\n",
        "a: 1\r\n",
        "a: |2\n   b\n",
        "a: |\n  \tb\n c\n",
        "--- a\n",
        "a: 1\n...\n",
        "%YAML 1.2\n---\na: 1\n",
        "a: 1\n---\n",
        "a: \"\\q\"\n",
        "1: a\n",
        "a: .inf\n",
        "a: \u{1}\n",
        "a: \u{feff}b\n",
    ] {
        assert!(!compare(text), "{text}");
    }
    let deep = |levels: usize| format!("{}x\n", "- ".repeat(levels));
    assert!(compare(&deep(32)));
    assert!(!compare(&deep(100_000)));
}

/// Pseudo-random numbers (xorshift64) with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const KEYS: [&str; 16] = [
    "a:", "b:", "c:", "d:", "e:", "f:g:", "'h':", "\"i\":", "y:", "x-y:", "/p:", "é:", "a b:", "null:",
    "<<:", "- j:",
];

const VALUES: [&str; 70] = [
    "",
    "",
    "",
    "1",
    "x",
    "true",
    "Null",
    "NULL",
    "~",
    "yes",
    "nan",
    ".nan",
    ".Inf",
    "-1",
    "+1",
    "0",
    "00",
    "0x1",
    "0o7",
    "1_0",
    "1.5",
    "1e3",
    "1:30",
    "12345678901234567890",
    "2024-01-01",
    "-",
    "--x",
    "-x",
    "...",
    "---",
    "=",
    "x y",
    "x #y",
    "x#y",
    "x:y",
    "x: y",
    "x:",
    "# z",
    "'",
    "''",
    "'x'",
    "'x''y'",
    "'x",
    "x'",
    "y' z",
    "\"x\"",
    "\"x\\n\\\"\"",
    "\"x\\",
    "\"\\x41\\u00e9\\ \\r\"",
    "x\"",
    "y\" # z",
    "|",
    "|-",
    "|+",
    "| # z",
    ">",
    ">-",
    "{}",
    "[]",
    "{} ",
    "[x]",
    "&x y",
    "*x",
    "!x y",
    "?",
    "? x",
    "%x",
    "@x",
    "é",
    "\t",
];

/// Composes a text of lines whose meaning is likely to depend on the preceding lines.
fn random_text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(7) {
        text.push_str(&" ".repeat(random.below(5)));
        for _ in 0..random.below(3) / 2 {
            text.push_str(random.pick(&["- ", "-  ", "-"]));
        }
        if random.below(3) > 0 {
            text.push_str(random.pick(&KEYS));
            text.push_str(random.pick(&[" ", " ", " ", " ", "  ", ""]));
        }
        text.push_str(random.pick(&VALUES));
        text.push_str(random.pick(&[
            "\n", "\n", "\n", "\n", "\n", "\n\n", " \n", "\t\n", "\n---\n", "\n  \n",
        ]));
    }
    if random.below(8) == 0 {
        text.pop();
    }
    text
}

#[test]
fn random_texts_are_read_equally() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let count: usize =
        std::env::var("RBUILDER_YAML_TEXTS").map_or(20_000, |count| count.parse().expect("a number"));
    let mut fast = 0;
    for _ in 0..count {
        fast += usize::from(compare(&random_text(&mut random)));
    }
    assert!(fast * 50 > count, "only {fast} of {count} texts");
}

#[test]
fn changed_texts_are_read_equally() {
    let text = "apiVersion: v1\nkind: A\nmetadata:\n  name: 'a-b'\nspec:\n  text: |-\n    One\n\n      two\n  items:\n  - a: \"x\\\n      y\"\n    b: one\n      two # c\n  -  - z\n     - >-\n       f\n       g\n";
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..20_000 {
        let mut changed = text.to_owned();
        for _ in 0..=random.below(3) {
            let at = random.below(changed.len());
            let end = at + random.below(2).min(changed.len() - at);
            let inserted = random.pick(&[
                "", "", " ", "  ", "\n", ":", ": ", "- ", "#", " #", "'", "\"", "\\", "|", ">", "\t", "x",
            ]);
            changed.replace_range(at..end, inserted);
        }
        compare(&changed);
    }
}
