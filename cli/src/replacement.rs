//! Replacements that the help of diagnostics proposes, for editors and `--fix`.

use std::ops::Range;

use rbuilder_generator::Diagnostic;

/// What precedes the wrong name in messages whose help proposes another name.
const INTRODUCTIONS: &[&str] = &[
    "unknown ",
    " no API group ",
    " no resource ",
    " no subresource ",
    " has a resource ",
];

/// A text that replaces a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// Returns the replacement for a wrong name, if the help proposes exactly one name, and if the wrong
/// one occurs exactly once at the place of the diagnostic.
pub(crate) fn find_replacement(diagnostic: &Diagnostic, source: &str) -> Option<Replacement> {
    let help = diagnostic.help.as_deref()?;
    let text = help.strip_prefix("did you mean `")?.strip_suffix("`?")?;
    let message = &diagnostic.message;
    let mut introduced = INTRODUCTIONS
        .iter()
        .filter_map(|words| message.split_once(words).map(|(_, rest)| rest));
    let name = introduced.next()?.split('`').nth(1)?;
    let place = &diagnostic.place.range;
    let start = place.start + find_word(source.get(place.clone())?, name)?;
    Some(Replacement {
        range: start..start + name.len(),
        text: text.to_owned(),
    })
}

/// Returns the only position of a word that is no part of a longer one.
fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_part =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let mut found = text.match_indices(word).map(|(at, _)| at).filter(|at| {
        !word.is_empty()
            && !is_part(text[..*at].chars().next_back())
            && !is_part(text[at + word.len()..].chars().next())
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use rbuilder_generator::FileRange;

    use super::*;

    fn check(source: &str, message: &str, help: &str, expected: Option<&str>) {
        let diagnostic = Diagnostic::error(FileRange::new("a.rs", 1..source.len()), message).help(help);
        let found = find_replacement(&diagnostic, source);
        let fixed = found.map(|found| {
            let mut fixed = source.to_owned();
            fixed.replace_range(found.range, &found.text);
            fixed
        });
        assert_eq!(fixed.as_deref(), expected, "{source}: {message}");
    }

    #[test]
    fn a_single_wrong_name_is_replaced() {
        let help = "did you mean `minimum`?";
        check(
            " minimun = 1",
            "unknown validation `minimun`",
            help,
            Some(" minimum = 1"),
        );
        check(
            " \"minimun\"",
            "unknown validation `minimun`",
            help,
            Some(" \"minimum\""),
        );
        check(" minimun(minimun)", "unknown validation `minimun`", help, None);
        check(" minimuns", "unknown validation `minimun`", help, None);
        check(
            " minimun",
            "unknown validation `minimun`",
            "use one of: `minimum`",
            None,
        );
        check(" minimun", "expected `minimun`", help, None);
        check(" ``", "unknown validation ``", help, None);
        // Only the unknown name is replaced.
        check(
            " Size .spec.sise",
            "printer column `Size` will be empty: unknown field `sise`",
            "did you mean `size`?",
            Some(" Size .spec.size"),
        );
    }
}
