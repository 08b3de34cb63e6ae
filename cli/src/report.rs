//! Renders diagnostics in the style of rustc, and as JSON.

use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use rbuilder_generator::replacement::Replacement;
use rbuilder_generator::{Code, Diagnostic, FileRange, Severity, Sources};
use rbuilder_yaml::may_hold_credentials;
use serde_json::{Value, json};

use crate::replacement::find_replacement;
use crate::shell::harmless;

/// Longer source (in bytes) isn't quoted. Generated code may have such lines.
const LONGEST: usize = 20_000;

pub(crate) fn render_snippet(diagnostic: &Diagnostic, sources: &dyn Sources, color: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let source = text_of(diagnostic, sources);
    let range = within(&source, &diagnostic.place.range);
    let mut title = level.primary_title(&diagnostic.message);
    if let Some(code) = Code::of_message(&diagnostic.message) {
        title = title.id(code.id);
    }
    // Only pass the lines of the diagnostic, because the renderer scans all of its input.
    let first = source[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = source[range.end..]
        .find('\n')
        .map_or(source.len(), |at| range.end + at);
    // The renderer would print a carriage return without a line feed.
    let end = end - usize::from(end > range.end && source[..end].ends_with('\r'));
    let (line, column) = place(&source, range.start);
    let mut group = if end - first > LONGEST || is_secret(&diagnostic.place.path, &source, first) {
        let origin = Origin::path(&diagnostic.place.path)
            .line(line)
            .char_column(column);
        title.element(origin)
    } else {
        let snippet = Snippet::source(&source[first..end])
            .line_start(line)
            .path(&diagnostic.place.path)
            .annotation(AnnotationKind::Primary.span(range.start - first..range.end - first));
        title.element(snippet)
    };
    // The renderer escapes titles and source, but prints help as it is.
    let help = diagnostic.help.as_deref().map(|help| harmless(help, false));
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(&**help));
    }
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    format!("{}\n", renderer.decor_style(DecorStyle::Ascii).render(&[group]))
}

/// Whether a place is in a YAML document with a Secret, which must not be quoted.
fn is_secret(path: &str, source: &str, at: usize) -> bool {
    if path.ends_with(".rs") {
        return false;
    }
    let start = source[..at].rfind("\n---").unwrap_or(0);
    let end = source[at..].find("\n---").map_or(source.len(), |end| at + end);
    may_hold_credentials(&source[start..end])
}

/// Converts a diagnostic to JSON. Lines and columns start at 1, and columns count characters.
pub(crate) fn to_json(diagnostic: &Diagnostic, sources: &dyn Sources) -> Value {
    let source = text_of(diagnostic, sources);
    let range = within(&source, &diagnostic.place.range);
    let (line, column) = place(&source, range.start);
    let (end_line, end_column) = place(&source, range.end);
    json!({
        "severity": level_name(diagnostic.severity),
        "code": Code::of_message(&diagnostic.message).map(|code| code.id),
        "message": diagnostic.message,
        "help": diagnostic.help,
        "path": diagnostic.place.path,
        "start": { "line": line, "column": column },
        "end": { "line": end_line, "column": end_column },
        "replacement": find_replacement(diagnostic, &source).map(|found| replacement_to_json(&found, &source)),
    })
}

fn replacement_to_json(replacement: &Replacement, source: &str) -> Value {
    let (line, column) = place(source, replacement.range.start);
    let (end_line, end_column) = place(source, replacement.range.end);
    json!({
        "text": replacement.text,
        "start": { "line": line, "column": column },
        "end": { "line": end_line, "column": end_column },
    })
}

pub(crate) fn locate(diagnostic: &Diagnostic, sources: &dyn Sources) -> String {
    let (line, column) = find_start(&diagnostic.place, sources);
    format!("{}:{line}:{column}", diagnostic.place.path)
}

pub(crate) fn find_start(at: &FileRange, sources: &dyn Sources) -> (usize, usize) {
    let source = text_at(&at.path, sources);
    place(&source, within(&source, &at.range).start)
}

pub(crate) fn text_of(diagnostic: &Diagnostic, sources: &dyn Sources) -> Arc<str> {
    text_at(&diagnostic.place.path, sources)
}

fn text_at(path: &str, sources: &dyn Sources) -> Arc<str> {
    let text = sources.text(path);
    text.ok().flatten().unwrap_or_else(|| Arc::from(""))
}

/// Formats a diagnostic as a line of JSON in rustc's format, which editors understand.
pub(crate) fn to_json_line(diagnostic: &Diagnostic, sources: &dyn Sources) -> String {
    let source = text_of(diagnostic, sources);
    let range = within(&source, &diagnostic.place.range);
    let path = &diagnostic.place.path;
    let mut value = message(level_name(diagnostic.severity), &diagnostic.message);
    if let Some(code) = Code::of_message(&diagnostic.message) {
        value["code"] = json!({ "code": code.id, "explanation": code.explanation() });
    }
    value["spans"] = json!([span(path, &source, &range)]);
    let replacement = find_replacement(diagnostic, &source);
    // Editors expect a replacement to be part of a help message.
    let help = match (&diagnostic.help, &replacement) {
        (None, Some(_)) => Some("apply the replacement"),
        (help, _) => help.as_deref(),
    };
    let children: Vec<Value> = help
        .iter()
        .map(|help| {
            let mut help = message("help", help);
            if let Some(Replacement { range, text }) = &replacement {
                let mut span = span(path, &source, range);
                span["suggested_replacement"] = text.as_str().into();
                span["suggestion_applicability"] = "MaybeIncorrect".into();
                help["spans"] = json!([span]);
            }
            help
        })
        .collect();
    value["children"] = children.into();
    value["rendered"] = render_snippet(diagnostic, sources, false).into();
    value["$message_type"] = "diagnostic".into();
    format!("{value}\n")
}

