//! Compares the parser and the matcher with results of Go's `regexp`, which kube-apiserver uses.

use rbuilder_re2::Pattern;
use serde_json::Value;

/// Recorded by `cargo xtask patterns`.
const RECORDED: &str = include_str!("recorded.jsonl");

fn recorded() -> impl Iterator<Item = (String, Value)> {
    RECORDED.lines().map(|line| {
        let row: Value = serde_json::from_str(line).expect("a line is JSON");
        let pattern = row["pattern"].as_str().expect("a pattern").to_owned();
        (pattern, row)
    })
}

#[test]
fn accepts_same_patterns_as_go() {
    let mut differences = Vec::new();
    let mut counts = [0; 2];
    for (pattern, row) in recorded() {
        let is_valid = row.get("error").is_none();
        counts[usize::from(is_valid)] += 1;
        let parsed = Pattern::parse(&pattern);
        if parsed.is_ok() != is_valid {
            differences.push(format!(
                "{pattern:.60}: Go {}, here {:?}",
                row["error"],
                parsed.err()
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(counts.iter().all(|count| *count > 200), "{counts:?}");
}

#[test]
fn matches_same_strings_as_go() {
    let mut differences = Vec::new();
    let mut decided = 0;
    let mut undecided = Vec::new();
    for (pattern, row) in recorded().filter(|(_, row)| row.get("error").is_none()) {
        let parsed = Pattern::parse(&pattern).expect("a valid pattern");
        for (name, expected) in [("matches", true), ("differs", false)] {
            for text in row[name].as_array().expect("a list of string literals") {
                let text = text.as_str().expect("a text");
                match parsed.is_match(text) {
                    Some(matches) if matches == expected => decided += 1,
                    Some(_) => differences.push(format!("{pattern:?} {name} {text:?}")),
                    None => undecided.push(format!("{pattern:?} on {text:?}")),
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(decided > 3000, "{decided}");
    // Only results that require the Unicode tables are unknown.
    assert!(undecided.len() < decided / 100, "{}", undecided.join("\n"));
}

#[test]
fn no_match_is_shorter_than_said() {
    let mut longest = 0;
    for (pattern, row) in recorded().filter(|(_, row)| row.get("error").is_none()) {
        let parsed = Pattern::parse(&pattern).expect("a valid pattern");
        for text in row["matches"].as_array().expect("a list of string literals") {
            let length = text.as_str().expect("a text").chars().count() as u64;
            assert!(parsed.least_length() <= length, "{pattern:?} matches {text:?}");
        }
        longest = longest.max(parsed.least_length());
    }
    assert!(longest > 3, "{longest}");
    let least = |pattern: &str| Pattern::parse(pattern).expect("a valid pattern").least_length();
    assert_eq!(least(r"^\[[0-9]+-[0-9]+\]$"), 5);
    assert_eq!(least("^(ab|c){2,3}d?$"), 2);
    assert_eq!(least("^(|a)$"), 0);
}

#[test]
fn errors_suggest_a_fix() {
    for (pattern, reason) in [
        ("a**", "`*` cannot repeat `*`; write `(?:…*)*`"),
        (
            "*",
            "nothing to repeat before `*`; write `\\*` for the character itself",
        ),
        ("(?=x)", "look-around is not supported"),
        ("(?<!x)", "look-around is not supported"),
        (r"(a)\1", "back-references are not supported"),
        ("(?P=n)", "back-references are not supported"),
        ("(?>a)", "atomic groups are not supported"),
        ("(?x) a", "unknown flag `x`; expected `i`, `m`, `s` or `U`"),
        (r"\u0041", "`\\u` is not supported; write `\\x{…}`"),
        (r"a\Z", "`\\Z` is not supported; write `\\z`"),
        (
            r"\p{Alphabetic}",
            "unknown Unicode category or script `Alphabetic`",
        ),
        ("a{1001}", "`{1001}` repeats more than 1000 times"),
        ("a{2,1}", "the minimum of `{2,1}` is greater than its maximum"),
        (
            "(a{100}){100}",
            "nested repetitions repeat a part more than 1000 times in total",
        ),
        ("[z-a]", "the range `z-a` ends before it begins"),
        ("[a-z", "the class `[a-z` has no closing `]`"),
        (
            "(a",
            "`(` has no closing `)`; write `\\(` for the character itself",
        ),
        (
            "a)",
            "`)` has no opening `(`; write `\\)` for the character itself",
        ),
        (
            "a\\",
            "it ends with a single `\\`; write `\\\\` for the character itself",
        ),
    ] {
        assert_eq!(
            Pattern::parse(pattern).err().as_deref(),
            Some(reason),
            "{pattern}"
        );
    }
}

/// Checks that expressions of excessive size are rejected quickly, and that deep nesting does not
/// overflow the stack.
#[test]
fn oversized_patterns_fail_fast() {
    let deep = 200_000;
    for pattern in ["(", "(?:", "(a|", "(?:a|", "(?i:", "[", "a|", "a{1000}"] {
        let _ = Pattern::parse(&pattern.repeat(deep)).map(|parsed| parsed.is_match("a"));
    }
    let _ = Pattern::parse(&format!("{}a{}", "(?:a|".repeat(deep), ")".repeat(deep)))
        .map(|parsed| parsed.is_match("b"));
    let many_classes = Pattern::parse(&r"\pL".repeat(40_000));
    assert_eq!(
        many_classes.err().as_deref(),
        Some("it is too large: its classes have too many ranges")
    );
    let large = Pattern::parse("(?:[ab]{30}[cd]{30}){16}.{1000}").expect("a valid pattern");
    assert_eq!(large.is_match("ab"), Some(false));
    assert_eq!(
        Pattern::parse("(?:.{1000}.{1000}){1}.*")
            .expect("valid")
            .is_match(&"a".repeat(2001)),
        Some(true)
    );
}
