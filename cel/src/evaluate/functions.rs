//! CEL functions on constants. Any function missing here ends the evaluation without a verdict.

use std::cmp::Ordering;

use rbuilder_schema::Pattern;

use super::value::Value;
use super::{Outcome, Stop};

/// Calls a function. The target, if any, is the first argument.
pub(super) fn call(function: &str, args: &[Value]) -> Outcome {
    if args.iter().any(|arg| matches!(arg, Value::Unmodelled)) {
        return Err(Stop::Unknown);
    }
    match (function, args) {
        ("!_", [Value::Bool(value)]) => Ok(Value::Bool(!value)),
        ("_==_", [left, right]) => left.equals(right).map(Value::Bool),
        ("_!=_", [left, right]) => left.equals(right).map(|equal| Value::Bool(!equal)),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => {
            let order = left.compare(right)?;
            Ok(Value::Bool(order.is_some_and(|order| holds(function, order))))
        }
        ("@in", [item, Value::List(items) | Value::Unordered(items)]) => {
            for other in items {
                if item.equals(other)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        ("@in", [Value::String(key), Value::Map(map)]) => Ok(Value::Bool(map.contains_key(key))),
        ("_+_" | "_-_" | "_*_" | "_/_" | "_%_", [Value::Int(left), Value::Int(right)]) => {
            integers(function, *left, *right)
        }
        ("_+_" | "_-_" | "_*_" | "_/_", [Value::Double(left), Value::Double(right)]) => {
            Ok(Value::Double(doubles(function, *left, *right)))
        }
        ("_+_", [Value::String(left), Value::String(right)]) => Ok(Value::String(format!("{left}{right}"))),
        ("_+_", [Value::List(left), Value::List(right)]) => {
            Ok(Value::List(left.iter().chain(right).cloned().collect()))
        }
        ("-_", [Value::Int(value)]) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
        ("-_", [Value::Double(value)]) => Ok(Value::Double(-value)),
        ("_[_]", [Value::List(items) | Value::Unordered(items), Value::Int(index)]) => {
            let item = usize::try_from(*index).ok().and_then(|index| items.get(index));
            item.cloned()
                .ok_or_else(|| Stop::Error(format!("index out of bounds: {index}")))
        }
        ("_[_]", [Value::Map(map), Value::String(key)]) => map.get(key).cloned().ok_or_else(|| no_key(key)),
        ("size", [Value::String(text)]) => length(text.chars().count()),
        ("size", [Value::List(items) | Value::Unordered(items)]) => length(items.len()),
        ("size", [Value::Map(map)]) => length(map.len()),
        ("dyn", [value]) => Ok(value.clone()),
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(Value::Optional(Some(Box::new(value.clone())))),
        ("hasValue", [Value::Optional(value)]) => Ok(Value::Bool(value.is_some())),
        ("value", [Value::Optional(Some(value))]) => Ok((**value).clone()),
        ("orValue", [Value::Optional(value), other]) => {
            Ok(value.as_deref().cloned().unwrap_or_else(|| other.clone()))
        }
        ("int", [Value::Int(value)]) => Ok(Value::Int(*value)),
        ("string", [Value::String(text)]) => Ok(Value::String(text.clone())),
        ("string", [Value::Int(value)]) => Ok(Value::String(value.to_string())),
        ("string", [Value::Bool(value)]) => Ok(Value::String(value.to_string())),
        ("double", [Value::Int(value)]) => Ok(Value::Double(*value as f64)),
        (_, [Value::String(text), rest @ ..]) => string_function(function, text, rest),
        (_, [Value::List(items) | Value::Unordered(items)]) => list_function(function, items),
        _ => Err(Stop::Unknown),
    }
}

pub(super) fn no_key(key: &str) -> Stop {
    Stop::Error(format!("no such key: {key}"))
}

fn overflow() -> Stop {
    Stop::Error("integer overflow".to_owned())
}

fn length(length: usize) -> Outcome {
    i64::try_from(length).map(Value::Int).map_err(|_| Stop::Unknown)
}

fn holds(function: &str, order: Ordering) -> bool {
    match function {
        "_<_" => order.is_lt(),
        "_<=_" => order.is_le(),
        "_>_" => order.is_gt(),
        _ => order.is_ge(),
    }
}

fn integers(function: &str, left: i64, right: i64) -> Outcome {
    if right == 0 && matches!(function, "_/_" | "_%_") {
        return Err(Stop::Error("division by zero".to_owned()));
    }
    let result = match function {
        "_+_" => left.checked_add(right),
        "_-_" => left.checked_sub(right),
        "_*_" => left.checked_mul(right),
        "_/_" => left.checked_div(right),
        _ => left.checked_rem(right),
    };
    result.map(Value::Int).ok_or_else(overflow)
}

fn doubles(function: &str, left: f64, right: f64) -> f64 {
    match function {
        "_+_" => left + right,
        "_-_" => left - right,
        "_*_" => left * right,
        _ => left / right,
    }
}

fn string_function(function: &str, text: &str, rest: &[Value]) -> Outcome {
    let is = |holds: bool| Ok(Value::Bool(holds));
    match (function, rest) {
        ("startsWith", [Value::String(part)]) => is(text.starts_with(part)),
        ("endsWith", [Value::String(part)]) => is(text.ends_with(part)),
        ("contains", [Value::String(part)]) => is(text.contains(part)),
        ("matches", [Value::String(pattern)]) => {
            let found = Pattern::parse(pattern)
                .ok()
                .and_then(|pattern| pattern.is_match(text));
            found.map(Value::Bool).ok_or(Stop::Unknown)
        }
        ("lowerAscii", []) => Ok(Value::String(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Value::String(text.to_ascii_uppercase())),
        ("split", [Value::String(separator)]) if !separator.is_empty() => {
            let parts = text.split(separator.as_str());
            Ok(Value::List(
                parts.map(|part| Value::String(part.to_owned())).collect(),
            ))
        }
        _ => Err(Stop::Unknown),
    }
}

fn list_function(function: &str, items: &[Value]) -> Outcome {
    match function {
        "isSorted" => {
            for pair in items.windows(2) {
                if pair[0].compare(&pair[1])?.is_none_or(Ordering::is_gt) {
                    return Ok(Value::Bool(false));
                }
            }
            Ok(Value::Bool(true))
        }
        "sum" if items.iter().all(|item| matches!(item, Value::Int(_))) => {
            let numbers = items.iter().map(|item| match item {
                Value::Int(number) => *number,
                _ => 0,
            });
            let mut sum = 0_i64;
            for number in numbers {
                sum = sum.checked_add(number).ok_or_else(overflow)?;
            }
            Ok(Value::Int(sum))
        }
        "min" | "max" => {
            let (first, rest) = items
                .split_first()
                .ok_or_else(|| Stop::Error(format!("{function} called on empty list")))?;
            let wanted = if function == "min" {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let mut found = first;
            for item in rest {
                if item.compare(found)? == Some(wanted) {
                    found = item;
                }
            }
            Ok(found.clone())
        }
        _ => Err(Stop::Unknown),
    }
}
