//! CEL's standard functions: conversions, time components, and optionals.

use rbuilder_kubernetes::go::{self, parse_duration};

use super::library::duration::{SECOND, format_duration, in_unit};
use super::library::time::{Timestamp, parse_timestamp};
use super::text;
use super::value::Value;
use super::{Outcome, Stop};

pub(super) fn call<'v>(function: &str, args: &[Value<'v>]) -> Option<Outcome<'v>> {
    Some(match (function, args) {
        ("bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint", [value]) => {
            convert(function, value)
        }
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(Value::some(value.clone())),
        ("optional.ofNonZeroValue", [value]) if value.is_zero() => Ok(Value::Optional(None)),
        ("optional.ofNonZeroValue", [value]) => Ok(Value::some(value.clone())),
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => list
            .to_vec()
            .and_then(|items| {
                items
                    .into_iter()
                    .filter_map(|item| unwrap(item).transpose())
                    .collect()
            })
            .map(Value::list),
        ("hasValue", [Value::Optional(value)]) => Ok(Value::Bool(value.is_some())),
        ("value", [Value::Optional(None)]) => Err(Stop::error("optional.none() dereference")),
        ("value", [Value::Optional(Some(value))]) => Ok((**value).clone()),
        (part, [Value::Duration(duration)]) => duration_part(part, *duration)?,
        (part, [Value::Timestamp(time)]) => time_part(part, *time, 0)?,
        (part, [Value::Timestamp(time), Value::String(zone)]) => {
            if !part.starts_with("get") {
                return None;
            }
            match zone_offset(zone) {
                Ok(offset) => time_part(part, *time, offset)?,
                Err(stop) => Err(stop),
            }
        }
        _ => return None,
    })
}

fn unwrap(item: Value<'_>) -> Result<Option<Value<'_>>, Stop> {
    match item {
        Value::Optional(value) => Ok(value.map(|value| (*value).clone())),
        item => Err(Stop::error(format!(
            "value {} is not optional",
            text::show(&item)
        ))),
    }
}

fn convert<'v>(to: &str, value: &Value<'v>) -> Outcome<'v> {
    let converted = match to {
        "bool" => to_bool(value),
        "bytes" => to_bytes(value),
        "double" => to_double(value),
        "duration" if matches!(value, Value::Int(_)) => {
            // Accepted by the checker of older API servers, but not implemented.
            return Err(Stop::error("no such overload: duration(int)"));
        }
        "duration" => to_duration(value),
        "int" => return to_int(value),
        "string" => return to_string(value),
        "timestamp" => return to_timestamp(value),
        _ => return to_uint(value),
    };
    converted.ok_or_else(|| failed(value, to))
}

fn failed(value: &Value<'_>, to: &str) -> Stop {
    let to = match to {
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        to => to,
    };
    let from = value.type_name();
    Stop::error(format!("type conversion error from '{from}' to '{to}'"))
}

fn to_bool<'v>(value: &Value<'v>) -> Option<Value<'v>> {
    match value {
        Value::Bool(_) => Some(value.clone()),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

fn to_bytes<'v>(value: &Value<'v>) -> Option<Value<'v>> {
    match value {
        Value::Bytes(_) => Some(value.clone()),
        Value::String(text) => Some(Value::Bytes(text.as_bytes().into())),
        _ => None,
    }
}

#[allow(clippy::cast_precision_loss)]
fn to_double<'v>(value: &Value<'v>) -> Option<Value<'v>> {
    Some(Value::Double(match value {
        Value::Double(value) => *value,
        Value::Int(value) => *value as f64,
        Value::Uint(value) => *value as f64,
        Value::String(text) => parse_float(text)?,
        _ => return None,
    }))
}

/// Parses a float like Go's `strconv.ParseFloat`, except for hexadecimal digits and underscores.
fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = unsigned.to_ascii_lowercase();
    let is_number = unsigned.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.');
    if lower == "nan" && unsigned.len() < text.len() {
        return None;
    }
    // Go reports "1e999" as out of range, while Rust parses it as infinity.
    let is_word = matches!(lower.as_str(), "inf" | "infinity" | "nan");
    let number: f64 = (is_number || is_word).then(|| text.parse().ok())??;
    (is_word || number.is_finite()).then_some(number)
}

fn to_duration<'v>(value: &Value<'v>) -> Option<Value<'v>> {
    match value {
        Value::Duration(_) => Some(value.clone()),
        Value::String(text) => parse_duration(text).map(Value::Duration),
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn to_int<'v>(value: &Value<'v>) -> Outcome<'v> {
    let overflow = || Stop::error("integer overflow");
    Ok(Value::Int(match value {
        Value::Int(value) => *value,
        Value::Uint(value) => i64::try_from(*value).map_err(|_| overflow())?,
        Value::Double(value) if value.abs() < i64::MAX as f64 => *value as i64,
        Value::Double(_) => return Err(overflow()),
        Value::Duration(value) => *value,
        Value::Timestamp(time) => time.seconds,
        Value::String(text) => text.parse().map_err(|_| failed(value, "int"))?,
        _ => return Err(failed(value, "int")),
    }))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]
