//! Equality and ordering of values, as in cel-go's `common/types` and kube-apiserver's own value
//! types.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::value::{List, ListKind, Map, Value};
use super::{Outcome, Stop};

/// Compares two values with `==`. Values of different types are never equal, except for numbers.
pub(super) fn equal(one: &Value<'_>, other: &Value<'_>) -> Result<bool, Stop> {
    match (one, other) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Null, _) | (_, Value::Null) => Ok(false),
        (one, other) => equal_items(one, other),
    }
}

/// Like [`equal`], but without the special case for `null`.
fn equal_items(one: &Value<'_>, other: &Value<'_>) -> Result<bool, Stop> {
    Ok(match (one, other) {
        (Value::Null, other) => matches!(other, Value::Null),
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::String(one), Value::String(other)) => one == other,
        (Value::Bytes(one), Value::Bytes(other)) => one == other,
        (Value::Duration(one), Value::Duration(other)) => one == other,
        (Value::Timestamp(one), Value::Timestamp(other)) => one == other,
        (Value::Type(one), Value::Type(other)) => one == other,
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => compare_numbers(one, other) == Some(Ordering::Equal),
        (Value::Optional(one), Value::Optional(other)) => match (one, other) {
            (Some(one), Some(other)) => equal_items(one, other)?,
            (one, other) => one.is_none() && other.is_none(),
        },
        (Value::List(one), other) => return equal_lists(one, other),
        (Value::Map(one), other) => return equal_maps(one, other),
        (Value::Ip(one), Value::Ip(other)) => one == other,
        (Value::Cidr(one), Value::Cidr(other)) => one == other,
        (Value::Semver(one), Value::Semver(other)) => one == other,
        (Value::Format(one), Value::Format(other)) => one.name == other.name,
        (Value::Url(one), Value::Url(other)) => one.normal_form() == other.normal_form(),
        (Value::Quantity(one), Value::Quantity(other)) => one.compare(other).is_eq(),
        (
            Value::Ip(_)
            | Value::Cidr(_)
            | Value::Semver(_)
            | Value::Format(_)
            | Value::Url(_)
            | Value::Quantity(_),
            _,
        ) => return Err(Stop::no_overload()),
        (Value::Preserved(one), Value::Preserved(other)) => one == other,
        (Value::Preserved(_), _) => {
            return Err(Stop::Unsupported("comparing a value without a schema"));
        }
        _ => false,
    })
}

fn equal_lists<'v>(one: &List<'v>, other: &Value<'v>) -> Result<bool, Stop> {
    let is_made = matches!(one, List::Made(_));
    let Value::List(other) = other else {
        return match is_made {
            true => Ok(false),
            false => Err(Stop::no_overload()),
        };
    };
    if one.len() != other.len() {
        return Ok(false);
    }
    match one.kind() {
        ListKind::Set => return equal_sets(one, other),
        ListKind::Map(keys) => return equal_list_maps(one, other, keys),
        ListKind::Atomic => {}
    }
    for (one, other) in one.iter().zip(other.iter()) {
        let is_equal = match is_made {
            // In lists created by the expression, cel-go treats errors as equal.
            true => match equal(&one?, &other?) {
                Err(Stop::Error(_)) => true,
                result => result?,
            },
            false => equal_parts(one, other)?,
        };
        if !is_equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares parts of two objects, whose values may have types other than those in the schema. As in
/// the API server, the first part drives the comparison, and scalars differ from anything
/// unreadable.
fn equal_parts<'v>(one: Outcome<'v>, other: Outcome<'v>) -> Result<bool, Stop> {
    let one = one?;
    let asks = matches!(one, Value::List(_) | Value::Map(_) | Value::Preserved(_));
    match other {
        Err(Stop::Error(_)) if !asks => Ok(false),
        other => equal_items(&one, &other?),
    }
}

