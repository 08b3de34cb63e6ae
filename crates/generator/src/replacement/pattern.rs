//! Patterns for messages and help, with names for the parts that vary.

/// The text matched by the named parts of a pattern. Unnamed parts (`{}`) are dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Captures<'t> {
    list: Vec<(&'static str, &'t str)>,
}

impl<'t> Captures<'t> {
    pub(super) fn get(&self, name: &str) -> Option<&'t str> {
        let found = self.list.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| *text)
    }

    pub(super) fn extend(&mut self, other: Captures<'t>) {
        self.list.extend(other.list);
    }
}

/// Matches an entire text against a pattern such as ``unknown verb `{old}` ``. Each part is as
/// short as possible and ends before the next literal text of the pattern.
pub(super) fn capture<'t>(pattern: &'static str, text: &'t str) -> Option<Captures<'t>> {
    let mut captures = Captures::default();
    let (first, mut pattern) = pattern.split_once('{').unwrap_or((pattern, ""));
    let mut rest = text.strip_prefix(first)?;
    while let Some((name, after)) = pattern.split_once('}') {
        let (literal, next) = after.split_once('{').unwrap_or((after, ""));
        let length = match (literal, next) {
            ("", _) => rest.len(),
            (_, "") => rest.strip_suffix(literal)?.len(),
            _ => rest.find(literal)?,
        };
        if !name.is_empty() {
            captures.list.push((name, &rest[..length]));
        }
        rest = &rest[length + literal.len()..];
        pattern = next;
    }
    rest.is_empty().then_some(captures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_named_parts() {
        for (pattern, text, name, expected) in [
            ("unknown {}`{old}`", "unknown verb `wacth`", "old", Some("wacth")),
            (
                "{}unknown {}`{old}`{}",
                "a: unknown field `x` (in `y`)",
                "old",
                Some("x"),
            ),
            ("{}unknown {}`{old}`{}", "unknown field `x`", "old", Some("x")),
            ("write `{new}`", "write `x`, or remove it", "new", None),
            ("write `{new}`{}", "write `x`, or remove it", "new", Some("x")),
            ("`{a}` has no `{old}`", "`a` has no `b`", "a", Some("a")),
            ("remove it", "remove it", "old", None),
        ] {
            let found = capture(pattern, text);
            assert_eq!(
                found.and_then(|found| found.get(name)),
                expected,
                "{pattern}: {text}"
            );
        }
        assert_eq!(capture("remove it", "remove it"), Some(Captures::default()));
        assert_eq!(capture("remove it", "remove it: it has no effect"), None);
    }
}
