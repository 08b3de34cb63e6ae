//! Names derived by other tools: field names by serde's `rename_all`, and plurals by kube-derive.

/// One of the rules of serde's `rename_all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // serde's rules of the same names
pub enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

/// Spelled as in serde.
const CASES: [(&str, Case); 8] = [
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("SCREAMING-KEBAB-CASE", Case::ScreamingKebab),
];

impl Case {
    /// Parses a rule in serde's spelling, e.g. `camelCase`.
    pub fn parse(text: &str) -> Option<Case> {
        CASES
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, case)| *case)
    }

    pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
        CASES.iter().map(|(name, _)| *name)
    }

    /// Returns the JSON name of a field. serde only splits words at `_`, so `http2_url` becomes
    /// `http2Url`, and `iPv4` stays `iPv4`.
    pub fn field(self, ident: &str) -> String {
        match self {
            Case::Lower | Case::Snake => ident.to_owned(),
            Case::Upper | Case::ScreamingSnake => ident.to_ascii_uppercase(),
            Case::Pascal => pascal(ident),
            Case::Camel => lower_first(pascal(ident)),
            Case::Kebab => ident.replace('_', "-"),
            Case::ScreamingKebab => ident.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// Returns the JSON name of a variant. To serde, every upper-case letter starts a new word, so
    /// `HTTPServer` becomes `h-t-t-p-server` in kebab case.
    pub fn variant(self, ident: &str) -> String {
        match self {
            Case::Lower => ident.to_ascii_lowercase(),
            Case::Upper => ident.to_ascii_uppercase(),
            Case::Pascal => ident.to_owned(),
            Case::Camel => lower_first(ident.to_owned()),
            Case::Snake => words(ident, '_'),
            Case::ScreamingSnake => words(ident, '_').to_ascii_uppercase(),
            Case::Kebab => words(ident, '_').replace('_', "-"),
            Case::ScreamingKebab => words(ident, '_').to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(ident: &str) -> String {
    let mut name = String::with_capacity(ident.len());
    let mut rest = Some(ident);
    while let Some(text) = rest {
        // Names are so short that setting up `split` would take longer.
        let end = text.bytes().position(|byte| byte == b'_').unwrap_or(text.len());
        let start = name.len();
        name.push_str(&text[..end]);
        // serde only changes ASCII letters. `get_mut` returns `None` if the word starts with
        // another character.
        if let Some(first) = name.get_mut(start..=start) {
            first.make_ascii_uppercase();
        }
        rest = text.get(end + 1..);
    }
    name
}

fn lower_first(mut name: String) -> String {
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    name
}

fn words(ident: &str, separator: char) -> String {
    let mut name = String::with_capacity(ident.len() + 4);
    for (position, letter) in ident.char_indices() {
        if position > 0 && letter.is_uppercase() {
            name.push(separator);
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Returns kube-derive's default for `singular`: the kind in lower case.
pub fn singular(kind: &str) -> String {
    kind.to_ascii_lowercase()
}

/// Returns kube-derive's default for `plural`. It ends in `es` after a sibilant, in `ies` instead
/// of a `y` after a consonant, and in `s` otherwise.
pub fn plural(singular: &str) -> String {
    let hisses = ["s", "x", "z", "ch", "sh"];
    if hisses.iter().any(|ending| singular.ends_with(ending)) {
        return format!("{singular}es");
    }
    match singular.strip_suffix('y') {
        Some(stem) if !stem.is_empty() && !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_match_serde() {
        for (case, ident, expected) in [
            ("camelCase", "http2_url", "http2Url"),
            ("camelCase", "iPv4", "iPv4"),
            ("camelCase", "_lead", "lead"),
            ("camelCase", "a__b", "aB"),
            ("PascalCase", "size_wanted", "SizeWanted"),
            ("lowercase", "size_Wanted", "size_Wanted"),
            ("UPPERCASE", "size_wanted", "SIZE_WANTED"),
            ("snake_case", "sizeWanted", "sizeWanted"),
            ("SCREAMING_SNAKE_CASE", "size_wanted", "SIZE_WANTED"),
            ("kebab-case", "size_wanted", "size-wanted"),
            ("SCREAMING-KEBAB-CASE", "size_wanted", "SIZE-WANTED"),
        ] {
            let name = Case::parse(case).map(|case| case.field(ident));
            assert_eq!(name.as_deref(), Some(expected), "{ident} in {case}");
        }
    }

    #[test]
    fn variant_names_match_serde() {
        for (case, ident, expected) in [
            ("camelCase", "HTTPServer", "hTTPServer"),
            ("kebab-case", "HTTPServer", "h-t-t-p-server"),
            ("snake_case", "IfNotPresent", "if_not_present"),
            ("SCREAMING_SNAKE_CASE", "IfNotPresent", "IF_NOT_PRESENT"),
            ("SCREAMING-KEBAB-CASE", "IfNotPresent", "IF-NOT-PRESENT"),
            ("lowercase", "IfNotPresent", "ifnotpresent"),
            ("UPPERCASE", "IfNotPresent", "IFNOTPRESENT"),
            ("PascalCase", "IfNotPresent", "IfNotPresent"),
        ] {
            let name = Case::parse(case).map(|case| case.variant(ident));
            assert_eq!(name.as_deref(), Some(expected), "{ident} in {case}");
        }
    }

    #[test]
    fn plurals_match_kube_derive() {
        for (kind, expected) in [
            ("Foo", "foos"),
            ("Memcached", "memcacheds"),
            ("Fox", "foxes"),
            ("Ingress", "ingresses"),
            ("Batch", "batches"),
            ("Puppy", "puppies"),
            ("Day", "days"),
        ] {
            assert_eq!(plural(&singular(kind)), expected);
        }
    }
}
