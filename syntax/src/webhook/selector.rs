//! The parts of a webhook that have a shape of their own: label selectors and match conditions.

use std::collections::BTreeMap;

use rbuilder_reader::Span;
use serde_json::Value;

use super::choice;
use crate::args::{Arg, ReadArg as _};
use crate::{Session, object_name, suggest};

/// Chooses objects by their labels; all that is written must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Labels that the object has, with these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions on single labels.
    pub match_expressions: Vec<Requirement>,
}

/// A condition on one label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: &'static str,
    /// What `In` and `NotIn` compare with.
    pub values: Vec<String>,
}

/// A CEL expression about the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchCondition {
    /// Its name, for messages and metrics.
    pub name: String,
    /// The expression; it may speak of `object`, `oldObject`, `request` and `authorizer`.
    pub expression: String,
    /// Where the expression is.
    pub span: Span,
}

const OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist"];

/// `match_condition(name = "…", expression = "…")`.
pub(super) fn condition(arg: &Arg, session: &mut Session) -> Option<MatchCondition> {
    let args = members(arg, &["name", "expression"], &[], session)?;
    let condition = MatchCondition {
        name: needed(arg, args, "name", session)?.text(session)?,
        expression: needed(arg, args, "expression", session)?.text(session)?,
        span: needed(arg, args, "expression", session)?.value_span(),
    };
    if !object_name::is_label_key(&condition.name) {
        let message = format!("`{}` cannot be the name of a match condition", condition.name);
        let help = "write letters, digits and `-`, `_` or `.` between them, such as `exclude-leases`";
        session.error_help(member(args, "name")?.value_span(), message, help);
    }
    if condition.expression.trim().is_empty() {
        session.error_help(
            member(args, "expression")?.value_span(),
            "the expression is empty",
            "write a CEL expression about `object`, `oldObject` or `request`",
        );
    }
    Some(condition)
}

/// `….selector(match_labels = {…}, match_expression(…))`.
pub(super) fn selector(arg: &Arg, session: &mut Session) -> Option<LabelSelector> {
    let known = ["match_labels", "match_expression"];
    let args = members(arg, &known, &["match_expression"], session)?;
    let mut selector = LabelSelector::default();
    for part in args {
        match part.name {
            "match_labels" => selector.match_labels = labels(part, session)?,
            _ => selector.match_expressions.push(requirement(part, session)?),
        }
    }
    if args.is_empty() {
        let help = "add `match_labels = { \"key\": \"value\" }` or `match_expression(…)`, or remove it";
        session.error_help(arg.span, format!("`{}` selects everything", arg.name), help);
    }
    Some(selector)
}

fn labels(arg: &Arg, session: &mut Session) -> Option<BTreeMap<String, String>> {
    let texts = match arg.literal().map(|literal| &literal.value) {
        Some(Value::Object(map)) => map
            .iter()
            .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect::<Option<BTreeMap<_, _>>>(),
        _ => None,
    };
    let Some(labels) = texts else {
        let help = "write `match_labels = { \"key\": \"value\" }`";
        session.error_help(arg.value_span(), "`match_labels` wants a map of texts", help);
        return None;
    };
    for (key, value) in &labels {
        check_key(key, arg, session);
        check_value(value, arg, session);
    }
    Some(labels)
}

fn requirement(arg: &Arg, session: &mut Session) -> Option<Requirement> {
    let args = members(arg, &["key", "operator", "values"], &[], session)?;
    let key = needed(arg, args, "key", session)?;
    let operator = needed(arg, args, "operator", session)?;
    let values = member(args, "values");
    let requirement = Requirement {
        key: key.text(session)?,
        operator: choice(operator, OPERATORS, session)?,
        values: match values {
            Some(values) => values.texts(session)?,
            None => Vec::new(),
        },
    };
    check_key(&requirement.key, key, session);
    for value in &requirement.values {
        check_value(value, values.unwrap_or(arg), session);
    }
    let compares = matches!(requirement.operator, "In" | "NotIn");
    if compares && requirement.values.is_empty() {
        let message = format!("`{}` needs values to compare with", requirement.operator);
        session.error_help(operator.value_span(), message, "add `values = [\"…\"]`");
    }
    if let Some(values) = values.filter(|_| !compares && !requirement.values.is_empty()) {
        let message = format!("`{}` compares with no values", requirement.operator);
        let help = "remove `values`, or write `operator = \"In\"`";
        session.error_help(values.span, message, help);
    }
    Some(requirement)
}

fn check_key(key: &str, at: &Arg, session: &mut Session) {
    if !object_name::is_label_key(key) {
        let message = format!("`{key}` is not the key of a label");
        let help = "a key is a name of up to 63 letters, digits, `-`, `_` and `.`, or `domain/name`";
        session.error_help(at.value_span(), message, help);
    }
}

fn check_value(value: &str, at: &Arg, session: &mut Session) {
    if !object_name::is_label_value(value) {
        let message = format!("`{value}` is not the value of a label");
        let help = "a value has up to 63 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit";
        session.error_help(at.value_span(), message, help);
    }
}

/// The arguments in the parentheses, all of them known and written once.
fn members<'a, 't>(
    arg: &'t Arg<'a>,
    known: &[&'static str],
    repeatable: &[&str],
    session: &mut Session,
) -> Option<&'t [Arg<'a>]> {
    let args = arg.list(session)?;
    let mut right = true;
    for (position, inner) in args.iter().enumerate() {
        if !known.contains(&inner.name) {
            let message = format!("unknown argument `{}` of `{}`", inner.name, arg.name);
            session.error_help(
                inner.span,
                message,
                suggest::help(inner.name, known.iter().copied()),
            );
            right = false;
        } else if !repeatable.contains(&inner.name)
            && args[..position].iter().any(|earlier| earlier.name == inner.name)
        {
            session.error(inner.span, format!("`{}` is written twice", inner.name));
            right = false;
        }
    }
    right.then_some(args)
}

fn member<'a, 't>(args: &'t [Arg<'a>], name: &str) -> Option<&'t Arg<'a>> {
    args.iter().find(|arg| arg.name == name)
}

fn needed<'a, 't>(
    outer: &Arg<'_>,
    args: &'t [Arg<'a>],
    name: &str,
    session: &mut Session,
) -> Option<&'t Arg<'a>> {
    let found = member(args, name);
    if found.is_none() {
        let message = format!("`{}` needs `{name}`", outer.name);
        session.error_help(outer.span, message, format!("add `{name} = \"…\"`"));
    }
    found
}
