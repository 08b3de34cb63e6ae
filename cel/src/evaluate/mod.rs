//! Evaluates a checked expression on constants, as cel-go does.
//!
//! Only part of the language is supported. Other expressions have no result, so callers never act
//! on a guess.

mod functions;
mod value;

use rbuilder_schema::{Schema, cel_name};

use self::functions::{call, no_key};
use self::value::Value;
use super::ast::{ACCUMULATOR, Expr, Fold, Kind, Literal};

/// The reason why an evaluation has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// The expression fails, as it does in the API server.
    Error(String),
    /// The evaluator does not support the expression.
    Unknown,
}

type Outcome = Result<Value, Stop>;

/// The maximum number of nodes that an evaluation visits. Nested loops could otherwise run for a
/// long time.
const STEPS: u32 = 100_000;

/// The verdict of a rule on a constant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Holds,
    /// The rule is false.
    Fails,
    /// The rule fails with an error.
    Stops(String),
    Unknown,
}

/// The old value that a rule compares with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Old {
    /// The value itself.
    Same,
    /// The value itself, wrapped in an optional.
    SameAsOptional,
    /// An empty optional.
    Nothing,
}

/// Evaluates a rule with a constant as `self`.
pub(crate) fn evaluate_rule(root: &Expr, constant: &serde_json::Value, schema: &Schema, old: Old) -> Verdict {
    let own = Value::read(constant, schema);
    let before = match old {
        Old::Same => own.clone(),
        Old::SameAsOptional => Value::Optional(Some(Box::new(own.clone()))),
        Old::Nothing => Value::Optional(None),
    };
    let mut evaluator = Evaluator {
        scopes: vec![("self".to_owned(), Ok(own)), ("oldSelf".to_owned(), Ok(before))],
        steps: STEPS,
    };
    match evaluator.evaluate(root) {
        Ok(Value::Bool(true)) => Verdict::Holds,
        Ok(Value::Bool(false)) => Verdict::Fails,
        Err(Stop::Error(reason)) => Verdict::Stops(reason),
        Ok(_) | Err(Stop::Unknown) => Verdict::Unknown,
    }
}

/// The error of an evaluation that exceeds the maximum cost of one run.
pub(crate) const OVER_LIMIT: &str = "operation cancelled: actual cost limit exceeded";

/// The result of an expression of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    Bool(bool),
    String(String),
    Other,
}

/// The result of one run, and its cost in the API server's units.
pub(crate) struct Run {
    pub(crate) result: Result<Output, Stop>,
    pub(crate) cost: u64,
}

/// Evaluates an expression with values for `self` and `oldSelf`. If `is_optional` is set, `oldSelf`
/// is an optional. `is_object` is set for a whole object.
pub(crate) fn run(
    root: &Expr,
    own: &serde_json::Value,
    old: Option<&serde_json::Value>,
    is_optional: bool,
    schema: &Schema,
    is_object: bool,
) -> Run {
    let read = |json| match is_object {
        true => Value::read_object(json, schema),
        false => Value::read(json, schema),
    };
    let old = old.map(read);
    let old = match (old, is_optional) {
        (old, true) => Some(Value::Optional(old.map(Box::new))),
        (old, false) => old,
    };
    let mut evaluator = Evaluator {
        scopes: vec![("self".to_owned(), Ok(read(own)))],
        steps: STEPS,
    };
    evaluator
        .scopes
        .extend(old.map(|old| ("oldSelf".to_owned(), Ok(old))));
    let result = evaluator.evaluate(root).map(|value| match value {
        Value::Bool(value) => Output::Bool(value),
        Value::String(text) => Output::String(text),
        _ => Output::Other,
    });
    Run { result, cost: 0 }
}

struct Evaluator {
    /// The values of names in scope, innermost last. A value can be an error: `||` and `&&` may
    /// absorb it in a later step of the loop.
    scopes: Vec<(String, Outcome)>,
    steps: u32,
}

impl Evaluator {
    fn evaluate(&mut self, expr: &Expr) -> Outcome {
        self.steps = self.steps.checked_sub(1).ok_or(Stop::Unknown)?;
        match &expr.kind {
            Kind::Literal(literal) => of_literal(literal),
            Kind::Ident(name) => {
                let found = self.scopes.iter().rfind(|(known, _)| known == name);
                found.map_or(Err(Stop::Unknown), |(_, value)| value.clone())
            }
            Kind::Select { operand, field, test } => {
                let operand = self.evaluate(operand)?;
                select(&operand, field, *test)
            }
            Kind::Call {
                function,
                target,
                args,
            } => self.call(function, target.as_deref(), args),
            Kind::List(items) => {
                let items = items.iter().map(|(item, optional)| match optional {
                    true => Err(Stop::Unknown),
                    false => self.evaluate(item),
                });
                items.collect::<Result<_, _>>().map(Value::List)
            }
            Kind::Map(_) | Kind::Message(_) => Err(Stop::Unknown),
            Kind::Fold(fold) => self.fold(fold),
            Kind::Bind { name, value, body } => {
                let value = self.evaluate(value);
                self.scopes.push((name.clone(), value));
                let result = self.evaluate(body);
                self.scopes.pop();
                result
            }
        }
    }

