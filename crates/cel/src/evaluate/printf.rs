//! `string.format`, as implemented in cel-go's `ext/formatting.go`.

use super::standard::as_text;
use super::value::Value;
use super::{Stop, text};
use rbuilder_kubernetes::go::{quote, scientific};

/// Default precision of `%f` and `%e`.
const DECIMALS: usize = 6;
/// Go zero-pads to any precision. This is far beyond the digits of any float.
const MAX_DECIMALS: usize = 10_000;

/// Formats a string. Errors are the API server's.
pub(super) fn format(format: &str, args: &[Value<'_>]) -> Result<String, Stop> {
    let mut formatted = String::with_capacity(format.len());
    let mut rest = format;
    let mut used = 0;
    while let Some((before, after)) = rest.split_once('%') {
        formatted.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            formatted.push('%');
            rest = after;
            continue;
        }
        let Some(arg) = args.get(used) else {
            return Err(Stop::error(format!("index {used} out of range")));
        };
        if after.is_empty() {
            return Err(Stop::error("unexpected end of string"));
        }
        used += 1;
        let (clause, after) = parse_clause(after)
            .map_err(|reason| Stop::error(format!("could not parse formatting clause: {reason}")))?;
        let written = clause.write(arg).map_err(|stop| match stop {
            Stop::Error(reason) => Stop::error(format!("error during formatting: {reason}")),
            stop => stop,
        })?;
        formatted.push_str(&written);
        rest = after;
    }
    formatted.push_str(rest);
    Ok(formatted)
}

/// A formatting clause, e.g. `%.3f`.
struct Clause {
    verb: char,
    decimals: usize,
}

fn parse_clause(text: &str) -> Result<(Clause, &str), String> {
    let (decimals, rest) = match text.strip_prefix('.') {
        None => (DECIMALS, text),
        Some(after) => {
            let rest = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
            let digits = &after[..after.len() - rest.len()];
            const CONTEXT: &str = "error while parsing precision";
            if rest.is_empty() {
                return Err(format!("{CONTEXT}: could not find end of precision specifier"));
            }
            let decimals = digits.parse::<u32>().map_err(|_| {
                let reason = if digits.is_empty() {
                    "invalid syntax"
                } else {
                    "value out of range"
                };
                let quoted = quote(digits);
                format!(
                    "{CONTEXT}: error while converting precision to integer: strconv.Atoi: parsing {quoted}: {reason}"
                )
            })?;
            (usize::try_from(decimals).unwrap_or(usize::MAX), rest)
        }
    };
    let verb = rest.chars().next().unwrap_or_default();
    match verb {
        's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o' => {
            let decimals = decimals.min(MAX_DECIMALS);
            Ok((Clause { verb, decimals }, &rest[1..]))
        }
        // Go only looks at a single byte here.
        verb => {
            let byte = char::from(rest.as_bytes().first().copied().unwrap_or_default());
            let shown = if verb.is_ascii() { verb } else { byte };
            Err(format!("unrecognized formatting clause \"{shown}\""))
        }
    }
}

impl Clause {
    fn write(&self, arg: &Value<'_>) -> Result<String, Stop> {
        match self.verb {
            's' => write_string(arg),
            'd' => write_decimal(arg),
            'f' => self.fixed(arg),
            'e' => self.scientific(arg),
            'b' => match arg {
                Value::Int(number) if *number < 0 => Ok(format!("-{:b}", number.unsigned_abs())),
                Value::Int(number) => Ok(format!("{number:b}")),
                Value::Uint(number) => Ok(format!("{number:b}")),
                Value::Bool(value) => Ok(if *value { "1" } else { "0" }.to_owned()),
                arg => Err(wrong("only integers and bools can be formatted as binary", arg)),
            },
            'o' => match arg {
                Value::Int(number) if *number < 0 => Ok(format!("-{:o}", number.unsigned_abs())),
                Value::Int(number) => Ok(format!("{number:o}")),
                Value::Uint(number) => Ok(format!("{number:o}")),
                arg => Err(wrong("octal clause can only be used on integers", arg)),
            },
            _ => self.hexadecimal(arg),
        }
    }

    fn hexadecimal(&self, arg: &Value<'_>) -> Result<String, Stop> {
        let of_bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String = match arg {
            Value::Int(number) if *number < 0 => format!("-{:x}", number.unsigned_abs()),
            Value::Int(number) => format!("{number:x}"),
            Value::Uint(number) => format!("{number:x}"),
            Value::String(text) => of_bytes(text.as_bytes()),
            Value::Bytes(bytes) => of_bytes(bytes),
            arg => {
                let rule = "only integers, byte buffers, and strings can be formatted as hex";
                return Err(wrong(rule, arg));
            }
        };
        Ok(match self.verb {
            'X' => text.to_ascii_uppercase(),
            _ => text,
        })
    }

