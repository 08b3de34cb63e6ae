//! Contains the patterns for which we record the results.

use super::{Question, words};

pub(super) fn all_questions() -> Vec<Question> {
    let further: Vec<(String, Vec<String>)> = serde_saphyr::from_str(include_str!("patterns.yaml"))
        .expect("patterns.yaml is a list of patterns with strings");
    let further = further.into_iter();
    let mut all: Vec<Question> = further
        .map(|(pattern, texts)| Question { pattern, texts })
        .collect();
    let mut add = |pattern: String, texts: &[&str]| all.push(question(pattern, texts));
    let words = words();
    let texts: Vec<&str> = words.texts.iter().map(String::as_str).collect();
    for operand in &words.operands {
        for operator in &words.operators {
            add(format!("{operand}{operator}"), &texts);
        }
    }
    // Every escape in ASCII, both on its own and in a class.
    for letter in (' '..='~').map(String::from) {
        add(format!("^\\{letter}"), &[&letter, "a", "1", " ", "\n"]);
        add(format!("^[\\{letter}]"), &[&letter, "a", "1", " ", "\n"]);
        add(format!("^[{letter}x]"), &[&letter, "x", "y"]);
        add(format!("(?{letter})a"), &["a", "A"]);
        add(format!("(?{letter}:a)"), &["a", "A"]);
        add(format!("(?{letter}"), &[]);
    }
    let samples = ["a", "Z", "5", " ", "\t", "\u{b}", ".", "_", "\0", "é"];
    for name in &words.classes {
        add(format!("^[[:{name}:]]$"), &samples);
        add(format!("^[^[:^{name}:]]$"), &samples);
    }
    all.extend(large());
    all.sort_by(|left, right| left.pattern.cmp(&right.pattern));
    all.dedup_by(|left, right| left.pattern == right.pattern);
    all
}

/// Returns patterns which are slightly below or above the limits.
fn large() -> Vec<Question> {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    [
        nested("(", "a", ")", 999),
        nested("(", "a", ")", 1000),
        nested("(", "ab", ")", 999),
        nested("(", "ab", ")", 1000),
        nested("(", "a*", ")", 998),
        nested("(", "a*", ")", 999),
        nested("(?:", "a", ")", 3000),
        nested("(?:", "a", ")*", 999),
        nested("(?:", "a", ")*", 1000),
        nested("(?:a", "b", "c)", 1200),
        nested("(?:a|b", "c", ")", 400),
        nested("(?:a?|", "c", ")", 1200),
        nested("(?:a", "b", ")?", 499),
        nested("(?:a", "b", ")?", 500),
        // There may be 3355443 instructions. The letters must be different, because the same letter
        // several times would become a literal.
        format!("(?:{}){{1000}}", ".a".repeat(1600)),
        format!("(?:{}){{1000}}", ".a".repeat(1700)),
        format!("(?:{}){{1000}}", "a".repeat(4000)),
    ]
    .map(|pattern| question(pattern, &[]))
    .into()
}

fn question(pattern: String, texts: &[&str]) -> Question {
    Question {
        pattern,
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
    }
}
