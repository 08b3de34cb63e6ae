//! Compares the output shown on a page with what the commands really print.

/// Compares two outputs. Returns the first line of `expected` that is missing in `found`, or a
/// message if there are extra lines in `found`. Returns `None` if they match.
///
/// `…` matches any text within a line, and a line with nothing but `…` matches any number of lines.
/// We treat consecutive spaces as one, because the width of columns may differ.
pub fn find_difference(expected: &str, found: &str) -> Option<String> {
    let (expected, found) = (single_spaced(expected), single_spaced(found));
    let expected: Vec<&str> = expected.lines().collect();
    let found: Vec<&str> = found.lines().collect();
    let mut furthest = 0;
    if matches(&expected, &found, 0, &mut furthest) {
        return None;
    }
    Some(match expected.get(furthest) {
        Some(line) => format!("not seen: {line}"),
        None => "more was seen than the page says".to_owned(),
    })
}

fn single_spaced(text: &str) -> String {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_end().lines().map(|line| words(line) + "\n").collect()
}

/// Returns true if all lines match. Updates `furthest`, which counts the expected lines that have
/// matched so far.
fn matches(expected: &[&str], found: &[&str], met: usize, furthest: &mut usize) -> bool {
    *furthest = (*furthest).max(met);
    match expected.split_first() {
        None => found.is_empty(),
        Some((&"…", rest)) => {
            (0..=found.len()).any(|skipped| matches(rest, &found[skipped..], met + 1, furthest))
        }
        Some((line, rest)) => found.split_first().is_some_and(|(first, others)| {
            line_matches(line, first) && matches(rest, others, met + 1, furthest)
        }),
    }
}

fn line_matches(expected: &str, found: &str) -> bool {
    let Some((start, rest)) = expected.split_once('…') else {
        return expected == found;
    };
    let Some(found) = found.strip_prefix(start) else {
        return false;
    };
    let ends = found.char_indices().map(|(index, _)| index).chain([found.len()]);
    ends.into_iter().any(|index| line_matches(rest, &found[index..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ellipsis_matches_variable_output() {
        let check = |expected: &str, found: &str, difference: Option<&str>| {
            assert_eq!(find_difference(expected, found).as_deref(), difference);
        };
        check("a\nb\n", "a\nb", None);
        check("a", "a  \n", None);
        check("NAME   AGE\nx      …s\n", "NAME      AGE\nx         12s\n", None);
        check("…\nb\n…\nd\n", "a\nb\nc\nc\nd\n", None);
        check("…\n", "", None);
        check("a … c … e", "a b c d e", None);
        check("a\nb\n", "a\nc\n", Some("not seen: b"));
        check("…\nd\n", "a\nb\n", Some("not seen: d"));
        check("a\n", "a\nb\n", Some("more was seen than the page says"));
        check("…s", "12m", Some("not seen: …s"));
    }
}
