//! Warnings with one cause, said once.

use std::collections::BTreeMap;

use crate::Diagnostic;

/// Merges the warnings that say the same of several places into the first of each, which names another place and the
/// number of the rest. Errors stay.
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
    fn one_warning_for_each_cause() {
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
