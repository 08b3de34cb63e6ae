//! Rows of the `import` table, and descriptions of differences.

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_yaml::parse_documents;
use serde_json::{Value, json};

use crate::plan::Plan;
use crate::tree::Tree;

/// Maximum length of a cell's value, in characters. Longer values are truncated.
const LONGEST_VALUE: usize = 120;

/// Number of details in a row of text. MIGRATION.md and JSON list all of them.
const MOST_SHOWN: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Same,
    /// An intentional difference that requires no action.
    Better,
    ByHand,
}

impl Match {
    pub(super) fn word(self) -> &'static str {
        match self {
            Match::Same => "same",
            Match::Better => "better",
            Match::ByHand => "by hand",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) result: Match,
    pub(super) details: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
}

impl Report {
    pub(super) fn add(&mut self, what: impl Into<String>, result: Match, details: Vec<String>) {
        self.rows.push(Row {
            what: what.into(),
            result,
            details,
        });
    }

    pub(super) fn render(&self) -> String {
        let width = self
            .rows
            .iter()
            .map(|row| row.what.chars().count())
            .max()
            .unwrap_or(0);
        let mut text = String::new();
        for row in &self.rows {
            let mut shown: Vec<String> = row.details.iter().take(MOST_SHOWN).cloned().collect();
            let more = row.details.len().saturating_sub(MOST_SHOWN);
            if more > 0 {
                shown.push(format!("and {more} more"));
            }
            let line = format!(
                "{:width$}  {:7}  {}",
                row.what,
                row.result.word(),
                shown.join("; ")
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let count = |result| self.rows.iter().filter(|row| row.result == result).count();
        text.push_str(&format!(
            "\n{} same, {} better, {} by hand\n",
            count(Match::Same),
            count(Match::Better),
            count(Match::ByHand)
        ));
        text
    }

    pub(super) fn to_json(&self) -> Value {
        let rows = self
            .rows
            .iter()
            .map(|row| json!({ "what": row.what, "result": row.result.word(), "details": row.details }));
        rows.collect()
    }
}

pub(super) fn read_planned(plan: &Plan, tree: &Tree, path: &str) -> Result<Vec<Value>> {
    let text = plan.read(tree, path)?.unwrap_or_default();
    Ok(parse_documents(&text).unwrap_or_default())
}

pub(super) fn is_within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Null, _) => true,
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|own| is_within(value, own))),
        (part, whole) => part == whole,
    }
}

pub(super) fn show_change(before: &Value, after: &Value) -> String {
    let show = |value: &Value| {
        let text = value.to_string();
        match text.chars().count() > LONGEST_VALUE {
            true => text.chars().take(LONGEST_VALUE).chain(['…']).collect(),
            false => text,
        }
    };
    match (before, after) {
        (Value::Null, after) => format!("it was not set, and is now {}", show(after)),
        (before, Value::Null) => format!("it was {}, and is no longer set", show(before)),
        (before, after) => format!("it was {}, and is now {}", show(before), show(after)),
    }
}

pub(super) fn prefixed(prefix: &str, mut words: Vec<String>) -> Vec<String> {
    if let Some(first) = words.first_mut() {
        first.insert_str(0, prefix);
    }
    words
}

pub(super) fn differing_keys<'a>(before: &'a Value, after: &'a Value) -> Vec<&'a String> {
    let maps = [before, after].into_iter().filter_map(Value::as_object);
    let keys: BTreeSet<&String> = maps.flat_map(|map| map.keys()).collect();
    keys.into_iter()
        .filter(|key| before[key.as_str()] != after[key.as_str()])
        .collect()
}
