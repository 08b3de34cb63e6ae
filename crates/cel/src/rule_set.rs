//! Runs the rules on a value like kube-apiserver when it validates an object.
//!
//! Order of checks, budgets and messages follow `validateExpressions` in
//! `apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go`. The caller traverses the
//! object and its schema, correlates old values, and formats the errors: a [`Violation`] contains
//! everything needed for an error except the path.

use rbuilder_schema::{Cel, Reason, Schema};
use serde_json::Value;

use super::evaluate::{self, Plan, PlanError, Stop, Values};
use super::parser::parse_expression;
use super::types::{Decl, Type};
use super::{Diagnostic, ResultType, check, field_path};

/// Budget for all rules of an object together.
const REQUEST_BUDGET: u64 = 10_000_000;
/// Limit in bytes. Longer messages are ignored.
const MAX_MESSAGE: usize = 5 * 1024;

/// The remaining budget for an object's rules, in the API server's units.
#[derive(Clone, Debug)]
pub struct Budget {
    /// `None` once it is exceeded.
    remaining: Option<u64>,
}

impl Budget {
    /// Returns the initial budget for an object, which the API server grants for each request.
    pub fn per_object() -> Budget {
        Budget {
            remaining: Some(REQUEST_BUDGET),
        }
    }

    /// Returns true if the budget was exceeded, in which case the API server runs no further rules.
    pub fn is_exceeded(&self) -> bool {
        self.remaining.is_none()
    }

    /// The remaining budget. Zero if it was exceeded.
    pub fn remaining(&self) -> u64 {
        self.remaining.unwrap_or(0)
    }

    /// Deducts a cost. Returns false if that exceeds the budget, now or previously.
    fn pay(&mut self, cost: u64) -> bool {
        self.remaining = self.remaining.and_then(|remaining| remaining.checked_sub(cost));
        self.remaining.is_some()
    }

    fn exceed(&mut self) {
        self.remaining = None;
    }
}

/// The cause of a [`Violation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// The rule is false. The error contains the value, unless it's an object or a list.
    Fails,
    /// The rule can't be evaluated, or a budget was exceeded. The error is `Invalid value` and
    /// contains the name of the schema's type.
    Errors,
    /// The evaluator doesn't support the rule, so the result is unknown.
    Unsupported,
}

/// A rule that doesn't hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// Index into the compiled rules.
    pub rule: usize,
    /// Why the rule doesn't hold.
    pub kind: ViolationKind,
    /// The API server's message, without path, error type and value.
    pub detail: String,
    /// The rule's reason. Defaults to `FieldValueInvalid`, which is also used if the rule can't be
    /// evaluated.
    pub reason: Reason,
    /// Path to append to the value's path with a dot, e.g. `metadata.name`.
    pub field: Option<String>,
    /// Whether the API server returns a warning instead of an error for updates that don't change
    /// the value.
    pub ratchets: bool,
}

/// The compiled rules for a value.
#[derive(Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
    is_object: bool,
}

#[derive(Debug)]
struct Rule {
    source: Cel,
    /// `None` if the rule is blank.
    program: Option<Result<Program, CompileError>>,
    message: Option<Program>,
    field: Option<String>,
    uses_old: bool,
}

#[derive(Debug)]
struct Program {
    text: String,
    plan: Plan,
}

impl Program {
    fn compile(
        text: &str,
        variables: &[(&str, Type)],
        expected: ResultType,
    ) -> Result<(Program, Vec<String>), CompileError> {
        let mut parsed = parse_expression(text).map_err(|error| CompileError::of(&error))?;
        let checked = check::check_expression(&mut parsed.root, parsed.nodes, variables);
        if let Some(error) = checked.diagnostics.iter().find(|found| found.is_error()) {
            return Err(CompileError::of(error));
        }
        if checked.result != expected.as_type() {
            let reason = match expected {
                ResultType::Bool => "cel expression must evaluate to a bool",
                ResultType::String => "messageExpression must evaluate to a string",
            };
            return Err(CompileError::Invalid(reason.to_owned()));
        }
        let used = checked.used.clone();
        let plan = Plan::new(parsed.root, checked).map_err(|PlanError { text, .. }| {
            CompileError::Invalid(format!("program instantiation failed: {text}"))
        })?;
        let program = Program {
            text: text.to_owned(),
            plan,
        };
        Ok((program, used))
    }

