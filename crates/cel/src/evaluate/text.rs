//! Formats values for error messages, and runs regular expressions.

use rbuilder_re2::Pattern;

use super::Stop;
use super::value::Value;
use rbuilder_kubernetes::go;

/// Formats a value like Go's `%v`, as in error messages.
pub(super) fn show(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL_VALUE".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => go::shortest(*value),
        Value::String(text) => text.to_string(),
        Value::Type(name) => (*name).to_owned(),
        Value::Timestamp(time) => time.format(),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(value)) => format!("optional({})", show(value)),
        value => value.type_name().to_owned(),
    }
}

pub(super) fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Type(_) => "*types.Type",
        Value::List(_) => "*types.baseList",
        Value::Map(_) => "*types.baseMap",
        Value::Optional(_) => "*types.Optional",
        Value::Url(_) => "cel.URL",
        Value::Quantity(_) => "cel.Quantity",
        Value::Ip(_) => "cel.IP",
        Value::Cidr(_) => "cel.CIDR",
        Value::Semver(_) => "cel.Semver",
        Value::Format(_) => "cel.Format",
        Value::Preserved(_) => "*common.unknownPreserved",
    }
}

/// Runs a regular expression, which may be precompiled. Fails if it's invalid, or if the result
/// depends on missing Unicode tables.
pub(super) fn with_pattern<T>(
    text: &str,
    compiled: Option<&Pattern>,
    run: impl FnOnce(&Pattern) -> Option<T>,
) -> Result<T, Stop> {
    let parsed;
    let pattern = match compiled {
        Some(pattern) => pattern,
        None => {
            // Go's message quotes part of the expression, which our parser doesn't report.
            parsed = Pattern::parse(text)
                .map_err(|_| Stop::Unsupported("an invalid regular expression that is not a literal"))?;
            &parsed
        }
    };
    run(pattern).ok_or(Stop::Unsupported(
        "a regular expression that needs Unicode tables",
    ))
}