    fn fixed(&self, arg: &Value<'_>) -> Result<String, Stop> {
        let rule = "fixed-point clause can only be used on doubles";
        let number = float(arg).ok_or_else(|| wrong(rule, arg))?;
        if let Some(word) = special(number) {
            return Ok(word.to_owned());
        }
        let text = format!("{number:.*}", self.decimals);
        Ok(with_groups(&text))
    }

    /// Formats a number in scientific notation, like Go's `x/text` in English.
    fn scientific(&self, arg: &Value<'_>) -> Result<String, Stop> {
        let rule = "scientific clause can only be used on doubles";
        let number = float(arg).ok_or_else(|| wrong(rule, arg))?;
        if let Some(word) = special(number) {
            return Ok(word.to_owned());
        }
        // cel-go uses `%6e`, where 6 is the width rather than the precision.
        let text = scientific(number, DECIMALS);
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        Ok(format!("{digits}×10{}", superscript(exponent)))
    }
}

fn superscript(exponent: &str) -> String {
    exponent
        .trim_start_matches('+')
        .chars()
        .map(|letter| match letter {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4'..='9' => char::from_u32(0x2070 + letter.to_digit(10).unwrap_or(0)).unwrap_or(letter),
            _ => '⁰',
        })
        .collect()
}

fn special(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        return Some("NaN");
    }
    match number {
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

fn with_groups(text: &str) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", whole),
    };
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

fn float(arg: &Value<'_>) -> Option<f64> {
    match arg {
        Value::Double(number) => Some(*number),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn wrong(rule: &str, arg: &Value<'_>) -> Stop {
    Stop::error(format!("{rule}, was given {}", arg.type_name()))
}

fn write_decimal(arg: &Value<'_>) -> Result<String, Stop> {
    match arg {
        Value::Int(number) => Ok(number.to_string()),
        Value::Uint(number) => Ok(number.to_string()),
        arg => Err(wrong("decimal clause can only be used on integers", arg)),
    }
}

fn write_string(arg: &Value<'_>) -> Result<String, Stop> {
    const RULE: &str = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";
    match arg {
        Value::Null => Ok("null".to_owned()),
        Value::List(_) | Value::Map(_) => write_collection(arg),
        Value::Ip(_) | Value::Cidr(_) => Err(wrong(RULE, arg)),
        arg => match as_text(arg) {
            Ok(text) => text.ok_or_else(|| wrong(RULE, arg)),
            Err(Stop::Error(reason)) => Err(Stop::error(format!(
                "could not convert argument {} to string",
                quote(&reason)
            ))),
            Err(stop) => Err(stop),
        },
    }
}

/// Formats a value inside a list or map, which looks like a CEL literal.
fn write_item(item: &Value<'_>) -> Result<String, Stop> {
    Ok(match item {
        Value::Int(_) | Value::Uint(_) => write_decimal(item)?,
        Value::String(text) => quote(text),
        Value::Bytes(_) => format!("b{}", quote(&write_string(item)?)),
        Value::Bool(_) | Value::Null | Value::Type(_) => write_string(item)?,
        Value::Timestamp(_) => format!("timestamp({})", quote(&write_string(item)?)),
        Value::Duration(_) => format!("duration({})", quote(&write_string(item)?)),
        Value::Double(number) if number.is_nan() => "\"NaN\"".to_owned(),
        Value::Double(f64::INFINITY) => "\"+Inf\"".to_owned(),
        Value::Double(f64::NEG_INFINITY) => "\"-Inf\"".to_owned(),
        Value::Double(number) => format!("{number:.DECIMALS$}"),
        Value::List(_) | Value::Map(_) => write_collection(item)?,
        item => {
            return Err(Stop::error(format!(
                "no formatting function for {}",
                item.type_name()
            )));
        }
    })
}

fn write_collection(value: &Value<'_>) -> Result<String, Stop> {
    match value {
        Value::List(list) => {
            let items: Result<Vec<String>, Stop> = list.iter().map(|item| write_item(&item?)).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for key in map.keys() {
                let written = match &key {
                    Value::String(text) => quote(text),
                    Value::Bool(_) | Value::Int(_) | Value::Uint(_) => text::show(&key),
                    key => {
                        let name = key.type_name();
                        let reason = format!("no formatting function for map key of type {name}");
                        return Err(Stop::error(reason));
                    }
                };
                let missing = || Stop::error(format!("could not find key: {}", quote(&text::show(&key))));
                let value = map.find(&key)?.ok_or_else(missing)?;
                entries.push((written, write_item(&value)?));
            }
            // Sort entries like cel-go, as Go maps are unordered.
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| format!("{key}:{value}"))
                .collect();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        value => write_string(value),
    }
}