/// Compares lists of type `set`: each item of the second list must be in the first one, and
/// together they must cover it. Unreadable items aren't even equal to themselves.
fn equal_sets<'v>(one: &List<'v>, other: &List<'v>) -> Result<bool, Stop> {
    let (mut known, mut has_unreadable) = (Vec::new(), false);
    for item in one.iter() {
        match item {
            Err(Stop::Error(_)) => has_unreadable = true,
            item => known.push(item?),
        }
    }
    let mut seen = vec![false; known.len()];
    for item in other.iter() {
        let item = match item {
            Err(Stop::Error(_)) => return Ok(false),
            item => item?,
        };
        let mut found = false;
        for (index, candidate) in known.iter().enumerate() {
            if is_same_element(candidate, &item)? {
                seen[index] = true;
                found = true;
            }
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(!has_unreadable && seen.into_iter().all(|seen| seen))
}

fn equal_list_maps<'v>(one: &List<'v>, other: &List<'v>, names: &[String]) -> Result<bool, Stop> {
    let known = one.to_vec()?;
    let keys: Result<Vec<Keys>, Stop> = known.iter().map(|item| Keys::hashed(item, names)).collect();
    let keys = keys?;
    let mut seen = vec![false; known.len()];
    for item in other.iter() {
        let item = item?;
        let wanted = Keys::hashed(&item, names)?;
        // The last of several items with the same keys wins.
        let mut found = None;
        for (index, candidate) in known.iter().enumerate() {
            if keys[index] == wanted {
                seen[index] = true;
                found = Some(candidate);
            }
        }
        match found {
            Some(candidate) if equal_items(candidate, &item)? => {}
            _ => return Ok(false),
        }
    }
    Ok(seen.into_iter().all(|seen| seen))
}

/// Unlike for `==`, `1` and `1.0` are distinct items.
pub(super) fn is_same_element(one: &Value<'_>, other: &Value<'_>) -> Result<bool, Stop> {
    match (one, other) {
        (Value::List(_) | Value::Map(_), _) | (_, Value::List(_) | Value::Map(_)) => Err(Stop::error(
            "listSet operations are only supported on lists of scalar values",
        )),
        _ => Ok(one.type_name() == other.type_name() && equal(one, other)?),
    }
}

/// Up to this many keys, the API server uses the values themselves as a Go map key. Beyond that, it
/// formats them as a string.
const MOST_HASHED: usize = 3;

/// Key fields of an item in a list of type `map`, as strings that include the type. Absent keys are
/// equal to each other.
#[derive(PartialEq)]
pub(super) struct Keys(Vec<Option<String>>);

impl Keys {
    pub(super) fn of(item: &Value<'_>, names: &[String]) -> Keys {
        Keys(names.iter().map(|name| key_of(item, name)).collect())
    }

    /// Like [`Keys::of`], but fails for objects and lists, which aren't hashable in Go. The schema
    /// allows neither as a key, but stored objects may still contain them.
    fn hashed(item: &Value<'_>, names: &[String]) -> Result<Keys, Stop> {
        let unhashable = names.iter().find_map(|name| match raw_key(item, name)? {
            Json::Object(_) => Some("map[string]interface {}"),
            Json::Array(_) => Some("[]interface {}"),
            _ => None,
        });
        match unhashable.filter(|_| names.len() <= MOST_HASHED) {
            Some(go_type) => Err(Stop::error(format!(
                "internal error: runtime error: hash of unhashable type {go_type}"
            ))),
            None => Ok(Keys::of(item, names)),
        }
    }
}

fn key_of(item: &Value<'_>, name: &str) -> Option<String> {
    let Value::Map(map) = item else {
        return None;
    };
    match map.find(&Value::string(cel_name(name))) {
        Ok(value) => value.map(|value| format!("{value:?}")),
        // Doesn't match the schema; compare the raw value.
        Err(_) => raw_key(item, name).map(|raw| format!("{raw:?}")),
    }
}

fn raw_key<'v>(item: &Value<'v>, name: &str) -> Option<&'v Json> {
    match item {
        Value::Map(Map::Json(map)) => map.fields.get(&cel_name(name)),
        _ => None,
    }
}

fn cel_name(name: &str) -> String {
    rbuilder_schema::cel_name(name).unwrap_or_else(|| name.to_owned())
}