    fn run(&self, values: &Values<'_>, is_optional: bool) -> evaluate::Run {
        evaluate::run(&self.plan, *values, is_optional)
    }
}

#[derive(Debug)]
enum CompileError {
    Invalid(String),
    /// The expression exceeds our size limits.
    TooLarge,
}

impl CompileError {
    fn of(error: &Diagnostic) -> CompileError {
        match error.is_error() {
            true => CompileError::Invalid(format!("compilation failed: {}", error.message)),
            false => CompileError::TooLarge,
        }
    }
}

impl RuleSet {
    /// Compiles rules for the values of a schema. `is_object` is set for the root of a resource and
    /// for embedded objects, i.e. those with `apiVersion`, `kind` and `metadata`.
    ///
    /// The rules are a separate parameter because branches of `allOf` can also contain rules, which
    /// see the value through the enclosing schema.
    pub fn compile(rules: &[Cel], schema: &Schema, is_object: bool) -> RuleSet {
        let own = match rules.is_empty() {
            true => None,
            false => Decl::of(schema, is_object).map(|decl| decl.ty()),
        };
        RuleSet {
            rules: rules
                .iter()
                .map(|rule| Rule::compile(rule, schema, own.as_ref()))
                .collect(),
            is_object,
        }
    }

    /// Returns true if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns true if any rule uses the old value.
    pub fn uses_old(&self) -> bool {
        self.rules.iter().any(|rule| rule.uses_old)
    }

