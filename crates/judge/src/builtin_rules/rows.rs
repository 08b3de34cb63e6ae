//! Rules for single fields, as a table.

use rbuilder_kubernetes::names;
use serde_json::Value;

use crate::error::FieldError;
use crate::path::Path;

/// What a field must be. Except for [`Rule::Required`], absent and empty fields are right.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Not absent or empty. The text is the server's detail.
    Required(&'static str),
    /// A number that is at least 0.
    NonNegative,
    /// A number that is at least the given one, and the server's detail.
    AtLeast(i64, &'static str),
    /// A number in a range, and the server's detail.
    Within(i64, i64, &'static str),
    /// One of the listed strings.
    Supported(&'static [&'static str]),
    /// A string for which the function returns no messages.
    Text(fn(&str) -> Vec<String>),
    /// Like [`Rule::Text`], for empty strings as well.
    AnyText(fn(&str) -> Vec<String>),
    /// The number or the name of a port.
    Port,
    /// A number that isn't negative, or a percentage. The server's other checks are in code.
    Amount,
    /// Like [`Rule::Amount`], but at most 100 %.
    Share,
    /// The labels of a selector.
    Selector,
    /// Label names and values.
    Labels,
    /// Names of annotations.
    Annotations,
}

/// A row: the path of a field, and its rule. `[]` after a name stands for each item of a list.
pub(super) type Row = (&'static str, Rule);

pub(super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
pub(super) const AT_LEAST_ZERO: &str = "must be greater than or equal to 0";
pub(super) const POSITIVE: &str = "must be greater than zero";
pub(super) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

pub(super) fn check_rows(rows: &[Row], object: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for (field, rule) in rows {
        visit(object, field, path, &mut |value, path| {
            check_rule(*rule, value, path, errors);
        });
    }
}

/// Calls a function with each value at a path. The value is `None` if only the last field is absent.
pub(super) fn visit(value: &Value, field: &str, path: &Path, found: &mut impl FnMut(Option<&Value>, &Path)) {
    let (first, rest) = match field.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (field, None),
    };
    let (name, is_list) = match first.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (first, false),
    };
    let path = path.child(name);
    let inner = value.get(name).filter(|inner| !inner.is_null());
    let mut go_on = |value: Option<&Value>, path: &Path| match (rest, value) {
        (None, value) => found(value, path),
        (Some(rest), Some(value)) => visit(value, rest, path, found),
        (Some(_), None) => {}
    };
    match (is_list, inner) {
        (false, inner) => go_on(inner, &path),
        (true, inner) => {
            for (index, item) in inner.and_then(Value::as_array).into_iter().flatten().enumerate() {
                go_on(Some(item), &path.index(index));
            }
        }
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

fn check_rule(rule: Rule, value: Option<&Value>, path: &Path, errors: &mut Vec<FieldError>) {
    if let Rule::Required(detail) = rule {
        if is_empty(value) {
            errors.push(FieldError::required(path, detail));
        }
        return;
    }
    let Some(value) = value else { return };
    let (number, text) = (value.as_i64(), value.as_str());
    match rule {
        Rule::Required(_) => {}
        Rule::NonNegative => check_range(value, 0, i64::MAX, AT_LEAST_ZERO, path, errors),
        Rule::AtLeast(least, detail) => check_range(value, least, i64::MAX, detail, path, errors),
        Rule::Within(least, most, detail) => check_range(value, least, most, detail, path, errors),
        Rule::Supported(known) => {
            if text.is_some_and(|text| !text.is_empty() && !known.contains(&text)) {
                let known: Vec<Value> = known.iter().map(|known| (*known).into()).collect();
                errors.push(FieldError::not_supported(path, value, &known));
            }
        }
        Rule::Text(_) if text.is_some_and(str::is_empty) => {}
        Rule::Text(check) | Rule::AnyText(check) => push_all(text, check, path, errors),
        Rule::Port => match number {
            Some(_) => check_range(value, 1, 65535, PORT_RANGE, path, errors),
            None => push_all(text, check_port_name, path, errors),
        },
        Rule::Amount | Rule::Share => {
            if let Some(detail) = explain_amount(value, matches!(rule, Rule::Share)) {
                errors.push(FieldError::invalid(path, value, detail));
            }
        }
        Rule::Selector => check_selector(value, path, errors),
        Rule::Labels => check_labels(value, path, errors),
        Rule::Annotations => {
            for name in value.as_object().into_iter().flat_map(serde_json::Map::keys) {
                // Unlike names of labels, they may have capitals in their prefix.
                let name = name.to_lowercase();
                push_all(Some(&name), names::check_qualified_name, path, errors);
            }
        }
    }
}

fn check_range(
    value: &Value,
    least: i64,
    most: i64,
    detail: &str,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    if value
        .as_i64()
        .is_some_and(|number| number < least || number > most)
    {
        errors.push(FieldError::invalid(path, value, detail));
    }
}

pub(super) fn push_all(
    text: Option<&str>,
    check: fn(&str) -> Vec<String>,
    path: &Path,
    errors: &mut Vec<FieldError>,
) {
    let Some(text) = text else { return };
    let messages = check(text).into_iter();
    errors.extend(messages.map(|message| FieldError::invalid(path, &text.into(), &message)));
}

/// Returns the server's detail for a wrong number or percentage.
fn explain_amount(value: &Value, is_share: bool) -> Option<&'static str> {
    let Some(text) = value.as_str() else {
        return (value.as_i64()? < 0).then_some(AT_LEAST_ZERO);
    };
    match percentage(text) {
        None => Some(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex \
             used for validation is '[0-9]+%')",
        ),
        Some(share) => (is_share && share > 100).then_some("must not be greater than 100%"),
    }
}

fn percentage(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Whether a number or a percentage is zero. Go reads a string that is neither as zero, too.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => percentage(text).unwrap_or_else(|| text.parse().unwrap_or(0)) == 0,
        value => value.as_i64().unwrap_or(0) == 0,
    }
}

