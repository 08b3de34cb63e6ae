//! Contains the patterns for which we record the results.

use super::Question;

/// Operands which are combined with each operator. Note that some of these aren't valid.
const OPERANDS: &[&str] = &[
    "", "a", "ab", ".", "^", "$", "\\b", "\\z", "[ab]", "[^a]", "(a)", "(?:a)", "()", "(?i)", "(?i:a)", "a|",
    "a|b", "(", "a)", "{", "\\Qa\\E", "\\Q\\E", "\\d", "\\pL", "\\x41", "\\{", "]", "}",
];

/// Operators. Note that some of these aren't valid.
const OPERATORS: &[&str] = &[
    "*",
    "+",
    "?",
    "*?",
    "+?",
    "??",
    "{2}",
    "{2}?",
    "{2,}",
    "{0}",
    "{0,0}",
    "{1,2}",
    "{,2}",
    "{2,1}",
    "{1000}",
    "{1001}",
    "{1,1001}",
    "{1001,}",
    "{99999999999999999999}",
    "{1,99999999999999999999}",
    "{02}",
    "{2",
    "{2,",
    "{}",
    "{,}",
    "{a}",
    "{2,a}",
    "{ 2}",
    "{-1}",
    "**",
    "++",
    "?*",
    "*+",
    "?+",
    "{2}*",
    "*{2}",
    "{2}{3}",
    "*??",
    "???",
    "(?i)*",
    "|*",
    "{2}?{3}?",
];

/// Every valid combination is matched against these strings.
const TEXTS: &[&str] = &[
    "", "a", "b", "aa", "ab", "A", "aB", "0", "_", " ", "\n", "a\nb", "{", "}", "a{,2}", "a{2,1}", "\\", "]",
    "-", "é", "É",
];

/// More patterns, along with their strings.
const PATTERNS: &str = include_str!("patterns.yaml");

/// Returns all of the patterns and strings.
pub(super) fn all_questions() -> Vec<Question> {
    let further: Vec<(String, Vec<String>)> =
        serde_saphyr::from_str(PATTERNS).expect("patterns.yaml is a list of patterns with strings");
    let mut all: Vec<Question> = further
        .into_iter()
        .map(|(pattern, texts)| Question { pattern, texts })
        .collect();
    for operand in OPERANDS {
        for operator in OPERATORS {
            all.push(question(format!("{operand}{operator}"), TEXTS));
        }
    }
    // Every escape in ASCII, both on its own and in a class.
    for letter in (' '..='~').map(String::from) {
        all.push(question(
            format!("^\\{letter}"),
            &[letter.as_str(), "a", "1", " ", "\n"],
        ));
        all.push(question(
            format!("^[\\{letter}]"),
            &[letter.as_str(), "a", "1", " ", "\n"],
        ));
        all.push(question(format!("^[{letter}x]"), &[letter.as_str(), "x", "y"]));
        all.push(question(format!("(?{letter})a"), &["a", "A"]));
        all.push(question(format!("(?{letter}:a)"), &["a", "A"]));
        all.push(question(format!("(?{letter}"), &[]));
    }
    for name in [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
        "upper", "word", "xdigit", "any", "",
    ] {
        all.push(question(
            format!("^[[:{name}:]]$"),
            &["a", "Z", "5", " ", "\t", "\u{b}", ".", "_", "\0", "é"],
        ));
        all.push(question(
            format!("^[^[:^{name}:]]$"),
            &["a", "Z", "5", " ", "\t", "\u{b}", ".", "_", "\0", "é"],
        ));
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