fn equal_maps<'v>(one: &Map<'v>, other: &Value<'v>) -> Result<bool, Stop> {
    let (map, other) = match (one, other) {
        (_, Value::Map(other)) if one.len() != other.len() => return Ok(false),
        (Map::Made(entries), Value::Map(other)) => {
            for (key, value) in entries.iter() {
                let Ok(Some(found)) = other.find(key) else {
                    return Ok(false);
                };
                match equal(value, &found) {
                    Ok(false) => return Ok(false),
                    Err(stop @ Stop::Unsupported(_)) => return Err(stop),
                    _ => {}
                }
            }
            return Ok(true);
        }
        (Map::Made(_), _) => return Ok(false),
        (Map::Json(map), Value::Map(other)) => (map, other),
        (Map::Json(_), _) => return Err(Stop::no_overload()),
    };
    for (name, value) in map.fields {
        if map.schema_of(name).is_none() {
            // Compare unknown fields as raw values. If only one object has such a field, the API
            // server ignores it.
            let Map::Json(other) = other else {
                return Err(Stop::no_overload());
            };
            if other
                .fields
                .get(name)
                .is_some_and(|other| !equal_json(value, other))
            {
                return Ok(false);
            }
            continue;
        }
        // The API server treats the JSON name as a CEL name here.
        let key = Value::string(name.as_str());
        let is_equal = match (one.find(&key).transpose(), other.find(&key).transpose()) {
            (Some(one), Some(other)) => equal_parts(one, other)?,
            (one, other) => one.is_none() && other.is_none(),
        };
        if !is_equal {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_json(one: &Json, other: &Json) -> bool {
    one == other
}

/// `None` for NaN.
fn compare_numbers(one: &Value<'_>, other: &Value<'_>) -> Option<Ordering> {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        (Value::Uint(one), Value::Uint(other)) => Some(one.cmp(other)),
        (Value::Double(one), Value::Double(other)) => one.partial_cmp(other),
        (Value::Int(one), Value::Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Uint(one), Value::Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Double(one), other) => compare_double(*one, other),
        (one, Value::Double(other)) => compare_double(*other, one).map(Ordering::reverse),
        _ => None,
    }
}

/// Rounds the integer to a float, as Go does.
#[allow(clippy::cast_precision_loss)]
fn compare_double(one: f64, other: &Value<'_>) -> Option<Ordering> {
    match other {
        Value::Int(other) => one.partial_cmp(&(*other as f64)),
        Value::Uint(other) => one.partial_cmp(&(*other as f64)),
        _ => None,
    }
}

pub(super) fn order(one: &Value<'_>, other: &Value<'_>) -> Result<Ordering, Stop> {
    Ok(match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bytes(one), Value::Bytes(other)) => one.cmp(other),
        (Value::Duration(one), Value::Duration(other)) => one.cmp(other),
        (Value::Timestamp(one), Value::Timestamp(other)) => one.cmp(other),
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => compare_numbers(one, other).ok_or_else(|| Stop::error("NaN values cannot be ordered"))?,
        _ => return Err(Stop::no_overload()),
    })
}

pub(super) fn contains<'v>(item: &Value<'v>, container: &Value<'v>) -> Outcome<'v> {
    let found = match container {
        Value::Map(map) => map.find(item)?.is_some(),
        Value::List(list) => list_contains(list, item)?,
        _ => return Err(Stop::no_overload()),
    };
    Ok(Value::Bool(found))
}

pub(super) fn list_contains<'v>(list: &List<'v>, item: &Value<'v>) -> Result<bool, Stop> {
    let is_made = matches!(list, List::Made(_));
    let mut problem = None;
    for candidate in list.iter() {
        // In lists from the object, the candidate compares itself with `item`. In all others, it's
        // the other way around.
        let result = match (is_made, candidate) {
            (true, candidate) => equal_items(item, &candidate?),
            (false, candidate) => candidate.and_then(|candidate| equal_items(&candidate, item)),
        };
        match result {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(Stop::Error(_)) if is_made => {}
            Err(stop) => problem = problem.or(Some(stop)),
        }
    }
    problem.map_or(Ok(false), Err)
}
