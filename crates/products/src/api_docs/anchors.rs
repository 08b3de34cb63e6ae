//! Anchors within a page, e.g. `memcached.v1alpha1.spec.size`: the path that `kubectl explain`
//! takes for a field, plus the version.
//!
//! An anchor only depends on the kind, the version and field names, so that links keep working when
//! other fields, kinds or versions come and go.

use super::model::{Kind, Version};

pub(super) fn version_anchor(kind: &Kind, version: &Version) -> String {
    let mut anchor = String::new();
    push_part(&mut anchor, &kind.anchor, true);
    push_field(&mut anchor, &version.name);
    anchor
}

pub(super) fn push_field(anchor: &mut String, name: &str) {
    anchor.push('.');
    push_part(anchor, name, false);
}

/// Appends a name. Dots in it, and characters that a URL fragment can't contain, are replaced with
/// `~` and their code point.
fn push_part(anchor: &mut String, name: &str, keeps_dots: bool) {
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') => anchor.push(c),
            '.' if keeps_dots => anchor.push(c),
            // Dropping these characters could give two fields the same anchor.
            c => anchor.push_str(&format!("~{:x}", u32::from(c))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_of_fields_are_unique() {
        for (name, expected) in [
            ("size", "a.size"),
            ("max-size", "a.max-size"),
            ("a.b", "a.a~2eb"),
            ("$ref", "a.~24ref"),
            ("\"><script>", "a.~22~3e~3cscript~3e"),
            ("naïve", "a.na~efve"),
        ] {
            let mut anchor = "a".to_owned();
            push_field(&mut anchor, name);
            assert_eq!(anchor, expected);
        }
    }
}
