//! Constant evaluation: arithmetic on literals and on the bounds of integer types.
//!
//! User-defined constants aren't resolved.

use serde_json::{Number, Value};

use crate::expr::{Expr, ExprKind, Operator};

/// Why an expression has no known value.
#[derive(Debug, PartialEq, Eq)]
pub enum Unknown<'a> {
    /// Depends on the value of this name.
    Name(String),
    /// This part isn't numeric arithmetic, or has no result.
    Part(&'a str),
}

impl<'a> Expr<'a> {
    /// Evaluates arithmetic on literals and on the bounds of integer types.
    ///
    /// # Errors
    ///
    /// Returns an error if the expression has another form, refers to user-defined constants, or
    /// has no result.
    pub fn value(&self) -> Result<Value, Unknown<'a>> {
        evaluate_expr(self)
    }
}

fn evaluate_expr<'a>(expr: &Expr<'a>) -> Result<Value, Unknown<'a>> {
    match &expr.kind {
        ExprKind::Literal(value) => Ok(value.clone()),
        ExprKind::Array(items) => items.iter().map(evaluate_expr).collect(),
        ExprKind::Path(path) => bound(path).ok_or_else(|| Unknown::Name(path.join("::"))),
        ExprKind::Negative(inner) => {
            let inner = evaluate_expr(inner)?;
            let negated = match integer(&inner) {
                Some(integer) => integer.checked_neg().and_then(from_integer),
                None => inner.as_f64().and_then(|float| from_float(-float)),
            };
            negated.ok_or(Unknown::Part(expr.text))
        }
        ExprKind::Binary(left, operator, right) => {
            let (left, right) = (evaluate_expr(left)?, evaluate_expr(right)?);
            operate(&left, *operator, &right).ok_or(Unknown::Part(expr.text))
        }
        ExprKind::Call(..)
        | ExprKind::Method(..)
        | ExprKind::Associated(..)
        | ExprKind::Field(..)
        | ExprKind::Index(..)
        | ExprKind::Macro(..)
        | ExprKind::Tuple(_)
        | ExprKind::Struct(_)
        | ExprKind::Not(_)
        | ExprKind::Equals(..)
        | ExprKind::Block(_)
        | ExprKind::Other => Err(Unknown::Part(expr.text)),
    }
}

fn integer(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

/// `None` if the integer exceeds 64 bits, the limit for JSON numbers.
fn from_integer(integer: i128) -> Option<Value> {
    let number = i64::try_from(integer).map(Number::from);
    let number = number
        .or_else(|_| u64::try_from(integer).map(Number::from))
        .ok()?;
    Some(Value::Number(number))
}

fn from_float(float: f64) -> Option<Value> {
    Number::from_f64(float).map(Value::Number)
}

fn operate(left: &Value, operator: Operator, right: &Value) -> Option<Value> {
    if let (Some(left), Some(right)) = (integer(left), integer(right)) {
        // Larger shifts overflow in Rust as well.
        let shift = || u32::try_from(right).ok().filter(|bits| *bits < 64);
        let result = match operator {
            Operator::Add => left.checked_add(right),
            Operator::Sub => left.checked_sub(right),
            Operator::Mul => left.checked_mul(right),
            Operator::Div => left.checked_div(right),
            Operator::Rem => left.checked_rem(right),
            Operator::ShiftLeft => left.checked_shl(shift()?),
            Operator::ShiftRight => left.checked_shr(shift()?),
        };
        return result.and_then(from_integer);
    }
    // As in Rust, integers and floats don't mix.
    let (Value::Number(left), Value::Number(right)) = (left, right) else {
        return None;
    };
    if !(left.is_f64() && right.is_f64()) {
        return None;
    }
    let (left, right) = (left.as_f64()?, right.as_f64()?);
    from_float(match operator {
        Operator::Add => left + right,
        Operator::Sub => left - right,
        Operator::Mul => left * right,
        Operator::Div => left / right,
        Operator::Rem => left % right,
        Operator::ShiftLeft | Operator::ShiftRight => return None,
    })
}

/// Resolves e.g. `u16::MAX`, including longer paths (`std::u16::MAX`).
fn bound(path: &[&str]) -> Option<Value> {
    let (ty, name) = match path {
        [ty, name] | ["std" | "core", ty, name] | ["", "std" | "core", ty, name] => (*ty, *name),
        _ => return None,
    };
    let (least, most) = match ty {
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => (i64::MIN.into(), i64::MAX.into()),
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" | "usize" => (0, u64::MAX.into()),
        _ => return None,
    };
    match name {
        "MIN" => from_integer(least),
        "MAX" => from_integer(most),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::token::lex;

    fn check(source: &str, expected: Result<Value, Unknown<'_>>) {
        let tokens = lex(source).expect("tokens");
        let read = Expr::read(&mut tokens.cursor()).expect("an expression");
        assert_eq!(evaluate_expr(&read), expected, "{source}");
    }

    #[test]
    fn evaluates_arithmetic() {
        check("60 * 60 - 1", Ok(json!(3599)));
        check("-(1 << 4)", Ok(json!(-16)));
        check("2 + 3 * 4 % 5", Ok(json!(4)));
        check("7 / 2", Ok(json!(3)));
        check("1.5 * 2.0", Ok(json!(3.0)));
        check("u64::MAX", Ok(json!(u64::MAX)));
        check("std::i8::MIN", Ok(json!(-128)));
        check("i32::MAX - 1", Ok(json!(i32::MAX - 1)));
        check("[1 + 1, -(2)]", Ok(json!([2, -2])));
        check("1 / 0", Err(Unknown::Part("1 / 0")));
        check("1 << 64", Err(Unknown::Part("1 << 64")));
        check("u64::MAX + 1", Err(Unknown::Part("u64::MAX + 1")));
        check("1 + 1.5", Err(Unknown::Part("1 + 1.5")));
        check("MAX * 2", Err(Unknown::Name("MAX".into())));
        check("limits::MAX", Err(Unknown::Name("limits::MAX".into())));
        check("f(1)", Err(Unknown::Part("f(1)")));
    }
}
