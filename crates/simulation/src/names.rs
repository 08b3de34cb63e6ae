//! Patterns for names that differ between undisturbed runs, e.g. because they contain the hour.

use std::collections::BTreeMap;

use crate::external::is_external;
use crate::world::Difference;

/// Finds patterns for objects that exist under one name in the first run and under another name in
/// the second one.
pub(crate) fn patterns_of(differences: &[Difference]) -> Vec<String> {
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut extra: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for difference in differences {
        let (names, name) = match difference {
            Difference::Missing(name) => (&mut missing, name),
            Difference::Extra(name) => (&mut extra, name),
            Difference::Field(..) => continue,
        };
        if let Some((place, name)) = split(name) {
            names.entry(place).or_default().push(name);
        }
    }
    let mut patterns: Vec<String> = Vec::new();
    for (place, names) in &missing {
        let others = extra.get(place).into_iter().flatten();
        let found = names
            .iter()
            .zip(others)
            .filter_map(|(name, other)| pattern(name, other));
        patterns.extend(found.map(|pattern| format!("{place}{pattern}")));
    }
    patterns.dedup();
    patterns
}

/// Splits `pods default/a` into `pods default/` and `a`. Generated names and names in external
/// systems have no patterns.
fn split(name: &str) -> Option<(&str, &str)> {
    if is_external(name) || name.contains(['<', '(']) {
        return None;
    }
    let end = name.rfind(['/', ' '])?;
    Some((&name[..=end], &name[end + 1..]))
}

/// The parts that two names have in common at both ends, e.g. `a-*` for `a-10` and `a-13`. Parts
/// end at separators. `None` if the names have different starts.
fn pattern(name: &str, other: &str) -> Option<String> {
    let is_separator = |letter: char| matches!(letter, '-' | '.');
    let common = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
        pairs
            .take_while(|(one, two)| one == two)
            .map(|(one, _)| one.len_utf8())
            .sum()
    };
    let start = &name[..common(&mut name.chars().zip(other.chars()))];
    let start = &start[..start.rfind(is_separator)? + 1];
    let (name_rest, other_rest) = (&name[start.len()..], &other[start.len()..]);
    let shared = common(&mut name_rest.chars().rev().zip(other_rest.chars().rev()));
    let end = &name_rest[name_rest.len() - shared..];
    let end = end.find(is_separator).map_or("", |at| &end[at..]);
    Some(format!("{start}*{end}"))
}

/// Returns whether an entry of a mask is a pattern rather than a field or an object.
pub(crate) fn is_pattern(entry: &str) -> bool {
    entry.contains('*') && !entry.contains('<') && !entry.contains(" .")
}

pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, end)) = pattern.split_once('*') else {
        return false;
    };
    name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_end_at_separators() {
        for (name, other, expected) in [
            ("a-10", "a-13", Some("a-*")),
            ("a-10-web", "a-13-web", Some("a-*-web")),
            ("backup.2029.db", "backup.2031.db", Some("backup.*.db")),
            ("a1", "a2", None),
            ("x7", "k2", None),
        ] {
            assert_eq!(pattern(name, other).as_deref(), expected, "{name} {other}");
        }
        assert!(matches("pods x/a-*-web", "pods x/a-1-web"));
        assert!(!matches("pods x/a-*-web", "pods x/a-web"));
    }
}
