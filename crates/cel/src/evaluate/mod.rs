//! Evaluates a checked expression like cel-go's interpreter with kube-apiserver's options.
//!
//! The tree comes from the checker, with types. Costs are counted during evaluation, because the
//! API server stops at a limit: a variable, a field and an index cost 1 each, a call costs what
//! `cost` returns, and constants are free (see `plan`).

mod attribute;
mod call;
mod compare;
mod cost;
mod fold;
mod json;
mod kubernetes;
mod library;
mod lists;
mod operators;
mod plan;
mod printf;
mod standard;
mod strings;
mod text;
mod value;

use rbuilder_schema::Schema;

use self::value::Value;
use super::ast::{Expr, Kind, Literal};
pub use library::quantity::{canonical_quantity, compare_quantities};
pub(crate) use plan::{Plan, PlanError};

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// The expression fails, with the API server's message.
    Error(String),
    /// Over the cost limit. Unlike an error, no operator can absorb it.
    OverLimit,
    /// We don't support the expression or a value, so we don't know the API server's result.
    Unsupported(&'static str),
}

impl Stop {
    fn error(text: impl Into<String>) -> Stop {
        Stop::Error(text.into())
    }

    fn no_overload() -> Stop {
        Stop::error("no such overload")
    }
}

type Outcome<'v> = Result<Value<'v>, Stop>;

/// Cost of a single run.
const LIMIT: u64 = 1_000_000;
/// Nodes to visit. Some loops are free, so the cost limit alone doesn't end them.
const STEPS: u64 = 20_000_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    Bool(bool),
    String(String),
    Other,
}

impl Output {
    fn of(value: Value<'_>) -> Output {
        match value {
            Value::Bool(value) => Output::Bool(value),
            Value::String(text) => Output::String(text.to_string()),
            _ => Output::Other,
        }
    }
}

pub(crate) struct Run {
    pub(crate) result: Result<Output, Stop>,
    pub(crate) cost: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Values<'v> {
    pub(crate) own: &'v serde_json::Value,
    pub(crate) old: Option<&'v serde_json::Value>,
    pub(crate) schema: &'v Schema,
    /// Whether the value is an object with `apiVersion`, `kind` and a name.
    pub(crate) is_object: bool,
}

/// Evaluates an expression. `oldSelf` is an optional if `is_optional` is set.
pub(crate) fn run(plan: &Plan, values: Values<'_>, is_optional: bool) -> Run {
    let read = |json| json::read(json, values.schema, values.is_object);
    let old = values.old.map(read);
    let old = match (old, is_optional) {
        (None, true) => Some(Ok(Value::Optional(None))),
        (Some(old), true) => Some(old.map(Value::some)),
        (old, false) => old,
    };
    let mut evaluator = Evaluator {
        plan,
        scopes: vec![("self", Slot::Ready(read(values.own)))],
        cost: 0,
        steps: STEPS,
        free: 0,
    };
    evaluator
        .scopes
        .extend(old.map(|old| ("oldSelf", Slot::Ready(old))));
    let result = evaluator.evaluate(&plan.root).map(Output::of);
    Run {
        result,
        cost: evaluator.cost,
    }
}

/// Evaluates an expression with untyped variables, and without an authorizer.
pub(crate) fn run_with_variables<'v>(
    plan: &Plan,
    variables: &[(&'v str, &'v serde_json::Value)],
) -> Result<Output, Stop> {
    let variables = variables.iter();
    let mut scopes: Vec<(&str, Slot<'_, '_>)> = variables
        .map(|(name, json)| (*name, Slot::Ready(Ok(json::read_untyped(json)))))
        .collect();
    // There is no authorizer, so only expressions that read it must fail.
    for name in ["authorizer", "authorizer.requestResource"] {
        scopes.push((name, Slot::Ready(Err(Stop::Unsupported("the authorizer")))));
    }
    let mut evaluator = Evaluator {
        plan,
        scopes,
        cost: 0,
        steps: STEPS,
        free: 0,
    };
    evaluator.evaluate(&plan.root).map(Output::of)
}

