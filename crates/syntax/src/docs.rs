//! Converts doc comments to descriptions, by controller-gen's rules with our derive. Otherwise the
//! text is kept as schemars does.

use rbuilder_reader::token::Cursor;
use rbuilder_reader::{Attribute, Expr, ExprKind, Form, Span, read_string};
use serde_json::Value;

use crate::kubebuilder::{Commented, SchemaSource, warn_of_go_marker};
use crate::{Diagnostic, Session};

/// Returns the description from the doc comments, with a `Deprecated:` paragraph for
/// `#[deprecated]`.
///
/// With our derive, notes to developers (`TODO`, `TODO: …`, `TODO(name) …`) are dropped, and a line
/// that starts with `---` ends the description. Indented lines and code fences are exempt from
/// both. Text after `---` causes a warning, because in Markdown that's just a horizontal rule.
///
/// Line breaks and blank lines within the text are kept. The `#` of a heading on the first line is
/// dropped, since tools that display CRDs don't render Markdown. `concat!` of literals is
/// evaluated; any other macro causes a warning, because its result is unknown.
pub(crate) fn read_description(
    attrs: &[Attribute<'_>],
    commented: Commented,
    session: &mut Session,
) -> Option<String> {
    let mut lines = Lines {
        commented,
        source: session.schema_source,
        ..Lines::default()
    };
    for attr in attrs.iter().filter(|attr| attr.is("doc")) {
        if let Some(text) = attr.value_text() {
            lines.at = attr.span();
            lines.add_text(&text);
        } else if let Form::Value(value) = attr.form() {
            match joined(value) {
                Some(text) => lines.add_text(&text),
                None => {
                    let message = "this doc string is not a literal and is ignored";
                    let help = "write it as a doc comment";
                    session.report(Diagnostic::warning(attr.span(), message).help(help));
                }
            }
        }
    }
    lines.go_markers.into_iter().for_each(|said| session.report(said));
    if let Some(at) = lines.dropped {
        let message = "the description ends at `---`, so this text is not part of it";
        let help = "use another mark, such as `***`, or write notes to developers in a comment with `//`";
        session.report(Diagnostic::warning(at, message).help(help));
    }
    let mut text = trimmed(lines.text);
    if text.starts_with("# ") {
        text = text.trim_start_matches('#').trim_start().to_owned();
    }
    if let Some(note) = deprecation(attrs) {
        text = if text.is_empty() {
            note
        } else {
            format!("{text}\n\n{note}")
        };
    }
    (!text.is_empty()).then_some(text)
}

fn joined(mut cursor: Cursor<'_>) -> Option<String> {
    let name = cursor.any_ident()?;
    if name.text != "concat" || !cursor.eat(b'!') {
        return None;
    }
    let mut parts = cursor.any_group()?;
    let mut text = String::new();
    while !parts.is_end() {
        match Expr::read(&mut parts).ok()?.kind {
            ExprKind::Literal(Value::String(part)) => text.push_str(&part),
            ExprKind::Literal(part) => text.push_str(&part.to_string()),
            _ => return None,
        }
        if !parts.is_end() && !parts.eat(b',') {
            return None;
        }
    }
    Some(text)
}

fn trimmed(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    match text.len() - text.trim_start().len() {
        0 => text,
        blank => text[blank..].to_owned(),
    }
}

#[derive(Default)]
struct Lines {
    text: String,
    begun: bool,
    fenced: bool,
    ended: bool,
    source: SchemaSource,
    commented: Commented,
    at: Span,
    /// The first non-empty line after `---`.
    dropped: Option<Span>,
    /// Warnings about Go markers, which aren't part of the text.
    go_markers: Vec<Diagnostic>,
}

impl Lines {
    fn add_text(&mut self, text: &str) {
        // The first space in `/// text` isn't part of the text.
        if !text.contains('\n') {
            return self.add(text.strip_prefix(' ').unwrap_or(text).trim_end());
        }
        for line in text.lines().map(str::trim) {
            let line = line
                .strip_prefix("* ")
                .or_else(|| line.strip_prefix('*'))
                .unwrap_or(line);
            self.add(line.trim_end());
        }
    }

    fn add(&mut self, line: &str) {
        let start = line.trim_start();
        let is_cut = self.source == SchemaSource::CrdSchema && !self.fenced;
        if start.starts_with("```") || start.starts_with("~~~") {
            self.fenced = !self.fenced;
        } else if is_cut && line.starts_with("---") {
            self.ended = true;
            return;
        } else if is_cut && is_note(line) {
            return;
        } else if !self.fenced
            && start.starts_with('+')
            && let Some(said) = warn_of_go_marker(line, self.at, self.source, self.commented)
        {
            return self.go_markers.push(said);
        }
        if self.ended {
            if !start.is_empty() {
                self.dropped.get_or_insert(self.at);
            }
            return;
        }
        if self.begun {
            self.text.push('\n');
        }
        self.begun = true;
        self.text.push_str(line);
    }
}

fn is_note(line: &str) -> bool {
    // Not every line that starts with `TODO` is a note, e.g. `TODO is the name of a list`.
    line.strip_prefix("TODO")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '(']))
}

