//! Converts JSON names to Rust names.

const RAW: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

const NEVER: &[&str] = &["self", "Self", "super", "crate", "_", ""];

/// Names that would otherwise be split within a word.
const WHOLE: &[(&str, &str)] = &[
    ("IPv", "Ipv"),
    ("OAuth", "Oauth"),
    ("GitHub", "Github"),
    ("GitLab", "Gitlab"),
];

/// Splits a name into lower-case words, e.g. `podCIDRs` into `pod` and `cidrs`.
pub(crate) fn split_words(name: &str) -> Vec<String> {
    let mut name = name.to_owned();
    for (from, to) in WHOLE {
        name = name.replace(from, to);
    }
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        if letter.is_ascii_uppercase() && begins_word(&letters, at) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether an upper-case letter starts a word, i.e. follows a lower-case letter or an abbreviation.
fn begins_word(letters: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| letters.get(before));
    let Some(before) = before else { return false };
    if before.is_ascii_lowercase() || before.is_ascii_digit() {
        return true;
    }
    // The plural `s` in `CIDRs` belongs to the abbreviation.
    let is_plural = letters.get(at + 1) == Some(&'s')
        && letters.get(at + 2).is_none_or(|next| !next.is_ascii_lowercase());
    before.is_ascii_uppercase() && !is_plural && letters.get(at + 1).is_some_and(char::is_ascii_lowercase)
}

/// Field name without `r#`, e.g. `pod_cidrs` for `podCIDRs`.
pub(crate) fn field_name(wire: &str) -> String {
    let name = split_words(wire).join("_");
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return format!("_{name}");
    }
    match name.as_str() {
        name if NEVER.contains(&name) => format!("{name}_value"),
        _ => name,
    }
}

/// A name as written in source, e.g. `r#type`.
pub(crate) fn identifier(name: &str) -> String {
    if RAW.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

/// Name of a type or variant, e.g. `PodCidrs` for `podCIDRs`. Empty if `wire` contains no letters
/// or digits.
pub(crate) fn type_name(wire: &str) -> String {
    split_words(wire).iter().map(|word| capitalized(word)).collect()
}

pub(crate) fn module_name(kind: &str) -> String {
    let name = kind.to_ascii_lowercase();
    match name.as_str() {
        // File names with a special meaning.
        "mod" | "lib" | "main" | "shared" => format!("{name}_kind"),
        name if NEVER.contains(&name) => format!("{name}_kind"),
        _ => name,
    }
}

/// Kinds that can't be struct names: keywords, and names that would shadow a type which the file or
/// derived code uses without a path.
const HIDDEN_KINDS: &[&str] = &[
    "BTreeMap",
    "Box",
    "Default",
    "Deserialize",
    "Option",
    "S",
    "Self",
    "Serialize",
    "String",
    "Vec",
];

/// The kind with its first letter in upper case, as a prefix of type names. The API server also
/// accepts kinds in lower case.
pub(crate) fn type_stem(kind: &str) -> String {
    capitalized(kind)
}

/// Struct of the whole object, named after the kind unless that name is reserved.
pub(crate) fn object_name(kind: &str) -> String {
    let stem = type_stem(kind);
    if HIDDEN_KINDS.contains(&stem.as_str()) {
        format!("{stem}Object")
    } else {
        stem
    }
}

/// Folder of a group or version, e.g. `cert_manager_io` for `cert-manager.io`.
pub(crate) fn folder_name(text: &str) -> String {
    let name: String = text
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Singular of a list's or map's name, e.g. `policy` for `policies`. Words that only look like a
/// plural are kept.
pub(crate) fn singular(name: &str) -> String {
    const NO_PLURALS: &[&str] = &[
        "series",
        "status",
        "https",
        "kubernetes",
        "redis",
        "nats",
        "alias",
        "canvas",
        "ingress",
    ];
    let lower = name.to_ascii_lowercase();
    let cut = |end: usize| name.get(..name.len() - end).unwrap_or(name).to_owned();
    if name.len() < 4 || NO_PLURALS.iter().any(|word| lower.ends_with(word)) {
        return name.to_owned();
    }
    match lower.as_str() {
        word if word.ends_with("ies") => cut(3) + "y",
        word if ["sses", "ches", "shes", "xes"]
            .iter()
            .any(|end| word.ends_with(end)) =>
        {
            cut(2)
        }
        word if ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) => name.to_owned(),
        word if word.ends_with('s') => cut(1),
        _ => name.to_owned(),
    }
}

pub(crate) fn camel_case(field: &str) -> String {
    let mut words = field.split('_').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_owned();
    first + &words.map(capitalized).collect::<String>()
}

/// Name of a serde `rename_all` rule, and its implementation.
pub(crate) type VariantRule = (&'static str, fn(&str) -> String);

pub(crate) const VARIANT_RULES: &[VariantRule] = &[
    ("camelCase", |name| {
        let mut letters = name.chars();
        let first = letters.next().map(|first| first.to_ascii_lowercase());
        first.into_iter().chain(letters).collect()
    }),
    ("lowercase", |name| name.to_ascii_lowercase()),
    ("UPPERCASE", |name| name.to_ascii_uppercase()),
    ("snake_case", |name| snake_of(name, '_')),
    ("SCREAMING_SNAKE_CASE", |name| {
        snake_of(name, '_').to_ascii_uppercase()
    }),
    ("kebab-case", |name| snake_of(name, '-')),
];

/// Snake case as in serde, i.e. with a separator before every single upper-case letter.
fn snake_of(name: &str, mark: char) -> String {
    let mut made = String::new();
    for (at, letter) in name.char_indices() {
        if at > 0 && letter.is_ascii_uppercase() {
            made.push(mark);
        }
        made.push(letter.to_ascii_lowercase());
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_names() {
        for (wire, field, of_type) in [
            ("podCIDRs", "pod_cidrs", "PodCidrs"),
            ("http01", "http01", "Http01"),
            ("secretTemplate", "secret_template", "SecretTemplate"),
            ("URLPath", "url_path", "UrlPath"),
            ("IPv6Address", "ipv6_address", "Ipv6Address"),
            ("x-b3.trace", "x_b3_trace", "XB3Trace"),
            ("self", "self_value", "Self"),
            ("3scale", "_3scale", "3scale"),
            ("$ref", "ref", "Ref"),
        ] {
            assert_eq!(field_name(wire), field, "{wire}");
            assert_eq!(type_name(wire), of_type, "{wire}");
        }
        assert_eq!(identifier("type"), "r#type");
        assert_eq!(camel_case("pod_cidrs"), "podCidrs");
    }

    #[test]
    fn converts_to_singular() {
        for (plural, expected) in [
            ("containers", "container"),
            ("policies", "policy"),
            ("ingresses", "ingress"),
            ("matches", "match"),
            ("status", "status"),
            ("conditions", "condition"),
            ("env", "env"),
            ("dns", "dns"),
            ("addresses", "address"),
        ] {
            assert_eq!(singular(plural), expected);
        }
    }
}
