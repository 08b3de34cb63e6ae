//! The names of fields in CEL expressions.

/// CEL's reserved words. Rules refer to a field with such a name by adding double underscores (e.g.
/// `self.__namespace__`).
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Returns whether this is a reserved word in CEL and therefore can't be an identifier.
pub fn is_cel_word(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Returns the name of a field in a CEL rule, or `None` if rules can't refer to the field. A usable
/// name consists of letters, digits, `_`, `.`, `-` and `/`, and starts with a letter or `_`.
pub fn cel_name(wire_name: &str) -> Option<String> {
    if is_cel_word(wire_name) {
        return Some(format!("__{wire_name}__"));
    }
    let mut letters = wire_name.chars().peekable();
    if !letters
        .peek()
        .is_some_and(|first| first.is_ascii_alphabetic() || *first == '_')
    {
        return None;
    }
    let mut escaped = String::with_capacity(wire_name.len());
    while let Some(letter) = letters.next() {
        match letter {
            '_' if letters.next_if_eq(&'_').is_some() => escaped.push_str("__underscores__"),
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            '_' => escaped.push('_'),
            letter if letter.is_ascii_alphanumeric() => escaped.push(letter),
            _ => return None,
        }
    }
    Some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_field_names() {
        for (name, expected) in [
            ("size", Some("size")),
            ("namespace", Some("__namespace__")),
            ("a-b", Some("a__dash__b")),
            ("a__b", Some("a__underscores__b")),
            ("x.y/z", Some("x__dot__y__slash__z")),
            ("_a", Some("_a")),
            ("1a", None),
            ("$ref", None),
            ("", None),
        ] {
            assert_eq!(cel_name(name).as_deref(), expected, "{name}");
        }
    }
}
