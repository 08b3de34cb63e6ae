//! Generates random patterns. They are assembled from parts of the grammar, and about half of them
//! are valid.

use super::{Question, Words};
use crate::random::Random;

pub(super) fn random_question(words: &Words, seed: u64) -> Question {
    let mut random = Random::new(seed);
    let mut pattern = String::new();
    // Most of the groups and classes should be closed, otherwise hardly any pattern would be valid.
    let mut open: Vec<&str> = Vec::new();
    for _ in 0..=random.below(8) {
        let piece = random.one_of(&words.pieces);
        pattern.push_str(piece);
        match piece.as_str() {
            "(" | "(?:" | "(?i:" | "(?P<n>" | "(?<m>" | "(?im-s:" => open.push(")"),
            "[" | "[^" => open.push("]"),
            _ => {}
        }
        if random.once_in(3) {
            pattern.push_str(open.pop().unwrap_or_default());
        }
    }
    while let Some(end) = open.pop() {
        if !random.once_in(8) {
            pattern.push_str(end);
        }
    }
    let mut text = || {
        (0..random.below(5))
            .map(|_| random.one_of(&words.letters).as_str())
            .collect()
    };
    let texts = (0..6).map(|_| text()).collect();
    Question { pattern, texts }
}