enum Slot<'v, 'p> {
    /// May be an error, because `||` and `&&` may absorb it in a later step of a loop.
    Ready(Outcome<'v>),
    /// A binding, which is evaluated the first time someone reads it.
    Pending(&'p Expr),
}

struct Evaluator<'v, 'p> {
    plan: &'p Plan,
    /// Innermost last.
    scopes: Vec<(&'p str, Slot<'v, 'p>)>,
    cost: u64,
    steps: u64,
    /// How many constant nodes we are in. Constants are free.
    free: usize,
}

impl<'v, 'p> Evaluator<'v, 'p> {
    fn charge(&mut self, cost: u64) -> Result<(), Stop> {
        if self.free == 0 {
            self.cost = self.cost.saturating_add(cost);
        }
        match self.cost > LIMIT {
            true => Err(Stop::OverLimit),
            false => Ok(()),
        }
    }

    fn evaluate(&mut self, expr: &'p Expr) -> Outcome<'v> {
        self.steps = self
            .steps
            .checked_sub(1)
            .ok_or(Stop::Unsupported("the expression takes too long"))?;
        if self.free == 0 && self.plan.is_constant(expr) {
            self.free += 1;
            let result = self.evaluate_kind(expr);
            self.free -= 1;
            return result;
        }
        self.evaluate_kind(expr)
    }

    fn evaluate_kind(&mut self, expr: &'p Expr) -> Outcome<'v> {
        if let Some(name) = self.plan.type_name(expr) {
            return Ok(Value::Type(name));
        }
        if self.plan.is_attribute(expr) {
            return self.attribute(expr);
        }
        match &expr.kind {
            Kind::Literal(literal) => Ok(of_literal(literal)),
            Kind::Ident(_) | Kind::Select { .. } => Err(Stop::Unsupported("an unknown variable")),
            Kind::Call {
                function,
                target,
                args,
            } => self.call(expr, function, target.as_deref(), args),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Message(_) => Err(Stop::Unsupported("a message of a built-in type")),
            Kind::Fold(fold) => self.fold(fold),
            Kind::Bind { name, value, body } => {
                self.scopes.push((name, Slot::Pending(value)));
                let result = self.evaluate(body);
                self.scopes.pop();
                result
            }
        }
    }

    fn variable(&mut self, name: &str) -> Outcome<'v> {
        let Some(index) = self.scopes.iter().rposition(|(known, _)| *known == name) else {
            return Err(Stop::error(format!("no such attribute(s): {name}")));
        };
        let pending = match &self.scopes[index].1 {
            Slot::Ready(value) => return value.clone(),
            Slot::Pending(value) => *value,
        };
        // The value of a binding must not see the variables inside its body, so hide them
        // meanwhile.
        let inner = self.scopes.split_off(index);
        let value = self.evaluate(pending);
        self.scopes.extend(inner);
        self.scopes[index].1 = Slot::Ready(value.clone());
        value
    }

    fn list(&mut self, exprs: &'p [(Expr, bool)]) -> Outcome<'v> {
        let mut items = Vec::with_capacity(exprs.len());
        let mut stop = None;
        for (item, optional) in exprs {
            match self.evaluate(item) {
                Ok(Value::Optional(value)) if *optional => {
                    items.extend(value.map(|value| (*value).clone()));
                }
                Ok(value) if *optional => {
                    let shown = text::show(&value);
                    stop = Some(Stop::error(format!(
                        "cannot initialize optional list element from non-optional value {shown}"
                    )));
                }
                Ok(value) => items.push(value),
                Err(error) => stop = Some(error),
            }
            if stop.is_some() {
                break;
            }
        }
        self.charge(10)?;
        stop.map_or_else(|| Ok(Value::list(items)), Err)
    }

    fn map(&mut self, exprs: &'p [(Expr, Expr, bool)]) -> Outcome<'v> {
        let result = self.entries(exprs);
        if let Err(stop @ (Stop::OverLimit | Stop::Unsupported(_))) = result {
            return Err(stop);
        }
        self.charge(30)?;
        result.map(|entries| Value::Map(value::Map::Made(entries.into())))
    }

    fn entries(&mut self, exprs: &'p [(Expr, Expr, bool)]) -> Result<Vec<(Value<'v>, Value<'v>)>, Stop> {
        let mut entries: Vec<(Value<'v>, Value<'v>)> = Vec::with_capacity(exprs.len());
        for (key, value, optional) in exprs {
            let key = self.evaluate(key)?;
            let mut value = self.evaluate(value)?;
            // A lookup treats `1` and `1u` as the same key, but here they are different.
            let is_key = |entry: &(Value<'_>, Value<'_>)| {
                entry.0.type_name() == key.type_name() && value::is_same_key(&entry.0, &key)
            };
            if *optional {
                value = match value {
                    Value::Optional(Some(value)) => (*value).clone(),
                    Value::Optional(None) => {
                        // cel-go also deletes an entry that was there before.
                        entries.retain(|entry| !is_key(entry));
                        continue;
                    }
                    value => {
                        return Err(Stop::error(format!(
                            "cannot initialize optional entry '{}' from non-optional value {}",
                            text::show(&key),
                            text::show(&value)
                        )));
                    }
                };
            }
            match entries.iter_mut().find(|entry| is_key(entry)) {
                Some(entry) => entry.1 = value,
                None => entries.push((key, value)),
            }
        }
        Ok(entries)
    }
}

fn of_literal<'v>(literal: &Literal) -> Value<'v> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::string(text.as_str()),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
    }
}
