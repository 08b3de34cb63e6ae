//! Functions for lists and maps: CEL's lists, sets and comprehensions, and Kubernetes' list
//! library.

use std::cmp::Ordering;

use super::compare::{self, list_contains};
use super::operators;
use super::text;
use super::value::{List, Map, Value};
use super::{Outcome, Stop};

pub(super) fn call<'v>(function: &str, args: &[Value<'v>]) -> Option<Outcome<'v>> {
    Some(match (function, args) {
        ("isSorted", [Value::List(list)]) => is_sorted(list),
        ("sum", [Value::List(list)]) => sum(list),
        ("min", [Value::List(list)]) => extreme(list, "min", Ordering::Greater),
        ("max", [Value::List(list)]) => extreme(list, "max", Ordering::Less),
        ("indexOf", [Value::List(list), item]) => index_of(list, item, false),
        ("lastIndexOf", [Value::List(list), item]) => index_of(list, item, true),
        ("slice", [Value::List(list), Value::Int(start), Value::Int(end)]) => slice(list, *start, *end),
        ("flatten", [Value::List(list)]) => flatten(list, 1).map(Value::list),
        ("flatten", [Value::List(list), Value::Int(depth)]) => flatten(list, *depth).map(Value::list),
        ("flatten", [value]) => Err(no_flatten(value, "")),
        ("flatten", [value @ Value::List(_), depth]) => Err(no_flatten(value, depth.type_name())),
        ("flatten", [value, depth]) => Err(no_flatten(value, depth.type_name())),
        ("sort", [Value::List(list)]) => sort(list, list),
        ("@sortByAssociatedKeys", [Value::List(list), Value::List(keys)]) => sort(list, keys),
        ("lists.range", [Value::Int(size)]) => range(*size),
        ("reverse", [Value::List(list)]) => list.to_vec().map(|mut items| {
            items.reverse();
            Value::list(items)
        }),
        ("distinct", [Value::List(list)]) => distinct(list),
        ("first", [Value::List(list)]) => nth(list, 0),
        ("last", [Value::List(list)]) => nth(list, list.len().wrapping_sub(1)),
        ("sets.contains", [Value::List(list), Value::List(part)]) => has_all(list, part).map(Value::Bool),
        ("sets.equivalent", [Value::List(one), Value::List(other)]) => match has_all(one, other) {
            Ok(true) => has_all(other, one).map(Value::Bool),
            result => result.map(Value::Bool),
        },
        ("sets.intersects", [Value::List(one), Value::List(other)]) => intersects(one, other),
        ("cel.@mapInsert", [Value::Map(map), key, value]) => insert(map, &[(key.clone(), value.clone())]),
        ("cel.@mapInsert", [Value::Map(map), Value::Map(entries)]) => {
            let entries: Result<Vec<_>, Stop> = entries
                .keys()
                .into_iter()
                .map(|key| {
                    let value = entries.find(&key)?;
                    Ok((key, value.unwrap_or(Value::Null)))
                })
                .collect();
            entries.and_then(|entries| insert(map, &entries))
        }
        _ => return None,
    })
}

fn no_flatten(value: &Value<'_>, depth: &str) -> Stop {
    let name = match value.type_name() {
        "list" => "list(dyn)",
        "map" => "map(dyn, dyn)",
        "optional_type" => "optional_type(dyn)",
        name => name,
    };
    Stop::error(format!("no such overload: {name}.flatten({depth})"))
}

fn is_sorted<'v>(list: &List<'v>) -> Outcome<'v> {
    let items = list.to_vec()?;
    for pair in items.windows(2) {
        // Unordered items never count as unsorted.
        if compare::order(&pair[0], &pair[1]) == Ok(Ordering::Greater) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'v>(list: &List<'v>) -> Outcome<'v> {
    let items = list.to_vec()?;
    let zero = match items.first() {
        None | Some(Value::Int(_)) => Value::Int(0),
        Some(Value::Uint(_)) => Value::Uint(0),
        Some(Value::Double(_)) => Value::Double(0.0),
        Some(Value::Duration(_)) => Value::Duration(0),
        Some(_) => return Err(Stop::no_overload()),
    };
    items.iter().try_fold(zero, |sum, item| {
        operators::call("_+_", &[sum, item.clone()], None).unwrap_or_else(|| Err(Stop::no_overload()))
    })
}

/// Finds the minimum or maximum. `worse` is the ordering of an item relative to a better one.
fn extreme<'v>(list: &List<'v>, name: &str, worse: Ordering) -> Outcome<'v> {
    let items = list.to_vec()?;
    let mut items = items.into_iter();
    let mut best = items
        .next()
        .ok_or_else(|| Stop::error(format!("{name} called on empty list")))?;
    for item in items {
        if compare::order(&best, &item) == Ok(worse) {
            best = item;
        }
    }
    Ok(best)
}

