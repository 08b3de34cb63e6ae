//! YAML in Helm templates, as far as it can be read without Helm.
//!
//! Lines that only control the template are left out, and what is filled in becomes a word. So both branches of a condition
//! are read, and a name that comes from a value is not known.

/// The word that stands for what a template fills in.
const FILLED_IN: &str = "filled-in-by-helm";

/// Returns whether a text is a template.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// Returns the text without its template, which may be YAML then.
pub(super) fn strip_template(text: &str) -> String {
    let mut stripped = String::with_capacity(text.len());
    let mut is_open = false;
    for line in text.lines() {
        // A comment or an expression over several lines.
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

/// Returns a line with words in place of expressions; nothing if it has nothing else.
fn fill_in(line: &str, is_open: &mut bool) -> Option<String> {
    if !line.contains("{{") {
        return Some(line.to_owned());
    }
    let mut filled = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
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
    // An expression alone on a line inserts lines, which are not known.
    let is_alone = content == FILLED_IN || content.is_empty();
    (!is_alone).then_some(filled)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_is_left_out_and_values_are_words() {
        let text = "{{- if .Values.install }}\n---\nname: {{ .Values.name | quote }}\nlabels:\n  {{- include \"labels\" . | nindent 4 }}\n  app: x-{{ .Release.Name }}\n{{/* a\nb */}}\n{{- end }}\nplain: 1\n";
        assert_eq!(
            strip_template(text),
            format!("---\nname: {FILLED_IN}\nlabels:\n  app: x-{FILLED_IN}\nplain: 1\n")
        );
    }
}
