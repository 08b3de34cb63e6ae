//! Texts that match a regular expression.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::choices::Choices;

/// How often more than needed something is repeated.
const REPEATED: u32 = 4;

/// A text that matches; `None` when this is no expression, or one for bytes.
pub(super) fn matching(pattern: &str, choices: &mut Choices) -> Option<String> {
    let expression = regex_syntax::Parser::new().parse(pattern).ok()?;
    let mut text = String::new();
    write(&expression, choices, &mut text)?;
    Some(text)
}

fn write(expression: &Hir, choices: &mut Choices, text: &mut String) -> Option<()> {
    match expression.kind() {
        // Anchors hold where nothing is written before or after what they stand beside.
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges();
            let ranges: Vec<(char, char)> = ranges.iter().map(|range| (range.start(), range.end())).collect();
            text.push(character(&ranges, choices)?);
        }
        HirKind::Class(Class::Bytes(class)) => {
            let ranges = class.ranges();
            let ranges: Vec<(char, char)> = ranges
                .iter()
                .map(|range| (range.start().into(), range.end().into()))
                .collect();
            text.push(character(&ranges, choices)?);
        }
        HirKind::Repetition(repeated) => {
            for _ in 0..repeated.min {
                write(&repeated.sub, choices, text)?;
            }
            let more = repeated
                .max
                .map_or(REPEATED, |most| most.saturating_sub(repeated.min));
            for _ in 0..more.min(REPEATED) {
                if choices
                    .maybe(5, |choices| write(&repeated.sub, choices, text))
                    .is_none()
                {
                    break;
                }
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, choices, text)?,
        HirKind::Concat(parts) => {
            for part in parts {
                write(part, choices, text)?;
            }
        }
        HirKind::Alternation(parts) => write(choices.one_of(parts), choices, text)?,
    }
    Some(())
}

/// A character of a class: of those that can be printed and typed, if there are any. (RE2's `\d` and `\w`, which are
/// meant, have no others.)
fn character(ranges: &[(char, char)], choices: &mut Choices) -> Option<char> {
    // Letters first: they are the simplest to read.
    const LIKED: [(char, char); 4] = [('a', 'z'), ('0', '9'), ('A', 'Z'), (' ', '~')];
    let mut liked: Vec<char> = Vec::new();
    for (from, to) in LIKED {
        for (start, end) in ranges {
            liked.extend((from.max(*start)..=to.min(*end)).filter(|character| character.is_ascii()));
        }
    }
    if !liked.is_empty() {
        return Some(*choices.one_of(&liked));
    }
    ranges.first().map(|(start, _)| *start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_their_pattern() {
        for pattern in [
            "^[a-z]([-a-z0-9]*[a-z0-9])?$",
            r"^\d{2}:\d{2}$",
            "^(ab|cd)+x?$",
            "z$",
            "^x-",
            r"^\S+@\w+\.[^.@\s]{2,}$",
            r"^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)$",
            "^é+$",
            "",
        ] {
            let regex = regex::Regex::new(pattern).unwrap();
            for seed in 0..100 {
                let text = matching(pattern, &mut Choices::random(seed)).unwrap();
                assert!(regex.is_match(&text), "{pattern}: {text:?}");
            }
        }
        assert_eq!(matching("(", &mut Choices::random(0)), None);
    }
}
