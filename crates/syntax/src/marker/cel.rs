//! `cel(…)`: CEL validation rules.

use rbuilder_reader::{Expr, ExprKind, Span};
use rbuilder_schema::{Cel, Reason};
use serde_json::Value;

use super::{ANYWHERE, Marker};
use crate::args::{Arg, ArgValue, ReadArg as _, origin_at};
use crate::table::{ArgDoc, ArgRow, Draft, describe_rows};
use crate::{Session, suggest};

pub(super) const MARKERS: &[Marker] = &[Marker {
    name: "cel",
    form: "cel(rule = \"…\", message = \"…\", …)",
    doc: "A CEL validation rule for the value.",
    places: ANYWHERE,
    repeatable: true,
    read: |arg, reading, session| reading.markers.cel.extend(named(arg, session)),
}];

#[derive(Default)]
struct Parts {
    rule: Option<String>,
    rest: Cel,
}

const ARGS: &[ArgRow<Parts>] = &[
    ArgRow::once(
        "rule",
        "CEL expression, with the value as `self`; with `oldSelf`, it is a transition rule. Required.",
        |arg, parts, session| {
            parts.rule = arg.text(session);
        },
    ),
    ArgRow::once(
        "message",
        "Message shown when the rule fails, on one line; required for a rule of several lines [default: the rule].",
        |arg, parts, session| {
            parts.rest.message = arg.text(session);
        },
    ),
    ArgRow::once(
        "message_expression",
        "CEL expression that returns the message; it takes precedence over `message`.",
        |arg, parts, session| {
            parts.rest.message_expression = arg.text(session);
        },
    ),
    ArgRow::once(
        "reason",
        "Reason that the API server reports: `FieldValueInvalid`, `FieldValueForbidden`, `FieldValueRequired` or `FieldValueDuplicate` [default: `FieldValueInvalid`].",
        |arg, parts, session| {
            let text = arg.text(session);
            parts.rest.reason = text.and_then(|text| reason(&text, arg.value_span(), session));
        },
    ),
    ArgRow::once(
        "field_path",
        "Field that the error is reported at, relative to the value: `.replicas` [default: the value itself].",
        |arg, parts, session| {
            parts.rest.field_path = arg.text(session);
        },
    ),
    ArgRow::once(
        "optional_old_self",
        "True to evaluate a transition rule on creation as well, with `oldSelf` as an optional.",
        |arg, parts, session| {
            parts.rest.optional_old_self = arg.boolean(session);
        },
    ),
];

pub(crate) fn describe_cel_args() -> Vec<ArgDoc> {
    describe_rows(ARGS)
}

const REASONS: &[(&str, Reason)] = &[
    ("FieldValueRequired", Reason::FieldValueRequired),
    ("FieldValueInvalid", Reason::FieldValueInvalid),
    ("FieldValueForbidden", Reason::FieldValueForbidden),
    ("FieldValueDuplicate", Reason::FieldValueDuplicate),
];

fn named(outer: &Arg, session: &mut Session) -> Option<Cel> {
    let draft = Draft::of_list(outer, ARGS, session)?;
    draft.require(outer, &[("rule", "…")], session);
    let Draft { value, seen, .. } = draft;
    let mut cel = Cel {
        rule: value.rule?,
        ..value.rest
    };
    let at = |name: &str| seen.at(name).unwrap_or(outer.span);
    check(&mut cel, &at, session);
    cel.origin = origin_at(at("rule"));
    cel.message_expression_origin = seen.at("message_expression").map(origin_at).unwrap_or_default();
    cel.field_path_origin = seen.at("field_path").map(origin_at).unwrap_or_default();
    (!cel.rule.trim().is_empty()).then_some(cel)
}

fn reason(text: &str, at: Span, session: &mut Session) -> Option<Reason> {
    let known = REASONS
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, reason)| *reason);
    if known.is_none() {
        let help = suggest::describe_candidates(text, REASONS.iter().map(|(name, _)| *name));
        session.error_help(at, format!("unknown reason `{text}`"), help);
    }
    known
}

