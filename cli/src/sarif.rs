//! Diagnostics as a SARIF 2.1.0 log, for code scanning services and editors.
//!
//! `fixes` contains the [replacements](crate::replacement), so that applying them gives the same
//! bytes as `--fix`.

use std::collections::BTreeMap;
use std::ops::Range;

use rbuilder_generator::{Code, Diagnostic, Severity, Sources};
use serde_json::{Value, json};

use crate::replacement::find_replacement;
use crate::report::{place, text_of, within};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Rule for messages without a code.
const OTHER: &str = "rbuilder";

pub(crate) struct Artifact<'p> {
    path: &'p str,
    /// False for a directory or rendered output, where lines are meaningless.
    has_lines: bool,
}

pub(crate) fn in_file(path: &str) -> Artifact<'_> {
    Artifact {
        path,
        has_lines: true,
    }
}

pub(crate) fn as_whole(path: &str) -> Artifact<'_> {
    Artifact {
        path,
        has_lines: false,
    }
}

impl Artifact<'_> {
    fn location(&self) -> Value {
        json!({ "uri": uri_of(self.path) })
    }
}

pub(crate) fn render<'d>(
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    sources: &dyn Sources,
    locate: &dyn Fn(&str) -> Artifact<'_>,
) -> Value {
    let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
    let mut results = Vec::new();
    for diagnostic in diagnostics {
        let code = Code::of_message(&diagnostic.message);
        let id = code.map_or(OTHER, |code| code.id);
        rules.entry(id).or_insert_with(|| rule(code));
        results.push(result(diagnostic, id, sources, locate));
    }
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "rbuilder",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(code: Option<&Code>) -> Value {
    match code {
        Some(code) => json!({
            "id": code.id,
            "shortDescription": { "text": code.title },
            "fullDescription": { "text": code.reason },
            "help": { "text": code.explanation() },
        }),
        None => json!({ "id": OTHER, "shortDescription": { "text": "A mistake in the project" } }),
    }
}

fn result(
    diagnostic: &Diagnostic,
    rule: &str,
    sources: &dyn Sources,
    locate: &dyn Fn(&str) -> Artifact<'_>,
) -> Value {
    let artifact = locate(&diagnostic.place.path);
    let source = text_of(diagnostic, sources);
    let mut physical = json!({ "artifactLocation": artifact.location() });
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let mut result = json!({ "ruleId": rule, "level": level, "message": { "text": diagnostic.text() } });
    if artifact.has_lines {
        physical["region"] = region(&source, &within(&source, &diagnostic.place.range));
        if let Some(replacement) = find_replacement(diagnostic, &source) {
            let mut change = json!({ "deletedRegion": region(&source, &replacement.range) });
            if !replacement.text.is_empty() {
                change["insertedContent"] = json!({ "text": replacement.text });
            }
            let help = diagnostic.help.as_deref().unwrap_or("apply the replacement");
            result["fixes"] = json!([{
                "description": { "text": help },
                "artifactChanges": [{
                    "artifactLocation": artifact.location(),
                    "replacements": [change],
                }],
            }]);
        }
    }
    result["locations"] = json!([{ "physicalLocation": physical }]);
    result
}

/// A SARIF region. It ends after its last character.
fn region(source: &str, range: &Range<usize>) -> Value {
    let ((line, column), (end_line, end_column)) = (place(source, range.start), place(source, range.end));
    json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column })
}

/// Formats a path as a URI reference, relative to the source root unless it is absolute.
fn uri_of(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let mut uri = String::new();
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_uris() {
        for (path, expected) in [
            ("config/samples/a_b-1.yaml", "config/samples/a_b-1.yaml"),
            ("./a.yaml", "a.yaml"),
            ("a b/é#.yaml", "a%20b/%C3%A9%23.yaml"),
            ("a:b.yaml", "a%3Ab.yaml"),
            ("/tmp/a.yaml", "file:///tmp/a.yaml"),
        ] {
            assert_eq!(uri_of(path), expected);
        }
    }
}
