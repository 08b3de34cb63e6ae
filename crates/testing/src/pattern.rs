//! Random strings that match a regular expression.

use rbuilder_re2::{Choice, Pattern};

use super::choices::Choices;

// Samples may fail to match, as anchors and empty classes aren't sampled exactly.
const TRIES: usize = 20;

pub(super) fn matching_string(pattern: &str, choices: &mut Choices) -> Option<String> {
    let pattern = Pattern::parse(pattern).ok()?;
    for _ in 0..TRIES {
        // Make further repetitions increasingly unlikely, or `(a*)*` would get very long.
        let mut ways = 0;
        let text = pattern.sample(|choice| match choice {
            Choice::Way => {
                ways += 1;
                let in_ten = if ways < 40 { 5 } else { 1 };
                usize::from(choices.maybe(in_ten, |_| ()).is_some())
            }
            Choice::Letter(letters) => choices.below(letters.len() as u64) as usize,
        });
        if let Some(text) = text
            && pattern.is_match(&text) != Some(false)
        {
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_match_their_pattern() {
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
            // Valid in RE2, but not in Rust's regex.
            "^[^][ ]+$",
            "^{{ x{,3} }}$",
            r"^\Qa.b*\E+$",
            "^[a&&b]$",
            r"^\pL{3,8}$",
            r"^[[:alpha:]]\p{Nd}$",
            "^a$|^b$|$c^|^d{0}$",
        ] {
            let read = Pattern::parse(pattern).expect("a pattern");
            for seed in 0..100 {
                let text = matching_string(pattern, &mut Choices::random(seed)).expect("a text");
                assert_eq!(read.is_match(&text), Some(true), "{pattern}: {text:?}");
            }
        }
        assert_eq!(matching_string("(", &mut Choices::random(0)), None);
    }
}
