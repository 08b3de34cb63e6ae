//! The one YAML printer: the style of Go's `sigs.k8s.io/yaml`, which controller-gen and kubectl print with.
//!
//! Keys are sorted as Go sorts them, lists are not indented under their key, text of several lines is a `|-`
//! block, long plain text is folded at 80 columns, and whatever a YAML 1.1 reader would take for a boolean, a
//! number, a null or a date is quoted. `tests/yaml.rs` holds it to recorded Go output.
//!
//! It differs from Go on purpose in two places: the keys `<<` and `=`, which Go writes plain and then cannot
//! read back, are quoted, and Unicode's own line separators are escaped.

mod order;
mod scalar;

use serde_json::{Map, Number, Value};

use scalar::{Place, push_spaces};

/// Writes one document, without the `---` line.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_map(&mut out, map, 0, false),
        Value::Array(list) if !list.is_empty() => write_list(&mut out, list, 0, false),
        _ => {
            write_leaf(&mut out, value, 2);
            out.push('\n');
        }
    }
    out
}

/// `inline`: the first key continues a line that a `- ` began.
fn write_map(out: &mut String, map: &Map<String, Value>, indent: usize, mut inline: bool) {
    for key in order::sorted_keys(map) {
        if !inline {
            push_spaces(out, indent);
        }
        inline = false;
        let value = &map[key];
        if scalar::is_simple_key(key) {
            scalar::write(out, key, Place::Key);
            out.push(':');
            write_map_value(out, value, indent);
        } else {
            out.push_str("? ");
            scalar::write(out, key, Place::Value { indent: indent + 2 });
            out.push('\n');
            push_spaces(out, indent);
            out.push(':');
            write_item(out, value, indent);
        }
    }
}

fn write_map_value(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            write_map(out, map, indent + 2, false);
        }
        Value::Array(list) if !list.is_empty() => {
            out.push('\n');
            write_list(out, list, indent, false);
        }
        _ => {
            out.push(' ');
            write_leaf(out, value, indent + 2);
            out.push('\n');
        }
    }
}

fn write_list(out: &mut String, list: &[Value], indent: usize, mut inline: bool) {
    for item in list {
        if !inline {
            push_spaces(out, indent);
        }
        inline = false;
        out.push('-');
        write_item(out, item, indent);
    }
}

/// What follows a one-character indicator (`-`, or `:` after an explicit key) on the same line.
fn write_item(out: &mut String, value: &Value, indent: usize) {
    out.push(' ');
    match value {
        Value::Object(map) if !map.is_empty() => write_map(out, map, indent + 2, true),
        Value::Array(list) if !list.is_empty() => write_list(out, list, indent + 2, true),
        _ => {
            write_leaf(out, value, indent + 2);
            out.push('\n');
        }
    }
}

fn write_leaf(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => scalar::write(out, text, Place::Value { indent }),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// Whole numbers as integers (`1.0` is `1`), the rest as Go's shortest form: an exponent of at least two digits
/// below 1e-4 and from 1e21 (whole) or 1e6 (broken) on.
fn write_number(out: &mut String, number: &Number) {
    let float = match number.as_f64() {
        Some(float) if number.is_f64() => float,
        _ => return out.push_str(&number.to_string()),
    };
    if float.fract() == 0.0 && float.abs() < 9.2e18 {
        return out.push_str(&format!("{float:.0}"));
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // Go counts the significant digits: a value is written out while its digits reach past the point.
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    let longest = if digits > 21 { 21 } else { 6 };
    if (-4..longest).contains(&exponent) {
        return out.push_str(&float.to_string());
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    out.push_str(&format!("{mantissa}e{sign}{:02}", exponent.abs()));
}
