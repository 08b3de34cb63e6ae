//! Versions of rbuilder, as recorded under `cliVersion` in PROJECT.

use std::cmp::Ordering;

/// Compares two versions like Cargo; `None` if one of them is invalid.
pub(in crate::commands) fn compare_versions(left: &str, right: &str) -> Option<Ordering> {
    Some(parse_version(left)?.cmp(&parse_version(right)?))
}

/// A version. A pre-release is lower than the version itself.
type Version = ([u64; 3], bool, Vec<Identifier>);

/// A part of a pre-release. Numbers are lower than words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

fn parse_version(text: &str) -> Option<Version> {
    let (text, _) = text.split_once('+').unwrap_or((text, ""));
    let (numbers, before) = match text.split_once('-') {
        Some((numbers, before)) => (numbers, Some(before)),
        None => (text, None),
    };
    let numbers: Vec<u64> = numbers
        .split('.')
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    let identifier = |part: &str| match part.parse() {
        Ok(number) => Identifier::Number(number),
        Err(_) => Identifier::Word(part.to_owned()),
    };
    let parts = before.map(|before| before.split('.').map(identifier).collect());
    Some((
        numbers.try_into().ok()?,
        parts.is_none(),
        parts.unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_in_cargo() {
        let order = [
            "0.1.0-alpha.2",
            "0.1.0-alpha.10",
            "0.1.0-beta",
            "0.1.0",
            "0.1.1",
            "0.2.0",
            "0.10.0",
            "1.0.0+x",
        ];
        for (at, left) in order.iter().enumerate() {
            for (other, right) in order.iter().enumerate() {
                assert_eq!(
                    compare_versions(left, right),
                    Some(at.cmp(&other)),
                    "{left} {right}"
                );
            }
        }
        for text in ["", "(devel)", "1", "1.2", "1.2.x", "v1.2.3"] {
            assert_eq!(compare_versions(text, "0.1.0"), None, "{text}");
        }
    }
}
