//! Label selectors and match conditions of webhooks.

use std::collections::BTreeMap;

use rbuilder_reader::Span;
use serde_json::Value;

use super::choice;
use crate::Session;
use crate::args::{Arg, ReadArg as _};
use crate::table::{ArgDoc, ArgRow, Draft, describe_rows};
use rbuilder_kubernetes::names;

/// Selects objects by their labels. All requirements must be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Labels and their required values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements, each on a single label.
    pub match_expressions: Vec<Requirement>,
}

/// A requirement on a single label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirement {
    /// The key of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: &'static str,
    /// The values for `In` and `NotIn`.
    pub values: Vec<String>,
}

/// A CEL expression about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchCondition {
    /// The name used in messages and metrics.
    pub name: String,
    /// The expression. Can use `object`, `oldObject`, `request` and `authorizer`.
    pub expression: String,
    /// The span of the expression.
    pub span: Span,
}

const OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist"];

#[derive(Default)]
struct ConditionParts {
    name: Option<String>,
    expression: Option<String>,
}

const CONDITION_ARGS: &[ArgRow<ConditionParts>] = &[
    ArgRow::once(
        "name",
        "Name, for messages and metrics of the API server. Required.",
        |arg, parts, session| {
            parts.name = arg.text(session);
        },
    ),
    ArgRow::once(
        "expression",
        "CEL expression about `object`, `oldObject`, `request` or `authorizer`. Required.",
        |arg, parts, session| {
            parts.expression = arg.text(session);
        },
    ),
];

pub(crate) fn describe_condition_args() -> Vec<ArgDoc> {
    describe_rows(CONDITION_ARGS)
}

/// Parses `match_condition(name = "…", expression = "…")`.
pub(super) fn read_condition(arg: &Arg, session: &mut Session) -> Option<MatchCondition> {
    let draft = Draft::of_list(arg, CONDITION_ARGS, session)?;
    draft.require(arg, &[("name", "…"), ("expression", "…")], session);
    let at = |name: &str| draft.seen.at(name).unwrap_or(arg.span);
    let condition = MatchCondition {
        name: draft.value.name?,
        expression: draft.value.expression?,
        span: at("expression"),
    };
    if !names::is_qualified_name(&condition.name) {
        let message = format!("invalid match condition name `{}`", condition.name);
        let help = "use letters and digits with `-`, `_` or `.` between them, as in `exclude-leases`";
        session.error_help(at("name"), message, help);
    }
    if condition.expression.trim().is_empty() {
        session.error_help(
            at("expression"),
            "the expression is empty",
            "write a CEL expression about `object`, `oldObject` or `request`",
        );
    }
    Some(condition)
}

const SELECTOR_ARGS: &[ArgRow<LabelSelector>] = &[
    ArgRow::once(
        "match_labels",
        "Labels with these values: `{ \"key\": \"value\" }`.",
        |arg, selector, session| {
            selector.match_labels = labels(arg, session).unwrap_or_default();
        },
    ),
    ArgRow::repeatable(
        "match_expression",
        "Requirement for one label.",
        |arg, selector, session| {
            selector.match_expressions.extend(requirement(arg, session));
        },
    ),
];

pub(crate) fn describe_selector_args() -> Vec<ArgDoc> {
    describe_rows(SELECTOR_ARGS)
}

/// Parses e.g. `object_selector(match_labels = {…}, match_expression(…))`.
pub(super) fn read_selector(arg: &Arg, session: &mut Session) -> Option<LabelSelector> {
    if arg.list(session)?.is_empty() {
        let help =
            "add `match_labels = { \"key\": \"value\" }` or `match_expression(…)`, or remove the selector";
        session.error_help(arg.span, format!("`{}` matches everything", arg.name), help);
    }
    Some(Draft::of_list(arg, SELECTOR_ARGS, session)?.value)
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
        session.error_help(
            arg.value_span(),
            "expected a map of strings for `match_labels`",
            help,
        );
        return None;
    };
    for (key, value) in &labels {
        check_key(key, arg, session);
        check_value(value, arg, session);
    }
    Some(labels)
}

#[derive(Default)]
struct RequirementParts {
    key: Option<String>,
    operator: Option<&'static str>,
    values: Option<Vec<String>>,
}

const REQUIREMENT_ARGS: &[ArgRow<RequirementParts>] = &[
    ArgRow::once("key", "Key of the label. Required.", |arg, parts, session| {
        parts.key = arg.text(session);
        if let Some(key) = &parts.key {
            check_key(key, arg, session);
        }
    }),
    ArgRow::once(
        "operator",
        "`In`, `NotIn`, `Exists` or `DoesNotExist`. Required.",
        |arg, parts, session| {
            parts.operator = choice(arg, OPERATORS, session);
        },
    ),
    ArgRow::once(
        "values",
        "Values that `In` and `NotIn` compare with.",
        |arg, parts, session| {
            parts.values = arg.texts(session);
            for value in parts.values.iter().flatten() {
                check_value(value, arg, session);
            }
        },
    ),
];

pub(crate) fn describe_requirement_args() -> Vec<ArgDoc> {
    describe_rows(REQUIREMENT_ARGS)
}

fn requirement(arg: &Arg, session: &mut Session) -> Option<Requirement> {
    let draft = Draft::of_list(arg, REQUIREMENT_ARGS, session)?;
    draft.require(arg, &[("key", "…"), ("operator", "…")], session);
    let at = |name: &str| draft.seen.at(name).unwrap_or(arg.span);
    let RequirementParts {
        key,
        operator,
        values,
    } = draft.value;
    if draft.seen.has("values") && values.is_none() {
        return None;
    }
    let requirement = Requirement {
        key: key?,
        operator: operator?,
        values: values.unwrap_or_default(),
    };
    let compares = matches!(requirement.operator, "In" | "NotIn");
    if compares && requirement.values.is_empty() {
        let message = format!("`{}` requires values", requirement.operator);
        session.error_help(at("operator"), message, "add `values = [\"…\"]`");
    }
    if !compares && !requirement.values.is_empty() {
        let message = format!("`{}` takes no values", requirement.operator);
        let help = "remove `values`, or write `operator = \"In\"`";
        session.error_help(at("values"), message, help);
    }
    Some(requirement)
}

fn check_key(key: &str, at: &Arg, session: &mut Session) {
    if !names::is_qualified_name(key) {
        let message = format!("invalid label key `{key}`");
        let help = "use a name of at most 63 letters, digits, `-`, `_` and `.`, or `domain/name`";
        session.error_help(at.value_span(), message, help);
    }
}

fn check_value(value: &str, at: &Arg, session: &mut Session) {
    if !names::is_label_value(value) {
        let message = format!("invalid label value `{value}`");
        let help =
            "use at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit";
        session.error_help(at.value_span(), message, help);
    }
}
