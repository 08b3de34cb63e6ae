//! Evaluates the CEL rules added by markers. Other rules are left to the API server.

use serde_json::{Map, Value};

use super::matches_pattern;
use crate::{Cel, cel_name};

/// Checks a value against a rule that was added by `exactly_one_of(…)` and similar markers, or by
/// `keys(…)`.
///
/// # Errors
/// Returns the rule's message if it fails.
pub(super) fn check_rule(rule: &Cel, value: &Value) -> Result<(), String> {
    let Value::Object(fields) = value else {
        return Ok(());
    };
    match holds_for_fields(&rule.rule, fields).or_else(|| holds_for_keys(&rule.rule, fields)) {
        Some(false) => Err(rule
            .message
            .clone()
            .unwrap_or_else(|| format!("the rule `{}` evaluates to false", rule.rule))),
        _ => Ok(()),
    }
}

/// Evaluates `(has(self.a)?1:0)+(has(self.b)?1:0) == 1`, the same with `<= 1`, and
/// `has(self.a)||has(self.b)`.
fn holds_for_fields(rule: &str, fields: &Map<String, Value>) -> Option<bool> {
    let (count, accepted): (_, fn(usize) -> bool) = if let Some(terms) = rule.strip_suffix(" == 1") {
        (count_set(terms, '+', "(has(self.", ")?1:0)", fields)?, |count| {
            count == 1
        })
    } else if let Some(terms) = rule.strip_suffix(" <= 1") {
        (count_set(terms, '+', "(has(self.", ")?1:0)", fields)?, |count| {
            count <= 1
        })
    } else {
        (count_set(rule, '|', "has(self.", ")", fields)?, |count| {
            count >= 1
        })
    };
    Some(accepted(count))
}

/// Counts how many of the named fields are set. Returns `None` if a term has another form or a
/// field is `null`.
fn count_set(
    terms: &str,
    between: char,
    head: &str,
    tail: &str,
    fields: &Map<String, Value>,
) -> Option<usize> {
    let mut count = 0;
    for term in terms.split(between).filter(|term| !term.is_empty()) {
        let path = term.strip_prefix(head)?.strip_suffix(tail)?;
        if path.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            return None;
        }
        let field = fields
            .iter()
            .find(|(name, _)| cel_name(name).as_deref() == Some(path));
        if field.is_some_and(|(_, value)| value.is_null()) {
            return None;
        }
        count += usize::from(field.is_some());
    }
    Some(count)
}

/// Evaluates `self.all(key, size(key) >= 1)` and the other conditions of `keys(…)`.
fn holds_for_keys(rule: &str, fields: &Map<String, Value>) -> Option<bool> {
    let condition = rule.strip_prefix("self.all(key, ")?.strip_suffix(')')?;
    let mut all = Some(true);
    for key in fields.keys() {
        match key_holds(condition, key) {
            Some(false) => return Some(false),
            Some(true) => {}
            None => all = None,
        }
    }
    all
}

fn key_holds(condition: &str, key: &str) -> Option<bool> {
    let size = key.chars().count() as u64;
    if let Some(least) = condition.strip_prefix("size(key) >= ") {
        return Some(size >= least.parse().ok()?);
    }
    if let Some(most) = condition.strip_prefix("size(key) <= ") {
        return Some(size <= most.parse().ok()?);
    }
    if let Some(pattern) = condition.strip_prefix("key.matches(") {
        let (pattern, rest) = read_literal(pattern)?;
        return (rest == ")").then(|| matches_pattern(&pattern, key)).flatten();
    }
    let mut rest = condition.strip_prefix("key in [")?;
    let mut is_named = false;
    while rest != "]" {
        let (name, after) = read_literal(rest)?;
        is_named |= name == key;
        rest = after.strip_prefix(", ").unwrap_or(after);
    }
    Some(is_named)
}

/// Parses a literal written by [`cel_text`](crate::apply::cel_text). Also returns the rest of the
/// text.
fn read_literal(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?.chars();
    let mut literal = String::new();
    loop {
        match rest.next()? {
            '\'' => return Some((literal, rest.as_str())),
            '\\' => literal.push(match rest.next()? {
                'n' => '\n',
                'r' => '\r',
                c @ ('\\' | '\'') => c,
                _ => return None,
            }),
            c => literal.push(c),
        }
    }
}