    /// Runs the rules on a value. `old` is the correlated value before an update, and `schema` is
    /// the schema that the rules were compiled for.
    ///
    /// Rules don't run on `null`, and rules that require an old value only run if there is one.
    /// Once the budget is exceeded, the caller must not run any further rules for the object.
    pub fn evaluate(
        &self,
        own: &Value,
        old: Option<&Value>,
        schema: &Schema,
        budget: &mut Budget,
    ) -> Vec<Violation> {
        let mut found = Vec::new();
        if own.is_null() || self.rules.is_empty() || budget.is_exceeded() {
            return found;
        }
        let old = old.filter(|old| !old.is_null());
        if budget.remaining() == 0 {
            budget.exceed();
            found.push(self.rules[0].error(0, OUT_OF_BUDGET.to_owned()));
            return found;
        }
        let values = Values {
            own,
            old,
            schema,
            is_object: self.is_object,
        };
        for (index, rule) in self.rules.iter().enumerate() {
            found.extend(rule.evaluate(index, &values, budget));
            if budget.is_exceeded() {
                break;
            }
        }
        found
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

impl Rule {
    fn compile(source: &Cel, schema: &Schema, own: Option<&Type>) -> Rule {
        let mut rule = Rule {
            source: source.clone(),
            program: None,
            message: None,
            field: None,
            uses_old: false,
        };
        if source.rule.trim().is_empty() {
            return rule;
        }
        let Some(own) = own else {
            return rule;
        };
        let old = match source.optional_old_self {
            Some(true) => Type::optional(own.clone()),
            _ => own.clone(),
        };
        let variables = [("self", own.clone()), ("oldSelf", old)];
        match Program::compile(&source.rule, &variables, ResultType::Bool) {
            Ok((program, used)) => {
                rule.uses_old = used.iter().any(|name| name == "oldSelf");
                rule.program = Some(Ok(program));
            }
            Err(error) => {
                rule.program = Some(Err(error));
                return rule;
            }
        }
        // CRDs can't have an invalid message expression. Fall back to the message if there is one
        // anyway.
        rule.message = source
            .message_expression
            .as_deref()
            .filter(|text| !text.is_empty())
            .and_then(|text| Program::compile(text, &variables, ResultType::String).ok())
            .map(|(program, _)| program);
        rule.field = source
            .field_path
            .as_deref()
            .and_then(|path| field_path::normalize_field_path(path, schema).ok());
        rule
    }

    fn evaluate(&self, index: usize, values: &Values<'_>, budget: &mut Budget) -> Option<Violation> {
        let program = match self.program.as_ref()? {
            Ok(program) => program,
            Err(CompileError::Invalid(reason)) => {
                return Some(self.error(index, format!("rule compile error: {reason}")));
            }
            Err(CompileError::TooLarge) => {
                return Some(self.unsupported(index, "the expression is too large"));
            }
        };
        let is_optional = self.source.optional_old_self == Some(true);
        if self.uses_old && values.old.is_none() && !is_optional {
            return None;
        }
        let run = program.run(values, is_optional);
        if let Err(Stop::Unsupported(what)) = run.result {
            return Some(self.unsupported(index, what));
        }
        if !budget.pay(run.cost) {
            return Some(self.error(index, OUT_OF_BUDGET.to_owned()));
        }
        match run.result {
            Ok(evaluate::Output::Bool(true)) => None,
            Ok(_) => Some(self.fails(index, values, budget)),
            Err(Stop::Error(text)) => Some(self.stopped(index, &text)),
            Err(Stop::OverLimit) => Some(self.over_limit(index, budget)),
            Err(Stop::Unsupported(what)) => Some(self.unsupported(index, what)),
        }
    }

    fn stopped(&self, index: usize, text: &str) -> Violation {
        let rule = self.shown();
        let detail = match text.starts_with("no such overload") {
            true => format!(
                "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
            ),
            false => format!("{text} evaluating rule: {rule}"),
        };
        self.error(index, detail)
    }

    fn over_limit(&self, index: usize, budget: &mut Budget) -> Violation {
        budget.exceed();
        let rule = self.shown();
        let detail = format!(
            "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"
        );
        self.error(index, detail)
    }

    fn fails(&self, index: usize, values: &Values<'_>, budget: &mut Budget) -> Violation {
        let violation = |kind, detail| Violation {
            rule: index,
            kind,
            detail,
            reason: match kind {
                ViolationKind::Fails => self.source.reason.unwrap_or(Reason::FieldValueInvalid),
                _ => Reason::FieldValueInvalid,
            },
            field: self.field.clone(),
            ratchets: !self.uses_old,
        };
        let message = match &self.message {
            Some(message) => evaluate_message(message, values, budget),
            None => Message::Unusable,
        };
        match message {
            Message::Text(text) => violation(ViolationKind::Fails, text),
            Message::Stops(detail) => violation(ViolationKind::Errors, detail),
            Message::Unsupported(what) => violation(ViolationKind::Unsupported, what.to_owned()),
            Message::Unusable => violation(ViolationKind::Fails, self.message()),
        }
    }

    fn message(&self) -> String {
        match self.source.message.as_deref() {
            None | Some("") => format!("failed rule: {}", self.shown()),
            Some(message) => message.trim().to_owned(),
        }
    }

    /// How errors refer to the rule: by its message or, if there's none, its expression.
    fn shown(&self) -> &str {
        match self.source.message.as_deref() {
            None | Some("") => self.source.rule.trim(),
            Some(message) => message.trim(),
        }
    }

    fn error(&self, index: usize, detail: String) -> Violation {
        Violation {
            rule: index,
            kind: ViolationKind::Errors,
            detail,
            reason: Reason::FieldValueInvalid,
            field: None,
            ratchets: false,
        }
    }

    fn unsupported(&self, index: usize, reason: &str) -> Violation {
        Violation {
            kind: ViolationKind::Unsupported,
            ..self.error(index, reason.to_owned())
        }
    }
}

enum Message {
    Text(String),
    /// The expression failed or has no usable result. Fall back to the rule's `message`.
    Unusable,
    Stops(String),
    Unsupported(&'static str),
}

fn evaluate_message(program: &Program, values: &Values<'_>, budget: &mut Budget) -> Message {
    // In message expressions, `oldSelf` is never an optional; the API server passes it as is.
    let run = program.run(values, false);
    if let Err(Stop::Unsupported(what)) = run.result {
        return Message::Unsupported(what);
    }
    if !budget.pay(run.cost) {
        return Message::Stops(
            "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
                .to_owned(),
        );
    }
    match run.result {
        Ok(evaluate::Output::String(text)) => {
            let text = text.trim();
            match text.is_empty() || text.len() > MAX_MESSAGE || text.contains('\n') {
                true => Message::Unusable,
                false => Message::Text(text.to_owned()),
            }
        }
        Err(Stop::OverLimit) => {
            budget.exceed();
            Message::Stops(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {:?}",
                program.text
            ))
        }
        _ => Message::Unusable,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(schema: Value, rule: Value, own: Value, old: Option<Value>) -> Vec<Violation> {
        let schema: Schema = serde_json::from_value(schema).expect("a schema");
        let rules: Vec<Cel> = serde_json::from_value(json!([rule])).expect("a rule");
        let set = RuleSet::compile(&rules, &schema, true);
        set.evaluate(&own, old.as_ref(), &schema, &mut Budget::per_object())
    }

    fn size() -> Value {
        json!({ "type": "object", "properties": { "size": { "type": "integer" } } })
    }

    fn details(found: &[Violation]) -> Vec<&str> {
        found.iter().map(|found| found.detail.as_str()).collect()
    }

    #[test]
    fn a_false_rule_has_its_message() {
        let own = || json!({ "size": 3 });
        let rule = json!({ "rule": " self.size < 3 " });
        assert_eq!(
            details(&run(size(), rule, own(), None)),
            ["failed rule: self.size < 3"]
        );
        let rule = json!({ "rule": "self.size < 3", "message": " too large\t" });
        assert_eq!(details(&run(size(), rule, own(), None)), ["too large"]);
        let rule = json!({
            "rule": "self.size < 3", "fieldPath": ".size", "reason": "FieldValueForbidden",
            "messageExpression": "'size is ' + string(self.size)",
        });
        let found = run(size(), rule, own(), None);
        assert_eq!(details(&found), ["size is 3"]);
        assert_eq!(found[0].field.as_deref(), Some("size"));
        assert_eq!(found[0].reason, Reason::FieldValueForbidden);
        assert!(found[0].ratchets);
    }

    #[test]
    fn unusable_message_expressions_fall_back_to_the_message() {
        for expression in ["'a\\nb'", "' '", "string(self.size / 0)"] {
            let rule = json!({ "rule": "self.size < 3", "message": "no", "messageExpression": expression });
            assert_eq!(
                details(&run(size(), rule, json!({ "size": 3 }), None)),
                ["no"],
                "{expression}"
            );
        }
    }

    #[test]
    fn errors_name_the_rule() {
        let rule = json!({ "rule": "self.size < 3" });
        let found = run(size(), rule, json!({}), None);
        assert_eq!(
            details(&found),
            ["no such key: size evaluating rule: self.size < 3"]
        );
        assert_eq!(found[0].kind, ViolationKind::Errors);
        assert!(!found[0].ratchets);
    }

    #[test]
    fn transition_rules_need_an_old_value() {
        let rule = json!({ "rule": "self.size >= oldSelf.size" });
        assert!(run(size(), rule.clone(), json!({ "size": 3 }), None).is_empty());
        let found = run(size(), rule, json!({ "size": 3 }), Some(json!({ "size": 4 })));
        assert_eq!(details(&found), ["failed rule: self.size >= oldSelf.size"]);
        assert!(!found[0].ratchets);
        let rule = json!({ "rule": "oldSelf.hasValue()", "optionalOldSelf": true });
        assert_eq!(run(size(), rule.clone(), json!({}), None).len(), 1);
        assert!(run(size(), rule, json!({}), Some(json!({}))).is_empty());
    }

    #[test]
    fn rules_see_the_name_of_an_object() {
        let rule = json!({ "rule": "self.metadata.name == 'a' && self.kind == 'B'" });
        let own = json!({ "kind": "B", "metadata": { "name": "a", "labels": { "a": "b" } } });
        assert!(run(size(), rule, own, None).is_empty());
    }
}
