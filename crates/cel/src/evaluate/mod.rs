//! Evaluates type-checked expressions like cel-go's interpreter with kube-apiserver's options.
//!
//! Costs are counted during evaluation, because the API server stops at a limit: variables, fields
//! and indices cost 1 each, calls cost what `cost` returns, and constants are free (see `plan`).

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
pub(crate) use plan::{Plan, PlanError};

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// The expression failed, with the API server's message.
    Error(String),
    /// The cost limit was exceeded. Unlike errors, this can't be absorbed by operators.
    OverLimit,
    /// The expression or a value is unsupported, so the API server's result is unknown.
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

/// Cost limit of a single run.
const LIMIT: u64 = 1_000_000;
/// Limit for visited nodes. Some loops are free, so the cost limit alone doesn't guarantee
/// termination.
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
    /// Whether the value is a complete object with `apiVersion`, `kind` and a name.
    pub(crate) is_object: bool,
}

/// Evaluates an expression. If `is_optional` is set, `oldSelf` is an optional.
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

/// Evaluates an expression with untyped variables and no authorizer.
pub(crate) fn run_with_variables<'v>(
    plan: &Plan,
    variables: &[(&'v str, &'v serde_json::Value)],
) -> Result<Output, Stop> {
    let variables = variables.iter();
    let mut scopes: Vec<(&str, Slot<'_, '_>)> = variables
        .map(|(name, json)| (*name, Slot::Ready(Ok(json::read_untyped(json)))))
        .collect();
    // Only fail expressions that actually use the authorizer.
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
    /// Errors must be kept, since `||` and `&&` may absorb them in a later iteration.
    Ready(Outcome<'v>),
    /// A binding that is evaluated lazily on first use.
    Pending(&'p Expr),
}

struct Evaluator<'v, 'p> {
    plan: &'p Plan,
    /// Innermost scope last.
    scopes: Vec<(&'p str, Slot<'v, 'p>)>,
    cost: u64,
    steps: u64,
    /// Number of enclosing constant nodes. Constants are free.
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
        // A binding's value must not see variables of its body, so hide those meanwhile.
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
            // Lookups treat `1` and `1u` as the same key, but here they are distinct.
            let is_key = |entry: &(Value<'_>, Value<'_>)| {
                entry.0.type_name() == key.type_name() && value::is_same_key(&entry.0, &key)
            };
            if *optional {
                value = match value {
                    Value::Optional(Some(value)) => (*value).clone(),
                    Value::Optional(None) => {
                        // cel-go also deletes an existing entry with this key.
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
