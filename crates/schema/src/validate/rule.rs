//! Evaluates the CEL rules that markers add. Other rules are left to the API server.

use serde_json::{Map, Value};

use super::matches_pattern;
use crate::{Cel, cel_name};

/// Checks a value against a rule of `exactly_one_of(…)` or a similar marker, or of `keys(…)`. Any
/// other rule counts as met.
///
/// # Errors
///
/// Returns the message of the rule if it's violated.
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

/// Counts how many of these fields are set. Returns `None` if a term looks different or if a field
/// is `null`.
fn count_set(
    terms: &str,
    between: char,
    head: &str,
    tail: &str,
    fields: &Map<String, Value>,
) -> Option<usize> {
    let mut count = 0;
    // Between the two bars of an `||` there is an empty term.
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

/// Evaluates `self.all(key, size(key) >= 1)` and whatever else `keys(…)` adds.
fn holds_for_keys(rule: &str, fields: &Map<String, Value>) -> Option<bool> {
    let condition = rule.strip_prefix("self.all(key, ")?.strip_suffix(')')?;
    let mut all = Some(true);
    for key in fields.keys() {
        match key_holds(condition, key) {
            Some(false) => return Some(false),
            Some(true) => {}
            // Go on, since another key may be one that we know to be invalid.
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

/// Parses a literal that [`cel_text`](crate::apply::cel_text) has written. Also returns the text
/// after it.
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
