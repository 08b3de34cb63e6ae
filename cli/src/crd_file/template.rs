//! Reads and writes YAML in Helm templates, as far as possible without running Helm.
//!
//! Control lines are dropped, and other expressions are replaced with a placeholder word. As a
//! consequence, both branches of a condition are read, and names that come from a value are
//! unknown. A literal expression, e.g. `{{ "{{" }}`, is replaced with its text.

use std::ops::Range;

use memchr::memmem;
use serde_json::Value;

pub(crate) const FILLED_IN: &str = "filled-in-by-helm";

const ESCAPED: &str = r#"{{ "{{" }}"#;

pub(super) fn is_template(text: &str) -> bool {
    if memmem::find(text.as_bytes(), b"{{").is_none() {
        return false;
    }
    match rbuilder_yaml::parse_values(text) {
        // Plain YAML only has braces within a schema, e.g. in a description.
        Ok(documents) => documents.iter().any(has_braces_outside_of_schemas),
        Err(_) => true,
    }
}

fn has_braces_outside_of_schemas(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(has_braces_outside_of_schemas),
        Value::Object(keys) => keys.iter().any(|(key, value)| {
            key.contains("{{") || key != "openAPIV3Schema" && has_braces_outside_of_schemas(value)
        }),
        _ => false,
    }
}

pub(super) fn has_expressions(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("{{") {
        match split_literal(after) {
            Some((_, after)) => rest = after,
            None => return true,
        }
    }
    false
}

pub(super) fn escape(text: &str) -> String {
    text.replace("{{", ESCAPED)
}

/// Strips the template syntax. The rest is usually YAML.
pub(super) fn strip_template(text: &str) -> String {
    let mut stripped = String::with_capacity(text.len());
    let mut is_open = false;
    for line in text.lines() {
        // Still within a comment or expression that spans several lines.
        if is_open {
            is_open = !line.contains("}}");
            continue;
        }
        let Some(filled) = fill_in(line, &mut is_open) else {
            continue;
        };
        stripped.push_str(&filled);
        stripped.push('\n');
    }
    stripped
}

/// Replaces the expressions in a line with placeholders, or drops the line if it contains nothing
/// else.
fn fill_in(line: &str, is_open: &mut bool) -> Option<String> {
    if !line.contains("{{") {
        return Some(line.to_owned());
    }
    let mut filled = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        if let Some((literal, after)) = split_literal(after) {
            filled.push_str(literal);
            rest = after;
            continue;
        }
        match after.split_once("}}") {
            Some((expression, after)) => {
                if !is_control(expression) {
                    filled.push_str(FILLED_IN);
                }
                rest = after;
            }
            None => {
                *is_open = true;
                rest = "";
            }
        }
    }
    filled.push_str(rest);
    let content = filled.trim();
    // An expression on a line of its own may insert any number of lines.
    let is_alone = content == FILLED_IN || content.is_empty();
    (!is_alone).then_some(filled)
}

/// Splits a literal expression, without its opening braces, into its text and the rest.
fn split_literal(after: &str) -> Option<(&str, &str)> {
    let text = after.strip_prefix('-').unwrap_or(after).trim_start();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '`'))?;
    let (literal, after) = text[1..].split_once(quote)?;
    let after = after.trim_start();
    let after = after.strip_prefix('-').unwrap_or(after).strip_prefix("}}")?;
    let is_plain = !literal.contains(['\\', '\n']);
    is_plain.then_some((literal, after))
}

fn is_control(expression: &str) -> bool {
    let word = expression
        .trim_start_matches('-')
        .split_whitespace()
        .next()
        .unwrap_or_default();
    let is_word = matches!(
        word,
        "if" | "else" | "end" | "range" | "with" | "define" | "block" | "/*"
    );
    is_word || word.starts_with("/*") || expression.contains(":=")
}

/// Lines of the object's `spec`. Only found if the key is unindented and on a line of its own.
pub(super) fn find_spec(object: &str) -> Option<Range<usize>> {
    let mut found: Option<Range<usize>> = None;
    let mut offset = 0;
    for line in object.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let is_blank = line.trim().is_empty() || line.starts_with('#');
        match &mut found {
            None if line.starts_with("spec:") => found = Some(start..offset),
            Some(spec) if line.starts_with(' ') && !is_blank => spec.end = offset,
            Some(_) if !is_blank => break,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_control_lines_and_replaces_expressions() {
        let text = "{{- if .Values.install }}\n---\nname: {{ .Values.name | quote }}\nlabels:\n  {{- include \"labels\" . | nindent 4 }}\n  app: x-{{ .Release.Name }}\n{{/* a\nb */}}\n{{- end }}\nplain: 1\n";
        assert_eq!(
            strip_template(text),
            format!("---\nname: {FILLED_IN}\nlabels:\n  app: x-{FILLED_IN}\nplain: 1\n")
        );
    }

    #[test]
    fn literal_expressions_become_their_text() {
        for (text, expected) in [
            ("a: x{{ \"{{\" }} .b }}\n", "a: x{{ .b }}\n"),
            ("a: {{- `{{ .b }}` -}}c\n", "a: {{ .b }}c\n"),
        ] {
            assert_eq!(strip_template(text), expected);
            assert!(!has_expressions(text), "{text}");
        }
        for text in [
            "a: {{ .b }}",
            "a: {{ \"b\" | quote }}",
            "a: {{ \"\\n\" }}",
            "a: {{ \"b",
        ] {
            assert!(has_expressions(text), "{text}");
        }
        let words = "{{ .a }} and {{b}}\n";
        assert!(!has_expressions(&escape(words)));
        assert_eq!(strip_template(&escape(words)), words);
    }

    #[test]
    fn braces_in_schemas_do_not_make_a_template() {
        let crd = |name: &str, text: &str| {
            format!(
                "metadata:\n  name: {name}\nspec:\n  versions:\n  - schema:\n      openAPIV3Schema:\n        description: 'as {text}'\n"
            )
        };
        assert!(!is_template(&crd("a", "{{ .name }}")));
        assert!(!is_template(&crd("a", "{ .name }")));
        assert!(is_template(&crd("'{{ .name }}'", "words")));
        assert!(is_template(&crd("{{ .name }}", "words")));
        assert!(is_template(&format!("{{{{ if .a }}}}\n{}", crd("a", "words"))));
    }

    #[test]
    fn finds_range_of_spec() {
        let check = |object: &str, expected: Option<&str>| {
            let found = find_spec(object).map(|place| &object[place]);
            assert_eq!(found, expected, "{object}");
        };
        check(
            "kind: A\nspec:\n  a: 1\n\n  b:\n  - 1\n\n{{ end }}\n",
            Some("spec:\n  a: 1\n\n  b:\n  - 1\n"),
        );
        check("spec: {}\nstatus: {}\n", Some("spec: {}\n"));
        check("spec:\n  a: 1\n# end\n", Some("spec:\n  a: 1\n"));
        check("- spec:\n", None);
    }
}
