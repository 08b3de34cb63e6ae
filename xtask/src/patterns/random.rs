//! Generates random patterns. They are assembled from parts of the grammar, and about half of them
//! are valid.

use super::Question;

const PIECES: &[&str] = &[
    "a",
    "b",
    "k",
    "S",
    "é",
    "ß",
    "ſ",
    "K",
    "0",
    "_",
    "-",
    ",",
    " ",
    "\n",
    ".",
    "^",
    "$",
    "|",
    "(",
    ")",
    "(?:",
    "(?i)",
    "(?i:",
    "(?s)",
    "(?m)",
    "(?U)",
    "(?-i)",
    "(?im-s:",
    "(?P<n>",
    "(?<m>",
    "(?=",
    "(?x)",
    "(?",
    "[",
    "]",
    "[^",
    "[:",
    ":]",
    "[[:alpha:]]",
    "[[:^space:]]",
    "[a-c]",
    "[^b]",
    "[]a]",
    "[^]a]",
    "[a-]",
    "[-a]",
    "[^\\n]",
    "[é-ü]",
    "*",
    "+",
    "?",
    "{",
    "}",
    "{2}",
    "{0}",
    "{1,3}",
    "{,3}",
    "{2,}",
    "{0,1}",
    "{10}",
    "{100}",
    "{1000}",
    "{1001}",
    "{01}",
    "{3,2}",
    "**",
    "*?",
    "+?",
    "??",
    "{2}?",
    "\\",
    "\\\\",
    "\\d",
    "\\D",
    "\\s",
    "\\S",
    "\\w",
    "\\W",
    "\\b",
    "\\B",
    "\\A",
    "\\z",
    "\\Z",
    "\\Q",
    "\\E",
    "\\C",
    "\\pL",
    "\\PN",
    "\\p{Lu}",
    "\\p{^Greek}",
    "\\P{l l}",
    "\\p{Alphabetic}",
    "\\p{",
    "\\x41",
    "\\x{e9}",
    "\\x{110000}",
    "\\x",
    "\\u0041",
    "\\1",
    "\\12",
    "\\0",
    "\\08",
    "\\_",
    "\\-",
    "\\n",
    "\\t",
    "\\a",
    "\\q",
    "\\é",
    "&&",
    "~~",
    "--",
    "<",
    ">",
    "!",
    "#",
    ":",
    "=",
    "i",
    "m",
];

const LETTERS: &[&str] = &[
    "a", "b", "A", "B", "k", "K", "s", "S", "é", "É", "ß", "ſ", "K", "0", "_", "-", " ", "\n", "Q", "{", "}",
    "x", "\\", "[", "]", "α",
];

/// Returns a pattern and strings for the given seed.
pub(super) fn random_question(seed: u64) -> Question {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut choose = move |count: usize| {
        // This is Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % count
    };
    let mut pattern = String::new();
    // Most of the groups and classes should be closed, otherwise hardly any pattern would be valid.
    let mut open: Vec<&str> = Vec::new();
    for _ in 0..1 + choose(8) {
        let piece = PIECES[choose(PIECES.len())];
        pattern.push_str(piece);
        match piece {
            "(" | "(?:" | "(?i:" | "(?P<n>" | "(?<m>" | "(?im-s:" => open.push(")"),
            "[" | "[^" => open.push("]"),
            _ => {}
        }
        if !open.is_empty() && choose(3) == 0 {
            pattern.push_str(open.pop().unwrap_or_default());
        }
    }
    while let Some(end) = open.pop() {
        if choose(8) > 0 {
            pattern.push_str(end);
        }
    }
    let texts = (0..6)
        .map(|_| (0..choose(5)).map(|_| LETTERS[choose(LETTERS.len())]).collect())
        .collect();
    Question { pattern, texts }
}