fn span(path: &str, source: &str, range: &std::ops::Range<usize>) -> Value {
    let (line, column) = place(source, range.start);
    let (end_line, end_column) = place(source, range.end);
    json!({
        "file_name": path,
        "byte_start": range.start,
        "byte_end": range.end,
        "line_start": line,
        "line_end": end_line,
        "column_start": column,
        "column_end": end_column,
        "is_primary": true,
        "text": lines(source, line..=end_line, column, end_column),
        "label": null,
        "suggested_replacement": null,
        "suggestion_applicability": null,
        "expansion": null,
    })
}

/// Formats a message without a location as a line of JSON. `level` is `error` or `warning`.
pub(crate) fn message_to_json_line(level: &str, text: &str) -> String {
    let mut value = message(level, text);
    value["rendered"] = format!("{level}: {text}\n").into();
    value["$message_type"] = "diagnostic".into();
    format!("{value}\n")
}

fn message(level: &str, text: &str) -> Value {
    json!({
        "message": text,
        "code": null,
        "level": level,
        "spans": [],
        "children": [],
        "rendered": null,
    })
}

fn lines(source: &str, numbers: std::ops::RangeInclusive<usize>, start: usize, end: usize) -> Vec<Value> {
    let (first, last) = (*numbers.start(), *numbers.end());
    source
        .lines()
        .enumerate()
        .map(|(index, text)| (index + 1, text))
        .filter(|(number, _)| numbers.contains(number))
        .map(|(number, text)| {
            json!({
                "text": text,
                "highlight_start": if number == first { start } else { 1 },
                "highlight_end": if number == last { end } else { text.chars().count() + 1 },
            })
        })
        .collect()
}

pub(crate) fn level_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

pub(crate) fn place(source: &str, at: usize) -> (usize, usize) {
    let before = &source[..at];
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    (
        before.matches('\n').count() + 1,
        before[line..].chars().count() + 1,
    )
}

/// Clamps a range to the text and to character boundaries; slicing would panic otherwise.
pub(crate) fn within(source: &str, range: &std::ops::Range<usize>) -> std::ops::Range<usize> {
    let floor = |at: usize| {
        (0..=at.min(source.len()))
            .rev()
            .find(|at| source.is_char_boundary(*at))
            .unwrap_or(0)
    };
    let start = floor(range.start);
    start..floor(range.end).max(start)
}

#[cfg(test)]
mod tests {
    use rbuilder_generator::SourceSet;

    use rbuilder_generator::FileRange;

    use super::*;

    /// CI keeps the output, and more people can read it than the Secret.
    #[test]
    fn diagnostic_of_a_secret_shows_only_its_place() {
        let map = "kind: ConfigMap\ndata:\n  token: 1234\n";
        let secret = "---\nkind: Secret\nstringData:\n  token: 5678\n";
        let mut sources = SourceSet::default();
        sources.insert("a.yaml", format!("{map}{secret}"));
        let render = |at: usize| {
            let diagnostic = Diagnostic::error(FileRange::new("a.yaml", at..at + 4), "must be a string");
            render_snippet(&diagnostic, &sources, false)
        };
        let shown = render(map.find("1234").expect("a token"));
        assert!(shown.contains("1234") && !shown.contains("5678"), "{shown}");
        let hidden = render(map.len() + secret.find("5678").expect("a token"));
        assert!(
            hidden.contains("a.yaml:7:10") && !hidden.contains("5678"),
            "{hidden}"
        );
    }

    #[test]
    fn diagnostic_shows_its_line() {
        let mut sources = SourceSet::default();
        sources.insert(
            "src/lib.rs",
            "struct A {\n    #[crd(mnimum = 1)]\n    ä: i32,\n}\n",
        );
        let diagnostic = Diagnostic::error(FileRange::new("src/lib.rs", 21..28), "unknown marker `mnimum`")
            .help("did you mean `minimum`?");
        let text = render_snippet(&diagnostic, &sources, false);
        for part in [
            "error[RB0201]: unknown marker `mnimum`",
            "--> src/lib.rs:2:11",
            "#[crd(mnimum = 1)]",
            "help: did you mean",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert_eq!(
            to_json(&diagnostic, &sources)["start"],
            json!({ "line": 2, "column": 11 })
        );
        let lost = diagnostic.at(FileRange::new("gone.rs", 7..900));
        assert!(render_snippet(&lost, &sources, false).contains("unknown marker"));
    }
}
