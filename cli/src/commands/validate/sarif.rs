//! Verdicts as a SARIF 2.1.0 log, which code scanning services read.

use rbuilder_generator::{Diagnostic, Severity, SourceSet};
use serde_json::{Value, json};

use super::Judged;
use crate::commands::verdicts::RENDERED;
use crate::report::to_json;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const RULE: &str = "kube-apiserver";

/// Returns the log.
pub(super) fn render(judged: &[Judged], sources: &SourceSet) -> Value {
    let diagnostics = judged.iter().flat_map(|judged| &judged.diagnostics);
    let results: Vec<Value> = diagnostics.map(|found| result(found, sources)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "rbuilder",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [{
                    "id": RULE,
                    "shortDescription": { "text": "The verdict of the API server on an object" },
                }],
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(diagnostic: &Diagnostic, sources: &SourceSet) -> Value {
    let found = to_json(diagnostic, sources);
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let path = &diagnostic.place.path;
    // Lines of what is rendered from a directory are in no file.
    let place = match path.strip_suffix(RENDERED) {
        Some(directory) => json!({ "artifactLocation": { "uri": directory } }),
        None => json!({
            "artifactLocation": { "uri": path },
            "region": {
                "startLine": found["start"]["line"], "startColumn": found["start"]["column"],
                "endLine": found["end"]["line"], "endColumn": found["end"]["column"],
            },
        }),
    };
    json!({
        "ruleId": RULE,
        "level": level,
        "message": { "text": diagnostic.message },
        "locations": [{ "physicalLocation": place }],
    })
}
