//! Numbers: ranges, bounds and multiples.

use rbuilder_schema::{Schema, SchemaType};
use serde_json::{Number, Value};

use super::{Checker, Outcome, Violation};
use crate::error::FieldError;
use crate::go;

/// 2^53 - 1, the limit up to which floats represent all integers exactly.
const MOST_EXACT: f64 = 9_007_199_254_740_991.0;

/// Same as `swag.IsFloat64AJSONInteger`, which tolerates rounding errors.
pub(super) fn is_json_integer(value: f64) -> bool {
    if !value.is_finite() || value.abs() > MOST_EXACT {
        return false;
    }
    let rounded = value.round();
    value == rounded || (value - rounded).abs() < 1e-9 * rounded.abs()
}

#[derive(Clone, Copy)]
enum Constraint {
    MultipleOf(f64),
    Maximum(f64, bool),
    Minimum(f64, bool),
}

impl Constraint {
    fn value(self) -> f64 {
        match self {
            Constraint::MultipleOf(value) | Constraint::Maximum(value, _) | Constraint::Minimum(value, _) => {
                value
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Constraint::MultipleOf(_) => "MultipleOf",
            Constraint::Maximum(..) => "Maximum boundary",
            Constraint::Minimum(..) => "Minimum boundary",
        }
    }
}

impl Checker<'_> {
    pub(super) fn check_number(&self, number: &Number, schema: &Schema, path: &str) -> Outcome {
        let mut outcome = Outcome::passed(1);
        let range = Range::of(schema);
        if let Some(message) = range.find_violation(&text_of(number), "Checked", path) {
            outcome.add(self.general(message));
        }
        let float = |number: &Option<Number>| number.as_ref().map(go::as_float);
        let constraints = [
            float(&schema.multiple_of).map(Constraint::MultipleOf),
            float(&schema.minimum).map(|least| Constraint::Minimum(least, schema.exclusive_minimum)),
            float(&schema.maximum).map(|most| Constraint::Maximum(most, schema.exclusive_maximum)),
        ];
        for constraint in constraints.into_iter().flatten() {
            let misfit = range.find_violation(&constraint.value().to_string(), constraint.name(), path);
            let integer = go::integer(number).filter(|_| misfit.is_none());
            if let Some(message) = misfit {
                outcome.add(self.general(message));
            }
            let rule = match integer {
                Some(integer) => violated_by_integer(constraint, integer),
                None => violated_by_float(constraint, go::as_float(number)),
            };
            // Integers that are compared as floats are printed as floats.
            let value = match integer {
                Some(integer) => Value::from(integer),
                None => Value::from(go::as_float(number)),
            };
            if let Some(rule) = rule {
                outcome.add(self.broken_rule(path, &value, rule));
            }
        }
        outcome
    }

    fn broken_rule(&self, path: &str, value: &Value, rule: Broken) -> Violation {
        match rule {
            Broken::Rule(rule) => self.invalid(path, value, &rule),
            Broken::Factor(bound) => {
                let factor = go::plain(&bound);
                let message = format!("factor MultipleOf declared for {path} must be positive: {factor}");
                let error = FieldError::invalid(&self.field(path), &bound, &message);
                Violation::new(message, error)
            }
        }
    }
}

enum Broken {
    /// The message after the path.
    Rule(String),
    /// The factor isn't positive, i.e. the rule itself is broken.
    Factor(Value),
}

fn violated_by_integer(constraint: Constraint, value: i64) -> Option<Broken> {
    let bound = to_integer(constraint.value());
    let (is_broken, rule) = match constraint {
        Constraint::MultipleOf(_) if bound <= 0 => return Some(Broken::Factor(bound.into())),
        Constraint::MultipleOf(_) => (value % bound != 0, "a multiple of"),
        Constraint::Maximum(_, true) => (value >= bound, "less than"),
        Constraint::Maximum(_, false) => (value > bound, "less than or equal to"),
        Constraint::Minimum(_, true) => (value <= bound, "greater than"),
        Constraint::Minimum(_, false) => (value < bound, "greater than or equal to"),
    };
    is_broken.then(|| Broken::Rule(format!("should be {rule} {bound}")))
}

fn violated_by_float(constraint: Constraint, value: f64) -> Option<Broken> {
    let bound = constraint.value();
    let (is_broken, rule) = match constraint {
        Constraint::MultipleOf(_) if bound <= 0.0 => return Some(Broken::Factor(bound.into())),
        Constraint::MultipleOf(_) => {
            // Same formula as kube-openapi, since others round differently.
            let multiple = if bound < 1.0 {
                1.0 / bound * value
            } else {
                value / bound
            };
            (!is_json_integer(multiple), "a multiple of")
        }
        Constraint::Maximum(_, true) => (value >= bound, "less than"),
        Constraint::Maximum(_, false) => (value > bound, "less than or equal to"),
        Constraint::Minimum(_, true) => (value <= bound, "greater than"),
        Constraint::Minimum(_, false) => (value < bound, "greater than or equal to"),
    };
    is_broken.then(|| Broken::Rule(format!("should be {rule} {}", go::general(bound))))
}

/// Converts a float like Go on amd64, where all out-of-range floats become the same integer.
fn to_integer(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

fn text_of(number: &Number) -> String {
    match go::integer(number) {
        Some(integer) => integer.to_string(),
        None => go::as_float(number).to_string(),
    }
}

#[derive(Clone, Copy)]
enum Range {
    Int32,
    Int64,
    /// `int64`, but without an explicit format.
    Integer,
    Float32,
    Any,
}

impl Range {
    fn of(schema: &Schema) -> Range {
        let format = super::format(schema);
        match schema.schema_type.filter(|_| !schema.int_or_string) {
            Some(SchemaType::Integer) => match format {
                Some("int32") => Range::Int32,
                Some("int64") => Range::Int64,
                _ => Range::Integer,
            },
            Some(SchemaType::Number) if format == Some("float") => Range::Float32,
            _ => Range::Any,
        }
    }

    fn find_violation(self, text: &str, what: &str, path: &str) -> Option<String> {
        let (fits, described) = match self {
            Range::Int32 => (text.parse::<i32>().is_ok(), "integer with format int32"),
            Range::Int64 => (text.parse::<i64>().is_ok(), "integer with format int64"),
            Range::Integer => (text.parse::<i64>().is_ok(), "integer (default format)"),
            Range::Float32 => {
                let fits = text.parse::<f32>().is_ok_and(f32::is_finite);
                (fits, "number with format float")
            }
            Range::Any => return None,
        };
        (!fits).then(|| format!("{what} value must be of type {described} in {path}"))
    }
}
