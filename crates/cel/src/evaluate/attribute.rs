//! Variables, fields and indices. cel-go evaluates `self.a.b[0]` as a single attribute with three
//! qualifiers. Each qualifier costs 1. The attribute itself also costs 1, unless it is the branch
//! of a conditional or an index of another attribute.

use super::text;
use super::value::{List, Value};
use super::{Evaluator, Outcome, Stop};
use crate::ast::{Expr, Kind};

#[derive(Clone, Copy)]
struct Qualifier<'p> {
    key: Key<'p>,
    /// Whether absent values result in an empty optional instead of an error.
    optional: bool,
    /// Whether this is the field in a `has` macro.
    test: bool,
}

#[derive(Clone, Copy)]
enum Key<'p> {
    Field(&'p str),
    Index(&'p Expr),
}

const READ: u64 = 1;

impl<'v, 'p> Evaluator<'v, 'p> {
    pub(super) fn attribute(&mut self, expr: &'p Expr) -> Outcome<'v> {
        let result = self.resolve(expr, Vec::new());
        if matches!(result, Err(Stop::OverLimit | Stop::Unsupported(_))) {
            return result;
        }
        let is_test = matches!(expr.kind, Kind::Select { test: true, .. });
        match (is_test, is_conditional(base(expr))) {
            (false, false) => self.charge(READ)?,
            // `has` refunds the attribute itself, even for a conditional, which was never charged
            // for one.
            (true, true) => self.cost = self.cost.saturating_sub(READ),
            _ => {}
        }
        result
    }

    /// Evaluates an attribute without charging for it. `outer` contains further qualifiers, from
    /// right to left.
    fn resolve(&mut self, expr: &'p Expr, mut outer: Vec<Qualifier<'p>>) -> Outcome<'v> {
        let mut expr = expr;
        while self.plan.is_attribute(expr)
            && let Some((operand, qualifier)) = split(expr)
        {
            outer.push(qualifier);
            expr = operand;
        }
        if let Kind::Call { args, .. } = &expr.kind
            && is_conditional(expr)
            && let [condition, yes, no] = args.as_slice()
        {
            let branch = match self.evaluate(condition)? {
                Value::Bool(true) => yes,
                Value::Bool(false) => no,
                _ => return Err(Stop::no_overload()),
            };
            return match self.plan.is_attribute(branch) {
                true => self.resolve(branch, outer),
                false => {
                    let value = self.evaluate(branch)?;
                    self.qualify_all(value, &outer)
                }
            };
        }
        let value = match &expr.kind {
            Kind::Ident(name) if self.plan.is_attribute(expr) => self.variable(name)?,
            _ => self.evaluate(expr)?,
        };
        self.qualify_all(value, &outer)
    }

    /// Applies qualifiers, which are ordered from right to left.
    fn qualify_all(&mut self, value: Value<'v>, qualifiers: &[Qualifier<'p>]) -> Outcome<'v> {
        let is_test = qualifiers.first().is_some_and(|qualifier| qualifier.test);
        let (mut value, mut is_optional) = match value {
            Value::Optional(None) => return Ok(absent(is_test)),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            value => (value, false),
        };
        for qualifier in qualifiers.iter().rev() {
            is_optional |= qualifier.optional;
            let key = match qualifier.key {
                Key::Field(name) => Value::string(name),
                Key::Index(index) => self.index(index)?,
            };
            let found = qualify(&value, &key, is_optional || qualifier.test);
            if let Err(stop @ Stop::Unsupported(_)) = found {
                return Err(stop);
            }
            // Looking up an absent value through an optional is free.
            let is_paid = !is_optional || !matches!(found, Ok(None));
            if is_paid {
                self.charge(READ)?;
            }
            value = match (found?, qualifier.test, is_optional) {
                (found, true, false) => Value::Bool(found.is_some()),
                (Some(found), ..) => found,
                (None, ..) => return Ok(absent(is_test)),
            };
        }
        Ok(match (is_optional, is_test) {
            (true, true) => Value::Bool(true),
            (true, false) => Value::some(value),
            (false, _) => value,
        })
    }

    /// Evaluates an index, which is paid for by its qualifier.
    fn index(&mut self, index: &'p Expr) -> Outcome<'v> {
        match self.plan.is_attribute(index) && !self.plan.is_constant(index) {
            true => self.resolve(index, Vec::new()),
            false => self.evaluate(index),
        }
    }
}

/// The result of an attribute if a value that it reads through an optional is absent: an empty
/// optional, or false for `has`.
fn absent<'v>(is_test: bool) -> Value<'v> {
    match is_test {
        true => Value::Bool(false),
        false => Value::Optional(None),
    }
}

fn split(expr: &Expr) -> Option<(&Expr, Qualifier<'_>)> {
    let (operand, key, optional, test) = match &expr.kind {
        Kind::Select { operand, field, test } => (&**operand, Key::Field(field), false, *test),
        Kind::Call { function, args, .. } => match (function.as_str(), args.as_slice()) {
            ("_[_]", [operand, index]) => (operand, Key::Index(index), false, false),
            ("_[?_]" | "_?._", [operand, index]) => (operand, Key::Index(index), true, false),
            _ => return None,
        },
        _ => return None,
    };
    let qualifier = Qualifier { key, optional, test };
    Some((operand, qualifier))
}

fn base(expr: &Expr) -> &Expr {
    split(expr).map_or(expr, |(operand, _)| base(operand))
}

fn is_conditional(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Call { function, .. } if function == "_?_:_")
}

fn qualify<'v>(value: &Value<'v>, key: &Value<'v>, may_be_absent: bool) -> Result<Option<Value<'v>>, Stop> {
    let is_key = matches!(
        key,
        Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_)
    );
    if !is_key {
        // The API server's message contains a Go type here, which isn't known.
        return Err(Stop::Unsupported("an index of an unusual type"));
    }
    let missing = |what: &str| match may_be_absent {
        true => Ok(None),
        false => Err(Stop::error(format!("{what}: {}", text::show(key)))),
    };
    match value {
        Value::Map(map) => match map.find(key)? {
            Some(found) => Ok(Some(found)),
            None => missing("no such key"),
        },
        Value::List(list) => {
            let found = list_index(list, key)?.and_then(|index| list.get(index));
            match found {
                Some(item) => item.map(Some),
                None => missing("index out of bounds"),
            }
        }
        _ => missing("no such key"),
    }
}

/// Returns `None` for negative indices.
fn list_index(list: &List<'_>, key: &Value<'_>) -> Result<Option<usize>, Stop> {
    let unsupported = || Stop::error(format!("unsupported index value {} in list", text::show(key)));
    let index = match key {
        Value::Int(index) => *index,
        Value::Uint(index) => i64::try_from(*index).map_err(|_| unsupported())?,
        Value::Double(index) if index.fract() == 0.0 && index.abs() < 9.2e18 => *index as i64,
        Value::Double(_) => return Err(unsupported()),
        _ => {
            let name = key.type_name();
            return Err(Stop::error(format!("unsupported index type '{name}' in list")));
        }
    };
    let index = usize::try_from(index).ok();
    let is_inside = index.is_some_and(|index| index < list.len());
    // Lists in the object accept only integers.
    if is_inside && matches!(list, List::Json(_)) && !matches!(key, Value::Int(_)) {
        return Err(Stop::error(format!("unsupported index: {}", text::show(key))));
    }
    Ok(index)
}