/// Reports errors that can be detected without compiling the expression and that the API server
/// would reject.
fn check(cel: &mut Cel, at: &dyn Fn(&str) -> Span, session: &mut Session) {
    if cel.rule.trim().is_empty() {
        session.error_help(
            at("rule"),
            "the rule is empty",
            "write a CEL expression about `self`",
        );
    }
    if let Some(message) = &cel.message
        && (message.trim().is_empty() || message.contains('\n'))
    {
        let problem = match message.trim() {
            "" => "a message must not be blank",
            _ => "a message must be a single line",
        };
        session.error_help(at("message"), problem, "describe the valid values");
    }
    if cel.rule.trim().contains('\n') && cel.message.is_none() {
        let help = "add `message = \"…\"`: only a rule of one line can be its own message";
        session.error_help(at("rule"), "a rule of several lines requires a message", help);
    }
    if let Some(path) = &cel.field_path
        && !path.starts_with(['.', '['])
    {
        let help = format!("write `.{path}`, a path relative to the value that the rule applies to");
        session.error_help(at("field_path"), format!("invalid field path `{path}`"), help);
        // Drop the path, since it can't be resolved later.
        cel.field_path = None;
    }
    if cel.optional_old_self.is_some() && !cel.rule.contains("oldSelf") {
        let help = "remove it, or compare with `oldSelf`";
        session.error_help(
            at("optional_old_self"),
            "`optional_old_self` requires a rule that uses `oldSelf`",
            help,
        );
    }
}

/// Parses `validation = "…"`, or kube's `validation = Rule::new("…").message("…")…`.
pub(crate) fn read_cel_rule(arg: &Arg, session: &mut Session) -> Option<Cel> {
    let mut cel = match &arg.value {
        ArgValue::Expr(expr) => match rule(expr, arg.value_span(), session) {
            Some(cel) => cel,
            None => {
                session.error_help(
                    arg.value_span(),
                    "expected a literal rule: rbuilder does not run the program",
                    "write `Rule::new(\"…\")` with `.message(\"…\")`, `.reason(Reason::…)`, `.field_path(\"…\")`, or `cel(…)`",
                );
                return None;
            }
        },
        _ => Cel {
            rule: arg.text(session)?,
            ..Cel::default()
        },
    };
    check(&mut cel, &|_| arg.value_span(), session);
    cel.origin = origin_at(arg.value_span());
    (!cel.rule.trim().is_empty()).then_some(cel)
}

/// Parses a rule, or a value that kube converts to one: `"…"` or `("…", "…")`, possibly with
/// `.into()` or in `Rule::from(…)`.
fn rule(expr: &Expr<'_>, at: Span, session: &mut Session) -> Option<Cel> {
    match &expr.kind {
        ExprKind::Method(inner, "into", args) if args.is_empty() => rule(inner, at, session),
        ExprKind::Call(function, args) if last_segment(function) == Some("from") => match args.as_slice() {
            [inner] => rule(inner, at, session),
            _ => None,
        },
        ExprKind::Tuple(parts) => pair(parts),
        ExprKind::Literal(Value::String(text)) => Some(Cel {
            rule: text.clone(),
            ..Cel::default()
        }),
        _ => chain(expr, at, session),
    }
}

fn chain(expr: &Expr<'_>, at: Span, session: &mut Session) -> Option<Cel> {
    match &expr.kind {
        ExprKind::Call(_, args) => {
            let [argument] = args.as_slice() else {
                return None;
            };
            Some(Cel {
                rule: text(argument)?,
                ..Cel::default()
            })
        }
        ExprKind::Method(receiver, name, args) => {
            let mut cel = chain(receiver, at, session)?;
            let [argument] = args.as_slice() else {
                return None;
            };
            match *name {
                "message" => match &argument.kind {
                    ExprKind::Call(function, message) => {
                        let value = Some(text(message.first()?)?);
                        match last_segment(function)? {
                            "Expression" => cel.message_expression = value,
                            _ => cel.message = value,
                        }
                    }
                    _ => cel.message = Some(text(argument)?),
                },
                "reason" => cel.reason = reason(last_segment(argument)?, at, session),
                "field_path" => cel.field_path = Some(text(argument)?),
                "optional_old_self" => match argument.kind {
                    ExprKind::Literal(Value::Bool(value)) => cel.optional_old_self = Some(value),
                    _ => return None,
                },
                _ => return None,
            }
            Some(cel)
        }
        _ => None,
    }
}

/// kube accepts `("rule", "message")` for a rule.
fn pair(parts: &[Expr<'_>]) -> Option<Cel> {
    let [rule, message] = parts else { return None };
    Some(Cel {
        rule: text(rule)?,
        message: Some(text(message)?),
        ..Cel::default()
    })
}

fn text(expr: &Expr<'_>) -> Option<String> {
    match &expr.kind {
        ExprKind::Literal(Value::String(text)) => Some(text.clone()),
        // Skip conversions such as `"…".to_string()` and `"…".into()`.
        ExprKind::Method(receiver, _, args) if args.is_empty() => text(receiver),
        _ => None,
    }
}

fn last_segment<'a>(expr: &Expr<'a>) -> Option<&'a str> {
    match &expr.kind {
        ExprKind::Path(names) => names.last().copied(),
        _ => None,
    }
}
