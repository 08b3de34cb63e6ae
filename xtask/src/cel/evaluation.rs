//! Records how kube-apiserver evaluates rules.
//!
//! The cases are in crates/cel/tests/evaluated/cases.json. Each group has a schema, a value and a
//! number of rules. A rule can be a template, in which we replace `{class}` with each entry of that
//! class. We create CRDs with these rules, send the value to a real API server (as a dry run), and
//! record what it says about each rule. The tests of `rbuilder-cel` are compared with this record,
//! so they don't need a server.
//!
//! There are three kinds of cases in a group:
//!
//! - `prints` are expressions. We record their value, formatted as a string.
//! - `rules` are conditions. We record whether they are true.
//! - `full` are complete rules, with messages and reasons. We record the complete error.
//!
//! If the evaluation fails, the error is recorded with a leading `!`. There is no record for a rule
//! that cannot be in a CRD because the API server rejects it. If a group has an `old` value, it is
//! an update.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::batch::{Batch, Case, Kind, Write, evaluate, split};
use super::server::Client;
use crate::repo;

const CASES: &str = "crates/cel/tests/evaluated/cases.json";
pub(super) const RECORDED: &str = "crates/cel/tests/evaluated/recorded.jsonl";

#[derive(Deserialize)]
struct Cases {
    classes: BTreeMap<String, Vec<String>>,
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    schema: Value,
    value: Value,
    old: Option<Value>,
    /// Whether a rule may exceed the budget of an object.
    #[serde(default)]
    is_costly: bool,
    #[serde(default)]
    prints: Vec<String>,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    full: Vec<Value>,
}

/// Evaluates all of the cases. Returns the record, which consists of one line per group and one
/// line per case.
pub(super) fn record_evaluation(client: &Client) -> Result<String> {
    let cases: Cases = serde_json::from_str(&fs_err::read_to_string(repo::root().join(CASES))?)?;
    let (mut batches, mut groups) = (Vec::new(), Vec::new());
    for group in &cases.groups {
        for cases in split(expand_group(group, &cases.classes)?) {
            batches.push(Batch {
                name: format!("evaluated{}", batches.len()),
                cases,
                has_costly_rules: group.is_costly,
            });
            groups.push(&group.name);
        }
    }
    evaluate(client, &mut batches)?;
    let mut lines = Vec::new();
    for (group, batch) in groups.into_iter().zip(batches) {
        let header = json!({ "group": group }).to_string();
        if !lines.contains(&header) {
            lines.push(header);
        }
        // A rule that cannot be in a CRD isn't evaluated.
        for case in batch.cases.into_iter().filter(|case| !case.is_rejected) {
            lines.push(json!([case.source, case.writes[0].says]).to_string());
        }
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}

fn expand_group(group: &Group, classes: &BTreeMap<String, Vec<String>>) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut seen = BTreeSet::new();
    for (templates, kind) in [(&group.prints, Kind::Print), (&group.rules, Kind::Rule)] {
        for template in templates {
            for expression in expand(template, classes) {
                // Skip duplicates, since several templates can result in the same expression.
                if seen.insert((expression.clone(), kind == Kind::Print)) {
                    cases.push((Value::String(expression), kind));
                }
            }
        }
    }
    cases.extend(group.full.iter().map(|rule| (rule.clone(), Kind::Full)));
    ensure!(!cases.is_empty(), "the group {} has no cases", group.name);
    let cases = cases.into_iter().enumerate();
    Ok(cases
        .map(|(index, (source, kind))| Case {
            source,
            kind,
            schema: group.schema.clone(),
            field: match kind {
                Kind::Full => format!("v{index}"),
                Kind::Print | Kind::Rule => "value".to_owned(),
            },
            writes: vec![Write {
                old: group.old.clone(),
                new: group.value.clone(),
                says: Value::Null,
            }],
            is_rejected: false,
        })
        .collect())
}

/// Replaces the first class in a template, and calls itself for the rest.
fn expand(template: &str, classes: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let found = template.match_indices('{').find_map(|(start, _)| {
        let end = start + template[start..].find('}')?;
        let texts = classes.get(&template[start + 1..end])?;
        Some((start, end, texts))
    });
    let Some((start, end, texts)) = found else {
        return vec![template.to_owned()];
    };
    let (before, after) = (&template[..start], &template[end + 1..]);
    let mut expanded = Vec::new();
    for rest in expand(after, classes) {
        expanded.extend(texts.iter().map(|text| format!("{before}{text}{rest}")));
    }
    expanded
}
