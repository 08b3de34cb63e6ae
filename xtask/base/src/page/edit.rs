//! Applies diffs without line numbers, which is how pages show changes. We use the context lines to
//! find the position of a change.

use anyhow::{Result, bail};

/// Applies a diff to a text.
///
/// A hunk consists of lines that start with a space, `-` or `+`. Empty lines count as context, and
/// hunks are separated by lines that start with `@@`. We need the context lines and `-` lines of
/// each hunk to occur exactly once in the text, as there are no line numbers.
pub(super) fn apply_diff(text: &str, diff: &str) -> Result<String> {
    let mut text = text.to_owned();
    for hunk in split_hunks(diff) {
        text = apply_hunk(&text, &hunk)?;
    }
    Ok(text)
}

fn split_hunks(diff: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = diff.lines().collect();
    let hunks = lines.split(|line| line.starts_with("@@"));
    hunks.filter(|hunk| !hunk.is_empty()).map(<[_]>::to_vec).collect()
}

fn apply_hunk(text: &str, hunk: &[&str]) -> Result<String> {
    let side = |other: char| -> String {
        let lines = hunk.iter().filter(|line| !line.starts_with(other));
        lines
            .map(|line| format!("{}\n", line.get(1..).unwrap_or_default()))
            .collect()
    };
    let (old, new) = (side('+'), side('-'));
    // Both start with a line feed here, otherwise the hunk could match in the middle of a line.
    let (haystack, needle) = (format!("\n{text}"), format!("\n{old}"));
    match haystack.matches(&needle).count() {
        1 => Ok(haystack.replacen(&needle, &format!("\n{new}"), 1)[1..].to_owned()),
        0 => bail!("these lines are not in the file:\n{old}"),
        found => bail!("these lines are in the file {found} times:\n{old}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_determines_position() {
        let check = |text: &str, diff: &str, expected: &str| {
            assert_eq!(apply_diff(text, diff).unwrap(), expected);
        };
        check("a\nb\nc\n", " a\n+x\n b\n", "a\nx\nb\nc\n");
        check("a\nb\nc\n", "-b\n+x\n+y\n", "a\nx\ny\nc\n");
        check("a\n\nb\n", " a\n\n-b\n", "a\n\n");
        check("a\nb\nc\n", "-a\n@@\n c\n+d\n", "b\nc\nd\n");
        check("ab\nb\n", "-b\n", "ab\n");
    }

    #[test]
    fn ambiguous_or_missing_hunk_is_error() {
        let check = |text: &str, diff: &str, expected: &str| {
            assert_eq!(apply_diff(text, diff).unwrap_err().to_string(), expected);
        };
        check("a\n", " b\n+x\n", "these lines are not in the file:\nb\n");
        check(
            "a\nb\na\n",
            " a\n+x\n",
            "these lines are in the file 2 times:\na\n",
        );
    }
}