fn index_of<'v>(list: &List<'v>, item: &Value<'v>, from_end: bool) -> Outcome<'v> {
    let mut found = None;
    for (index, candidate) in list.to_vec()?.iter().enumerate() {
        match compare::equal(candidate, item) {
            Ok(true) if from_end || found.is_none() => found = Some(index),
            Err(stop @ Stop::Unsupported(_)) => return Err(stop),
            _ => {}
        }
    }
    let index = found.and_then(|index| i64::try_from(index).ok());
    Ok(Value::Int(index.unwrap_or(-1)))
}

fn slice<'v>(list: &List<'v>, start: i64, end: i64) -> Outcome<'v> {
    let fails = |reason: &str| Err(Stop::error(format!("cannot slice({start}, {end}), {reason}")));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return fails("negative indexes not supported");
    };
    if from > to {
        return fails("start index must be less than or equal to end index");
    }
    if list.len() < to {
        return fails(&format!("list is length {}", list.len()));
    }
    let items: Result<Vec<_>, Stop> = (from..to).filter_map(|index| list.get(index)).collect();
    items.map(Value::list)
}

fn flatten<'v>(list: &List<'v>, depth: i64) -> Result<Vec<Value<'v>>, Stop> {
    if depth < 0 {
        return Err(Stop::error("level must be non-negative"));
    }
    let mut items = Vec::new();
    for item in list.iter() {
        match item? {
            Value::List(inner) if depth > 0 => items.extend(flatten(&inner, depth - 1)?),
            item => items.push(item),
        }
    }
    Ok(items)
}

fn sort<'v>(list: &List<'v>, keys: &List<'v>) -> Outcome<'v> {
    if list.len() != keys.len() {
        return Err(Stop::error(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let keys = keys.to_vec()?;
    let Some(first) = keys.first() else {
        return Ok(Value::List(list.clone()));
    };
    if !first.has_order() {
        return Err(Stop::error("list elements must be comparable"));
    }
    let name = first.type_name();
    if keys.len() > 1 && keys.iter().any(|key| key.type_name() != name) {
        return Err(Stop::error("list elements must have the same type"));
    }
    let mut pairs: Vec<(Value<'v>, Value<'v>)> = keys.into_iter().zip(list.to_vec()?).collect();
    pairs.sort_by(|(one, _), (other, _)| compare::order(one, other).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn range<'v>(size: i64) -> Outcome<'v> {
    if size < 0 {
        return Err(Stop::error(format!(
            "lists.range: size must be non-negative, got {size}"
        )));
    }
    // Larger lists exceed the cost limit anyway.
    let most = 10_000_000;
    if size > most {
        return Err(Stop::error(format!(
            "lists.range: size {size} exceeds maximum allowed ({most})"
        )));
    }
    Ok(Value::list((0..size).map(Value::Int).collect()))
}

fn distinct<'v>(list: &List<'v>) -> Outcome<'v> {
    let mut items: Vec<Value<'v>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        let is_known = items
            .iter()
            .any(|known| matches!(compare::equal(&item, known), Ok(true)));
        if !is_known {
            items.push(item);
        }
    }
    Ok(Value::list(items))
}

fn nth<'v>(list: &List<'v>, index: usize) -> Outcome<'v> {
    match list.get(index) {
        Some(item) => item.map(Value::some),
        None => Ok(Value::Optional(None)),
    }
}

fn has_all<'v>(list: &List<'v>, part: &List<'v>) -> Result<bool, Stop> {
    for item in part.iter() {
        if !list_contains(list, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'v>(one: &List<'v>, other: &List<'v>) -> Outcome<'v> {
    for item in one.iter() {
        match list_contains(other, &item?) {
            Ok(true) => return Ok(Value::Bool(true)),
            Ok(false) | Err(Stop::Error(_)) => {}
            Err(stop) => return Err(stop),
        }
    }
    Ok(Value::Bool(false))
}

fn insert<'v>(map: &Map<'v>, entries: &[(Value<'v>, Value<'v>)]) -> Outcome<'v> {
    let Map::Made(known) = map else {
        return Err(Stop::Unsupported("inserting into a map of the object"));
    };
    let mut all = known.to_vec();
    for (key, value) in entries {
        if super::value::find_entry(&all, key).is_some() {
            let shown = text::show(key);
            return Err(Stop::error(format!("insert failed: key {shown} already exists")));
        }
        all.push((key.clone(), value.clone()));
    }
    Ok(Value::Map(Map::Made(all.into())))
}