pub(super) fn check_port_name(text: &str) -> Vec<String> {
    let is_known = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    let wrong = [
        (text.len() > 15, "must be no more than 15 characters"),
        (
            text.is_empty() || !text.bytes().all(is_known),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            !text.bytes().any(|letter| letter.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (text.contains("--"), "must not contain consecutive hyphens"),
        (
            text.starts_with('-') || text.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    let wrong = wrong.into_iter().filter(|(is_wrong, _)| *is_wrong);
    wrong.map(|(_, message)| message.to_owned()).collect()
}

/// Keys of ConfigMaps and Secrets.
pub(super) fn check_config_key(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > 253 {
        messages.push("must be no more than 253 characters".to_owned());
    }
    let is_known = |letter: u8| letter.is_ascii_alphanumeric() || b"-._".contains(&letter);
    if text.is_empty() || !text.bytes().all(is_known) {
        messages.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match text {
        "." | ".." => messages.push(format!("must not be '{text}'")),
        _ if text.starts_with("..") => messages.push("must not start with '..'".to_owned()),
        _ => {}
    }
    messages
}

/// Names of environment variables.
pub(super) fn check_variable_name(text: &str) -> Vec<String> {
    let is_known = |letter: u8| (b' '..=b'~').contains(&letter) && letter != b'=';
    match text.bytes().all(is_known) {
        true => Vec::new(),
        false => vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        ],
    }
}

/// Names of objects that become a segment of a path.
pub(super) fn check_reference(text: &str) -> Vec<String> {
    names::check_path_segment(text)
}

fn check_labels(value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        push_all(Some(name), names::check_qualified_name, path, errors);
        push_all(value.as_str(), names::check_label_value, path, errors);
    }
}

/// Whether the parts of a label selector are valid.
pub(super) fn is_selector(selector: &Value) -> bool {
    let mut errors = Vec::new();
    check_selector(selector, &Path::root(), &mut errors);
    errors.is_empty()
}

fn check_selector(selector: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(labels) = selector.get("matchLabels") {
        check_labels(labels, &path.child("matchLabels"), errors);
    }
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    for (index, expression) in expressions.enumerate() {
        let path = path.child("matchExpressions").index(index);
        let has_values = expression["values"]
            .as_array()
            .is_some_and(|values| !values.is_empty());
        let operator = &expression["operator"];
        let values = path.child("values");
        match operator.as_str().unwrap_or_default() {
            "In" | "NotIn" if !has_values => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&values, detail));
            }
            "Exists" | "DoesNotExist" if has_values => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&values, detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(FieldError::invalid(
                &path.child("operator"),
                operator,
                "not a valid selector operator",
            )),
        }
        let key = expression["key"].as_str().unwrap_or_default();
        push_all(Some(key), names::check_qualified_name, &path.child("key"), errors);
        for (index, value) in expression["values"].as_array().into_iter().flatten().enumerate() {
            push_all(
                value.as_str(),
                names::check_label_value,
                &values.index(index),
                errors,
            );
        }
    }
}
