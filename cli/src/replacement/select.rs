//! Applies several replacements to a text.

use rbuilder_generator::replacement::Replacement;

/// Chooses replacements to apply together, in source order. If two overlap, the second one waits
/// for the next round. If there are two texts for one place, neither is applied and the choice is
/// left to the user.
pub(super) fn select(mut found: Vec<Replacement>) -> Vec<Replacement> {
    found.sort_by(|one, two| {
        let key = |found: &Replacement| (found.range.start, found.range.end, found.text.clone());
        key(one).cmp(&key(two))
    });
    found.dedup();
    let is_choice = |one: &Replacement| {
        let mut others = found.iter().filter(|other| other.range == one.range);
        !one.range.is_empty() && others.any(|other| other.text != one.text)
    };
    let choices: Vec<bool> = found.iter().map(is_choice).collect();
    let mut selected: Vec<Replacement> = Vec::new();
    for (replacement, is_choice) in found.into_iter().zip(choices) {
        let end = selected.last().map_or(0, |last| last.range.end);
        if !is_choice && replacement.range.start >= end {
            selected.push(replacement);
        }
    }
    selected
}

/// Applies the replacements chosen by [`select`], and returns the new text and their number.
pub(crate) fn replace_all(text: &str, found: Vec<Replacement>) -> (String, usize) {
    let mut text = text.to_owned();
    let selected = select(found);
    // Backwards, so that the remaining ranges stay valid.
    for Replacement { range, text: new } in selected.iter().rev() {
        if text.get(range.clone()).is_some() {
            text.replace_range(range.clone(), new);
        }
    }
    (text, selected.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_and_contradictory_replacements_are_left_out() {
        let all = |list: &[(usize, usize, &str)]| -> Vec<Replacement> {
            let replacement = |(start, end, text): &(usize, usize, &str)| Replacement {
                range: *start..*end,
                text: (*text).to_owned(),
            };
            list.iter().map(replacement).collect()
        };
        for (found, expected) in [
            (&[(5, 6, "b"), (1, 2, "a")][..], &[(1, 2, "a"), (5, 6, "b")][..]),
            (&[(1, 4, "a"), (2, 5, "b")], &[(1, 4, "a")]),
            (&[(1, 4, "a"), (1, 4, "a")], &[(1, 4, "a")]),
            (&[(1, 4, "a"), (1, 4, "b")], &[]),
            (&[(1, 1, "a"), (1, 1, "b")], &[(1, 1, "a"), (1, 1, "b")]),
        ] {
            assert_eq!(select(all(found)), all(expected));
        }
    }
}
