//! Operators, and functions with a single cel-go implementation for all types.

use std::cmp::Ordering;

use rbuilder_re2::Pattern;

use super::compare::{self, Keys, is_same_element};
use super::text;
use super::value::{List, ListKind, Map, Value};
use super::{Outcome, Stop};

pub(super) fn call<'v>(function: &str, args: &[Value<'v>], pattern: Option<&Pattern>) -> Option<Outcome<'v>> {
    Some(match (function, args) {
        ("!_", [Value::Bool(value)]) => Ok(Value::Bool(!value)),
        ("!_", [_]) => Err(Stop::no_overload()),
        ("_==_", [left, right]) => compare::equal(left, right).map(Value::Bool),
        ("_!=_", [left, right]) => differ(left, right),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => ordered(function, left, right),
        ("@in", [item, container]) => compare::contains(item, container),
        ("_+_", [left, right]) => add(left, right),
        ("_-_", [left, right]) => subtract(left, right),
        ("_*_" | "_/_" | "_%_", [left, right]) => arithmetic(function, left, right),
        ("-_", [value]) => negate(value),
        ("size", [value]) => size(value),
        ("type", [value]) => Ok(Value::Type(value.type_name())),
        ("dyn", [value]) => Ok(value.clone()),
        ("matches", [text, regex]) => matches(text, regex, pattern),
        ("sort", [value]) if !matches!(value, Value::List(_)) => lacks(function, value),
        _ => return None,
    })
}

fn lacks<'v>(function: &str, value: &Value<'v>) -> Outcome<'v> {
    match value {
        // cel-go looks for a method of these types first, and its absence results in a different
        // error.
        Value::String(_) | Value::Duration(_) | Value::Timestamp(_) => Err(Stop::no_overload()),
        _ => Err(Stop::error(format!("no such overload: {function}"))),
    }
}

fn differ<'v>(left: &Value<'v>, right: &Value<'v>) -> Outcome<'v> {
    match compare::equal(left, right) {
        Ok(equal) => Ok(Value::Bool(!equal)),
        // Incomparable values are unequal.
        Err(Stop::Error(_)) => Ok(Value::Bool(true)),
        Err(stop) => Err(stop),
    }
}

fn ordered<'v>(function: &str, left: &Value<'v>, right: &Value<'v>) -> Outcome<'v> {
    if !left.has_order() {
        return lacks(function, left);
    }
    let order = compare::order(left, right)?;
    Ok(Value::Bool(match function {
        "_<_" => order == Ordering::Less,
        "_<=_" => order != Ordering::Greater,
        "_>_" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}

fn overflow(kind: &str) -> Stop {
    Stop::error(format!("{kind} overflow"))
}

fn int<'v>(result: Option<i64>) -> Outcome<'v> {
    result.map(Value::Int).ok_or_else(|| overflow("integer"))
}

fn uint<'v>(result: Option<u64>) -> Outcome<'v> {
    let result = result.map(Value::Uint);
    result.ok_or_else(|| overflow("unsigned integer"))
}

fn add<'v>(left: &Value<'v>, right: &Value<'v>) -> Outcome<'v> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_add(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_add(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::String(left), Value::String(right)) => Ok(Value::string(format!("{left}{right}"))),
        (Value::Bytes(left), Value::Bytes(right)) => Ok(Value::Bytes([&**left, &**right].concat().into())),
        (Value::Duration(left), Value::Duration(right)) => left
            .checked_add(*right)
            .map(Value::Duration)
            .ok_or_else(|| overflow("integer")),
        (Value::Timestamp(time), Value::Duration(duration))
        | (Value::Duration(duration), Value::Timestamp(time)) => time
            .plus(*duration)
            .map(Value::Timestamp)
            .ok_or_else(|| overflow("timestamp")),
        (Value::List(left), Value::List(right)) => add_lists(left, right),
        (
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
            | Value::List(_),
            _,
        ) => Err(Stop::no_overload()),
        _ => lacks("_+_", left),
    }
}

/// Concatenates two lists. Sets keep each item once; in lists of type `map`, items of the second
/// list replace those with the same keys.
fn add_lists<'v>(left: &List<'v>, right: &List<'v>) -> Outcome<'v> {
    let kind = left.kind();
    let mut items = left.to_vec()?;
    for item in right.iter() {
        let item = item?;
        let mut position = None;
        for (index, known) in items.iter().enumerate() {
            let is_same = match kind {
                ListKind::Atomic => false,
                ListKind::Set => is_same_element(known, &item)?,
                ListKind::Map(names) => Keys::of(known, names) == Keys::of(&item, names),
            };
            if is_same {
                position = Some(index);
            }
        }
        match (position, kind) {
            (Some(index), ListKind::Map(_)) => items[index] = item,
            (Some(_), _) => {}
            (None, _) => items.push(item),
        }
    }
    Ok(match kind {
        ListKind::Atomic => Value::list(items),
        kind => Value::List(List::Merged(items.into(), kind)),
    })
}

fn subtract<'v>(left: &Value<'v>, right: &Value<'v>) -> Outcome<'v> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_sub(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_sub(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right)) => left
            .checked_sub(*right)
            .map(Value::Duration)
            .ok_or_else(|| overflow("integer")),
        (Value::Timestamp(time), Value::Duration(duration)) => {
            let negative = duration.checked_neg().ok_or_else(|| overflow("integer"))?;
            let result = time.plus(negative).map(Value::Timestamp);
            result.ok_or_else(|| overflow("timestamp"))
        }
        (Value::Timestamp(left), Value::Timestamp(right)) => left
            .since(*right)
            .map(Value::Duration)
            .ok_or_else(|| overflow("integer")),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_) | Value::Timestamp(_), _) => {
            Err(Stop::no_overload())
        }
        _ => lacks("_-_", left),
    }
}