fn deprecation(attrs: &[Attribute<'_>]) -> Option<String> {
    let attr = attrs.iter().find(|attr| attr.is("deprecated"))?;
    let mut note = None;
    match attr.form() {
        Form::Value(value) => note = read_string(value),
        Form::List(mut list) => {
            // rustc reports errors in this attribute.
            while !list.is_end() {
                if list.eat_word("note") && list.eat(b'=') {
                    note = read_string(list);
                }
                list.skip();
            }
        }
        Form::Path => {}
    }
    Some(note.map_or_else(|| "Deprecated.".to_owned(), |note| format!("Deprecated: {note}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbuilder_reader::token::lex;

    fn check(source: &str, expected: Option<&str>) {
        let text = format!("{source}\nstruct S;");
        let tokens = lex(&text).expect("tokens");
        let attrs = Attribute::read_outer(&mut tokens.cursor()).expect("attributes");
        let mut session = Session::default();
        assert_eq!(
            read_description(&attrs, Commented::Item, &mut session).as_deref(),
            expected,
            "{source}"
        );
    }

    #[test]
    fn dropping_text_after_a_rule_warns() {
        let read = |text: &str, source: SchemaSource| {
            let text = format!("{text}\nstruct S;");
            let tokens = lex(&text).expect("tokens");
            let attrs = Attribute::read_outer(&mut tokens.cursor()).expect("attributes");
            let mut session = Session::default();
            session.start_item(source);
            let description = read_description(&attrs, Commented::Item, &mut session).unwrap_or_default();
            (description, session.diagnostics.into_vec().len())
        };
        let text = "/// Mode.\n///\n/// ---\n///\n/// Allowed: `a`.\n/// TODO: b";
        assert_eq!(read(text, SchemaSource::CrdSchema), ("Mode.".to_owned(), 1));
        let whole = "Mode.\n\n---\n\nAllowed: `a`.\nTODO: b".to_owned();
        assert_eq!(read(text, SchemaSource::Schemars), (whole, 0));
        assert_eq!(
            read("/// Mode.\n/// ---\n///", SchemaSource::CrdSchema),
            ("Mode.".to_owned(), 0)
        );
    }

    #[test]
    fn converts_doc_comments_to_descriptions() {
        check("", None);
        check("/// One line.", Some("One line."));
        check("/// Two\n/// lines.", Some("Two\nlines."));
        check("/// Two\n///\n/// parts.\n///", Some("Two\n\nparts."));
        check("///   - indented", Some("- indented"));
        check("/// a\n///   - indented", Some("a\n  - indented"));
        check(
            "/// Kept.\n/// TODO: dropped\n/// Kept too.",
            Some("Kept.\nKept too."),
        );
        check("/// Kept.\n/// TODO(a): dropped\n/// TODO", Some("Kept."));
        check(
            "/// TODO is the name of a list.",
            Some("TODO is the name of a list."),
        );
        check("/// Kept.\n/// ---\n/// Internal.", Some("Kept."));
        check("/// ```\n/// ---\n/// TODO\n/// ```", Some("```\n---\nTODO\n```"));
        check("/// A\n///   --- b\n///  TODO: c", Some("A\n  --- b\n TODO: c"));
        check(
            "/// A.\n/// +kubebuilder:validation:Minimum=1\n/// +optional\n/// + b",
            Some("A.\n+ b"),
        );
        check("/** One.\n * Two.\n */", Some("One.\nTwo."));
        check("/// # Title\n/// Text.", Some("Title\nText."));
        check("#[doc = \"Written out.\"]", Some("Written out."));
        check("#[doc = r#\"Written \"raw\".\"#]", Some("Written \"raw\"."));
        check("/// Unix.\r\n/// Or not.\r", Some("Unix.\nOr not."));
        check("#[doc(hidden)]", None);
        check("#[doc = concat!(\"a\", 1, 'b', true)]", Some("a1btrue"));
        check("#[doc = concat!(\"a\", env!(\"B\"))]", None);
        check("#[doc = include_str!(\"a.md\")]", None);
        check(
            "/// Old.\n#[deprecated(note = \"use x\")]",
            Some("Old.\n\nDeprecated: use x"),
        );
        check("#[deprecated]", Some("Deprecated."));
    }
}