    fn call(&mut self, function: &str, target: Option<&Expr>, args: &[Expr]) -> Outcome {
        match (function, args) {
            ("_&&_", [left, right]) => return self.junction(left, right, false),
            ("_||_", [left, right]) => return self.junction(left, right, true),
            ("_?_:_", [condition, yes, no]) => {
                return match self.evaluate(condition)? {
                    Value::Bool(true) => self.evaluate(yes),
                    Value::Bool(false) => self.evaluate(no),
                    _ => Err(Stop::Unknown),
                };
            }
            ("@not_strictly_false", [condition]) => {
                return match self.evaluate(condition) {
                    Err(Stop::Unknown) => Err(Stop::Unknown),
                    Ok(Value::Bool(false)) => Ok(Value::Bool(false)),
                    _ => Ok(Value::Bool(true)),
                };
            }
            _ => {}
        }
        let values: Result<Vec<Value>, Stop> = target
            .into_iter()
            .chain(args)
            .map(|arg| self.evaluate(arg))
            .collect();
        call(function, &values?)
    }

    /// Evaluates `&&` (`decisive` is false) or `||` (`decisive` is true). Either operand can decide
    /// the result, even if the other one fails.
    fn junction(&mut self, left: &Expr, right: &Expr, decisive: bool) -> Outcome {
        let mut stop = None;
        for side in [left, right] {
            match self.evaluate(side) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => stop = Some(Stop::Unknown),
                Err(error) if stop != Some(Stop::Unknown) => stop = Some(error),
                Err(_) => {}
            }
        }
        stop.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn fold(&mut self, fold: &Fold) -> Outcome {
        let range = self.evaluate(&fold.range)?;
        let pairs: Vec<(Value, Value)> = match (range, fold.second.is_some()) {
            (Value::List(items) | Value::Unordered(items), false) => {
                items.into_iter().map(|item| (item, Value::Null)).collect()
            }
            (Value::List(items) | Value::Unordered(items), true) => {
                (0..).map(Value::Int).zip(items).collect()
            }
            (Value::Map(map), _) => map
                .into_iter()
                .map(|(key, value)| (Value::String(key), value))
                .collect(),
            _ => return Err(Stop::Unknown),
        };
        let depth = self.scopes.len();
        let start = self.evaluate(&fold.init);
        self.scopes.push((ACCUMULATOR.to_owned(), start));
        for (first, second) in pairs {
            if matches!(self.evaluate(&fold.condition)?, Value::Bool(false)) {
                break;
            }
            self.scopes.push((fold.variable.clone(), Ok(first)));
            self.scopes
                .extend(fold.second.clone().map(|name| (name, Ok(second))));
            let step = self.evaluate(&fold.step);
            self.scopes.truncate(depth + 1);
            self.scopes[depth].1 = step;
        }
        let result = self.evaluate(&fold.result);
        self.scopes.truncate(depth);
        result
    }
}

fn of_literal(literal: &Literal) -> Outcome {
    match literal {
        Literal::Null => Ok(Value::Null),
        Literal::Bool(value) => Ok(Value::Bool(*value)),
        Literal::Int(value) => Ok(Value::Int(*value)),
        Literal::Double(value) => Ok(Value::Double(*value)),
        Literal::String(text) => Ok(Value::String(text.clone())),
        Literal::Uint | Literal::Bytes(_) => Err(Stop::Unknown),
    }
}

/// Reads a field, or tests whether it is present if `test` is set.
fn select(operand: &Value, field: &str, test: bool) -> Outcome {
    let Value::Map(map) = operand else {
        return Err(Stop::Unknown);
    };
    let escaped = || cel_name(field).and_then(|name| map.get(&name));
    match map.get(field).or_else(escaped) {
        // The API server may treat a `null` as an absent field.
        Some(Value::Null | Value::Unmodelled) if test => Err(Stop::Unknown),
        Some(Value::Unmodelled) => Err(Stop::Unknown),
        Some(_) if test => Ok(Value::Bool(true)),
        Some(value) => Ok(value.clone()),
        None if test => Ok(Value::Bool(false)),
        None => Err(no_key(field)),
    }
}
