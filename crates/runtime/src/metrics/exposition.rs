//! Version 0.0.4 of Prometheus' text format.
//!
//! We considered the crate prometheus-client, but it would only replace this module and the
//! atomics. It outputs OpenMetrics, which formats the values of `le` differently from Go (`1.0` and
//! `1000000.0` instead of `1` and `1e+06`), so existing queries for controller-runtime's buckets
//! would not match. Besides, it doesn't check for invalid or duplicate names, and appends `_total`
//! to all counters and a period to all descriptions.

use std::fmt;

/// `Content-Type` of the text format.
pub(crate) const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Labels of a line, i.e. `{name="value",…}`, or an empty string if there are none.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    names: &'a [String],
    values: &'a [String],
    extra: Option<(&'a str, &'a str)>,
}

impl<'a> Labels<'a> {
    pub(super) fn new(names: &'a [String], values: &'a [String]) -> Self {
        Self {
            names,
            values,
            extra: None,
        }
    }

    /// Adds a label.
    pub(super) fn and(self, name: &'a str, value: &'a str) -> Self {
        Self {
            extra: Some((name, value)),
            ..self
        }
    }
}

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self
            .names
            .iter()
            .map(String::as_str)
            .zip(self.values.iter().map(String::as_str));
        let mut separator = '{';
        for (name, value) in own.chain(self.extra) {
            write!(f, "{separator}{name}=\"{}\"", escape_value(value))?;
            separator = ',';
        }
        if separator == ',' {
            f.write_str("}")
        } else {
            Ok(())
        }
    }
}

fn escape_value(value: &str) -> String {
    escape_help(value).replace('"', "\\\"")
}

/// Descriptions must not contain line breaks.
pub(super) fn escape_help(help: &str) -> String {
    help.replace('\\', "\\\\").replace('\n', "\\n")
}

/// Formats a number like the Go client does, with the shortest representation that parses to the
/// same value. Numbers that are at least a million or less than a ten-thousandth have an exponent.
///
/// This must match exactly, because the bounds of histograms are labels, and queries compare labels
/// as strings.
pub(super) fn format_number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if exponent < -4 => format!("{digits}e-{:02}", -exponent),
        Ok(exponent) if exponent > 5 => format!("{digits}e+{exponent:02}"),
        _ => value.to_string(),
    }
}

pub(super) fn is_metric_name(name: &str) -> bool {
    is_name(name, |c| matches!(c, 'a'..='z' | 'A'..='Z' | '_' | ':'))
}

/// Rejects names that start with two underscores, which Prometheus reserves, and `le`, which
/// histograms need.
pub(super) fn is_label_name(name: &str) -> bool {
    is_name(name, |c| matches!(c, 'a'..='z' | 'A'..='Z' | '_')) && !name.starts_with("__") && name != "le"
}

fn is_name(name: &str, is_letter: impl Fn(char) -> bool) -> bool {
    name.chars()
        .enumerate()
        .all(|(at, c)| is_letter(c) || (at > 0 && c.is_ascii_digit()))
        && !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_go() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.005, "0.005"),
            (1e-8, "1e-08"),
            (9.999999999999999e-6, "9.999999999999999e-06"),
            (0.0001, "0.0001"),
            (999999.5, "999999.5"),
            (1e6, "1e+06"),
            (1234567.0, "1.234567e+06"),
            (1e100, "1e+100"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ];
        for (value, expected) in cases {
            assert_eq!(format_number(value), expected);
        }
    }

    #[test]
    fn label_values_are_escaped() {
        let names = ["a".to_owned(), "b".to_owned()];
        let values = ["say \"\\\"\n".to_owned(), String::new()];
        let labels = Labels::new(&names, &values);
        assert_eq!(labels.to_string(), r#"{a="say \"\\\"\n",b=""}"#);
        assert_eq!(
            labels.and("le", "+Inf").to_string(),
            r#"{a="say \"\\\"\n",b="",le="+Inf"}"#
        );
        assert_eq!(Labels::new(&[], &[]).to_string(), "");
    }

    #[test]
    fn names_follow_prometheus_rules() {
        for (name, metric, label) in [
            ("requests_total", true, true),
            ("job:rate5m", true, false),
            ("_x9", true, true),
            ("9x", false, false),
            ("", false, false),
            ("größe", false, false),
            ("with-dash", false, false),
            ("__name__", true, false),
            ("le", true, false),
        ] {
            assert_eq!(
                (is_metric_name(name), is_label_name(name)),
                (metric, label),
                "{name:?}"
            );
        }
    }
}
