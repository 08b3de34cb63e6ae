//! Merges warnings with the same cause.

use std::collections::BTreeMap;

use crate::Diagnostic;

/// Merges warnings with the same message into the first one, which then mentions a second place and
/// counts the rest. Errors aren't merged.
pub(crate) fn merge_repeated(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut kept = Vec::new();
    for diagnostic in diagnostics {
        if diagnostic.is_error() {
            kept.push(diagnostic);
            continue;
        }
        let places = places.entry(diagnostic.message.clone()).or_default();
        places.push(diagnostic.place.clone());
        if places.len() == 1 {
            kept.push(diagnostic);
        }
    }
    for diagnostic in kept.iter_mut().filter(|diagnostic| !diagnostic.is_error()) {
        diagnostic.message += &match places.get(&diagnostic.message).map(Vec::as_slice) {
            Some([_, second]) => format!(" (and at {second})"),
            Some([_, second, _]) => format!(" (and at {second}, and at 1 more place)"),
            Some([_, second, rest @ ..]) => format!(" (and at {second}, and at {} more places)", rest.len()),
            _ => continue,
        };
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_warnings_with_same_cause() {
        let check = |places: &[&str], expected: &str| {
            let warn = |place: &&str| Diagnostic::warning((*place).to_owned(), "`id` is left out");
            let other = Diagnostic::error("b".to_owned(), "no names");
            let all = places.iter().map(warn).chain([other.clone()]);
            let merged = merge_repeated(all.collect());
            assert_eq!(merged, [Diagnostic::warning("a".to_owned(), expected), other]);
        };
        check(&["a"], "`id` is left out");
        check(&["a", "b"], "`id` is left out (and at b)");
        check(
            &["a", "b", "c"],
            "`id` is left out (and at b, and at 1 more place)",
        );
        check(
            &["a", "b", "c", "d"],
            "`id` is left out (and at b, and at 2 more places)",
        );
    }
}