fn arithmetic<'v>(function: &str, left: &Value<'v>, right: &Value<'v>) -> Outcome<'v> {
    let zero = || match function {
        "_/_" => Stop::error("division by zero"),
        _ => Stop::error("modulus by zero"),
    };
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) if function != "_*_" => Err(zero()),
        (Value::Int(left), Value::Int(right)) => int(match function {
            "_*_" => left.checked_mul(*right),
            "_/_" => left.checked_div(*right),
            _ => left.checked_rem(*right),
        }),
        (Value::Uint(left), Value::Uint(right)) => uint(match function {
            "_*_" => left.checked_mul(*right),
            "_/_" => left.checked_div(*right),
            _ => left.checked_rem(*right),
        }),
        (Value::Double(left), Value::Double(right)) if function == "_*_" => Ok(Value::Double(left * right)),
        (Value::Double(left), Value::Double(right)) if function == "_/_" => Ok(Value::Double(left / right)),
        (Value::Int(_) | Value::Uint(_), _) => Err(Stop::no_overload()),
        (Value::Double(_), _) if function != "_%_" => Err(Stop::no_overload()),
        _ => lacks(function, left),
    }
}

fn negate<'v>(value: &Value<'v>) -> Outcome<'v> {
    match value {
        Value::Int(value) => int(value.checked_neg()),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => value
            .checked_neg()
            .map(Value::Duration)
            .ok_or_else(|| overflow("integer")),
        Value::Bool(_) => Err(Stop::no_overload()),
        value => lacks("-_", value),
    }
}

fn size<'v>(value: &Value<'v>) -> Outcome<'v> {
    match value {
        Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(Map::Json(_) | Map::Made(_)) => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        value => lacks("size", value),
    }
}

fn matches<'v>(text: &Value<'v>, regex: &Value<'v>, pattern: Option<&Pattern>) -> Outcome<'v> {
    match (text, regex) {
        // Literal patterns are compiled together with the rule, which results in a different error.
        (text, _) if pattern.is_some() && !matches!(text, Value::String(_)) => Err(Stop::no_overload()),
        (Value::String(text), Value::String(regex)) => {
            let found = text::with_pattern(regex, pattern, |pattern| pattern.is_match(text))?;
            Ok(Value::Bool(found))
        }
        (Value::String(_), _) => Err(Stop::no_overload()),
        (text, _) => lacks("matches", text),
    }
}
