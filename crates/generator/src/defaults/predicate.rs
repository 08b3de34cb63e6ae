//! Evaluates `skip_serializing_if`, i.e. whether serde writes a value.

use rbuilder_reader::token::Cursor;
use rbuilder_reader::{Expr, ExprKind, TypeKind};
use serde_json::Value;

use super::{Evaluator, Frame};
use crate::resolve::Ty;

impl Evaluator<'_, '_> {
    /// Calls the predicate at a path, e.g. the value of `skip_serializing_if`. Returns `None` if
    /// the result is unknown.
    pub(super) fn test_path(&mut self, path: &str, value: &Value, ty: &Ty, frame: Frame<'_>) -> Option<bool> {
        let tokens = rbuilder_reader::token::lex(path).ok()?;
        match Expr::read(&mut tokens.cursor()).ok()?.kind {
            ExprKind::Path(names) => self.test(&names, value, ty, frame),
            // The path may be `<[_]>::is_empty`.
            ExprKind::Associated(of, name) if matches!(of.kind, TypeKind::Array(..)) => test_std(name, value),
            _ => None,
        }
    }

    fn test(&mut self, names: &[&str], value: &Value, ty: &Ty, frame: Frame<'_>) -> Option<bool> {
        if let Some(id) = self.find_function(names, frame) {
            return self.in_body(id, Some((value, ty)), |this, expr, frame| this.holds(expr, frame));
        }
        test_std(names.last()?, value)
    }

    fn holds(&mut self, expr: &Expr<'_>, frame: Frame<'_>) -> Option<bool> {
        let (_, value, ty) = frame.parameter?;
        match &expr.kind {
            ExprKind::Literal(Value::Bool(flag)) => Some(*flag),
            ExprKind::Not(inner) => self.holds(inner, frame).map(|holds| !holds),
            ExprKind::Equals(left, right, is_equal) => {
                let other = match (is_parameter(left, frame), is_parameter(right, frame)) {
                    (true, false) => right,
                    (false, true) => left,
                    _ => return None,
                };
                let other = self.other_side(other, ty, frame)?;
                Some(rbuilder_schema::is_same_value(value, &other) == *is_equal)
            }
            ExprKind::Path(_) if is_parameter(expr, frame) => value.as_bool(),
            ExprKind::Macro(names, body) if names.last() == Some(&"matches") => {
                self.matches(*body, value, ty, frame)
            }
            ExprKind::Method(receiver, "eq", args) if is_parameter(receiver, frame) && args.len() == 1 => {
                let other = self.other_side(&args[0], ty, frame)?;
                Some(rbuilder_schema::is_same_value(value, &other))
            }
            ExprKind::Method(receiver, name, args) if is_parameter(receiver, frame) && args.is_empty() => {
                test_std(name, value)
            }
            ExprKind::Call(function, args) => match (&function.kind, args.as_slice()) {
                (ExprKind::Path(names), [only]) if is_parameter(only, frame) => {
                    self.test(names, value, ty, frame)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Evaluates `matches!(parameter, A | B)`. Patterns with data aren't supported.
    fn matches(&mut self, mut args: Cursor<'_>, value: &Value, ty: &Ty, frame: Frame<'_>) -> Option<bool> {
        let matched = Expr::read_operand(&mut args).ok()?;
        if !is_parameter(&matched, frame) || !args.eat(b',') {
            return None;
        }
        let mut holds = false;
        while !args.is_end() {
            args.eat(b'|');
            let pattern = Expr::read_operand(&mut args).ok()?;
            // A single lower-case word is a new binding and matches any value.
            let is_value = match &pattern.kind {
                ExprKind::Path(names) => names.len() > 1 || !names[0].starts_with(char::is_lowercase),
                ExprKind::Literal(_) => true,
                _ => false,
            };
            let is_whole = args.is_end() || args.is_punct(b'|') || args.is_punct(b',');
            let pattern = (is_value && is_whole).then(|| self.value(&pattern, ty, frame))??;
            holds |= rbuilder_schema::is_same_value(value, &pattern);
            args.eat(b',');
        }
        Some(holds)
    }

    /// Evaluates the other side of a comparison. It has the type of the parameter, even if that
    /// type is a type parameter.
    fn other_side(&mut self, expr: &Expr<'_>, ty: &Ty, frame: Frame<'_>) -> Option<Value> {
        if let ExprKind::Call(function, args) = &expr.kind
            && let ExprKind::Path(names) = &function.kind
            && names.last() == Some(&"default")
            && args.is_empty()
        {
            return self.zero(ty);
        }
        self.value(expr, ty, frame)
    }
}

fn is_parameter(expr: &Expr<'_>, frame: Frame<'_>) -> bool {
    let Some((name, ..)) = frame.parameter else {
        return false;
    };
    matches!(&expr.kind, ExprKind::Path(names) if *names == [name])
}

fn test_std(name: &str, value: &Value) -> Option<bool> {
    match (name, value) {
        ("is_none", value) => Some(value.is_null()),
        ("is_some", value) => Some(!value.is_null()),
        ("not", Value::Bool(flag)) => Some(!flag),
        ("clone", Value::Bool(flag)) => Some(*flag),
        ("is_empty", Value::Array(items)) => Some(items.is_empty()),
        ("is_empty", Value::Object(fields)) => Some(fields.is_empty()),
        ("is_empty", Value::String(text)) => Some(text.is_empty()),
        _ => None,
    }
}