fn to_uint<'v>(value: &Value<'v>) -> Outcome<'v> {
    let overflow = || Stop::error("unsigned integer overflow");
    Ok(Value::Uint(match value {
        Value::Uint(value) => *value,
        Value::Int(value) => u64::try_from(*value).map_err(|_| overflow())?,
        Value::Double(value) if *value >= 0.0 && *value < u64::MAX as f64 => *value as u64,
        Value::Double(_) => return Err(overflow()),
        // Unlike Rust, Go doesn't accept a leading `+` here.
        Value::String(text) if text.starts_with('+') => return Err(failed(value, "uint")),
        Value::String(text) => text.parse().map_err(|_| failed(value, "uint"))?,
        _ => return Err(failed(value, "uint")),
    }))
}

fn to_timestamp<'v>(value: &Value<'v>) -> Outcome<'v> {
    let overflow = || Stop::error("timestamp overflow");
    Ok(Value::Timestamp(match value {
        Value::Timestamp(time) => *time,
        Value::Int(seconds) => Timestamp::from_seconds(*seconds).ok_or_else(overflow)?,
        Value::String(text) => {
            let time = parse_timestamp(text).ok_or_else(|| failed(value, "timestamp"))?;
            time.checked().ok_or_else(overflow)?
        }
        _ => return Err(failed(value, "timestamp")),
    }))
}

fn to_string<'v>(value: &Value<'v>) -> Outcome<'v> {
    match as_text(value) {
        Ok(Some(text)) => Ok(Value::string(text)),
        Ok(None) => Err(failed(value, "string")),
        Err(stop) => Err(stop),
    }
}

/// `None` for types that can't be converted.
pub(super) fn as_text(value: &Value<'_>) -> Result<Option<String>, Stop> {
    Ok(Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => go::general(*value),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec())
            .map_err(|_| Stop::error("invalid UTF-8 in bytes, cannot convert to string"))?,
        Value::Duration(duration) => format_duration(*duration),
        Value::Timestamp(time) => time.format(),
        Value::Type(name) => (*name).to_owned(),
        Value::Ip(ip) => ip.format(),
        Value::Cidr(cidr) => cidr.format(),
        _ => return Ok(None),
    }))
}

fn duration_part<'v>(part: &str, duration: i64) -> Option<Outcome<'v>> {
    let value = match part {
        "getHours" => in_unit(duration, 3600 * SECOND),
        "getMinutes" => in_unit(duration, 60 * SECOND),
        "getSeconds" => in_unit(duration, SECOND),
        "getMilliseconds" => duration / 1_000_000,
        _ => return None,
    };
    Some(Ok(Value::Int(value)))
}

fn time_part<'v>(part: &str, time: Timestamp, offset: i64) -> Option<Outcome<'v>> {
    let civil = time.civil(offset);
    let value = match part {
        "getFullYear" => civil.year,
        "getMonth" => civil.month - 1,
        "getDayOfYear" => civil.day_of_year,
        "getDayOfMonth" => civil.day - 1,
        "getDate" => civil.day,
        "getDayOfWeek" => civil.weekday,
        "getHours" => civil.hour,
        "getMinutes" => civil.minute,
        "getSeconds" => civil.second,
        "getMilliseconds" => i64::from(time.nanos / 1_000_000),
        _ => return None,
    };
    Some(Ok(Value::Int(value)))
}

/// The offset of a time zone in seconds. Named zones aren't supported, since their rules depend on
/// the API server's host.
fn zone_offset(zone: &str) -> Result<i64, Stop> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return match zone {
            "" | "UTC" => Ok(0),
            _ => Err(Stop::Unsupported("a named time zone")),
        };
    };
    let number = |text: &str| -> Result<i64, Stop> {
        let is_number = text
            .strip_prefix(['+', '-'])
            .unwrap_or(text)
            .bytes()
            .all(|byte| byte.is_ascii_digit());
        let invalid = || {
            let quoted = go::quote(text);
            Stop::error(format!("strconv.Atoi: parsing {quoted}: invalid syntax"))
        };
        text.parse::<i64>().map_err(|_| match is_number {
            true if text.len() > 1 => Stop::Unsupported("a time zone of unusual length"),
            _ => invalid(),
        })
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let offset = match zone.starts_with('-') {
        true => hours.saturating_mul(60).saturating_sub(minutes),
        false => hours.saturating_mul(60).saturating_add(minutes),
    };
    Ok(offset.saturating_mul(60))
}
