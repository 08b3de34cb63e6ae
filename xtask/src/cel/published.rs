//! Records how kube-apiserver evaluates rules of published CRDs.
//!
//! Each line of crates/cel/tests/published.jsonl has a rule, the part of its schema that the rule
//! needs, and writes. A write has a value, what the server says about it, and, if it's an update, the
//! value that it replaces. The rules come from projects with the Apache License 2.0: `of` is the
//! module and its version.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::{Batch, Case, Kind, Write, evaluate, split};
use super::server::Client;
use crate::repo;

pub(super) const RECORDED: &str = "crates/cel/tests/published.jsonl";

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line {
    of: String,
    rule: Value,
    schema: Value,
    writes: Vec<Vec<Value>>,
}

/// Sends all writes. Returns the record.
pub(super) fn record_published(client: &Client) -> Result<String> {
    let text = fs_err::read_to_string(repo::root().join(RECORDED))?;
    let lines: serde_json::Result<Vec<Line>> = text.lines().map(serde_json::from_str).collect();
    let lines = lines?;
    let parts = split(lines.iter().enumerate().map(case_of).collect());
    let parts = parts.into_iter().enumerate();
    let mut batches: Vec<Batch> = parts
        .map(|(number, cases)| Batch {
            name: format!("published{number}"),
            cases,
            has_costly_rules: false,
        })
        .collect();
    evaluate(client, &mut batches)?;
    let cases = batches.into_iter().flat_map(|batch| batch.cases);
    let mut record = String::new();
    for (line, case) in lines.into_iter().zip(cases) {
        ensure!(!case.is_rejected, "the API server rejects {}", case.source);
        let writes = case.writes.into_iter();
        let line = Line {
            writes: writes
                .map(|Write { old, new, says }| [new, says].into_iter().chain(old).collect())
                .collect(),
            ..line
        };
        record.push_str(&format!("{}\n", serde_json::to_string(&line)?));
    }
    Ok(record)
}

fn case_of((index, line): (usize, &Line)) -> Case {
    let writes = line.writes.iter().map(|write| Write {
        old: write.get(2).cloned(),
        new: write[0].clone(),
        says: Value::Null,
    });
    Case {
        source: line.rule.clone(),
        kind: if line.rule.is_string() {
            Kind::Rule
        } else {
            Kind::Full
        },
        schema: line.schema.clone(),
        field: format!("v{index}"),
        writes: writes.collect(),
        is_rejected: false,
    }
}
