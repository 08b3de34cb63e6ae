//! Parts of variables, and how code assigns to them.

use rbuilder_reader::{Expr, ExprKind};
use serde_json::{Map, Value};

use super::{Function, Read, Variable, legacy};
use crate::gap::words;

/// Methods that return their receiver, or a reference to it.
const SAME: &[&str] = &[
    "as_array_mut",
    "as_mut",
    "as_object",
    "as_object_mut",
    "ensure_object",
    "expect",
    "get_or_insert_default",
    "get_or_insert_with",
    "into_object",
    "unwrap",
];

/// An expression containing one of these probably changes a variable that it mentions. Assignments
/// are detected separately.
const CHANGES: &[&str] = &[
    "&mut",
    ".append(",
    ".clear(",
    ".ensure_object(",
    ".entry(",
    ".extend(",
    ".insert(",
    ".push(",
    ".remove(",
    ".retain(",
    "_mut(",
];

impl Function<'_> {
    /// Forgets the variables that an unsupported expression may have changed.
    pub(super) fn forget_changed(&mut self, expr: &Expr<'_>) {
        if !assigns(expr.text) && !CHANGES.iter().any(|part| expr.text.contains(part)) {
            return;
        }
        let mut named: Vec<String> = Vec::new();
        for word in words(expr.text) {
            match self.variables.get(word) {
                // Changing a reference changes the referenced variable.
                Some(Variable::Part(of, _)) => named.extend([word.to_owned(), of.clone()]),
                Some(Variable::Value(_)) => named.push(word.to_owned()),
                Some(Variable::Unknown) | None => {}
            }
        }
        for name in named {
            self.variables.insert(name, Variable::Unknown);
        }
    }

    pub(super) fn find_part(&self, expr: &Expr<'_>) -> Option<(String, Vec<String>)> {
        match &expr.kind {
            ExprKind::Path(names) => {
                let [name] = names.as_slice() else { return None };
                match self.variables.get(*name)? {
                    Variable::Part(of, path) => Some((of.clone(), path.clone())),
                    Variable::Value(_) => Some(((*name).to_owned(), Vec::new())),
                    Variable::Unknown => None,
                }
            }
            ExprKind::Field(inner, field) => {
                let (of, mut path) = self.find_part(inner)?;
                if !legacy::is_flattened(field) {
                    path.push(legacy::key(field));
                }
                Some((of, path))
            }
            ExprKind::Index(inner, index) => {
                let (of, mut path) = self.find_part(inner)?;
                path.push(literal_text(index)?);
                Some((of, path))
            }
            ExprKind::Method(inner, "get_mut", args) => {
                let (of, mut path) = self.find_part(inner)?;
                path.push(literal_text(args.first()?)?);
                Some((of, path))
            }
            ExprKind::Method(inner, name, _) if SAME.contains(name) || legacy::is_accessor(name) => {
                self.find_part(inner)
            }
            _ => None,
        }
    }

    pub(super) fn get(&self, of: &str, path: &[String]) -> Option<&Value> {
        let Variable::Value(value) = self.variables.get(of)? else {
            return None;
        };
        path.iter().try_fold(value, |value, key| value.get(key))
    }

    pub(super) fn part(&mut self, of: &str, path: &[String]) -> Option<&mut Value> {
        let Variable::Value(value) = self.variables.get_mut(of)? else {
            return None;
        };
        path.iter().try_fold(value, |value, key| {
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
            Some(value.as_object_mut()?.entry(key.clone()).or_insert(Value::Null))
        })
    }

    pub(super) fn assign(&mut self, target: &Expr<'_>, value: Value) -> Read<()> {
        let merges = matches!(&target.kind, ExprKind::Field(_, field) if legacy::is_flattened(field));
        let part = self.find_part(target);
        let place = part.and_then(|(of, path)| self.part(&of, &path));
        match (place, value) {
            (Some(Value::Object(fields)), Value::Object(value)) if merges => fields.extend(value),
            (Some(_), Value::Null) if merges => {}
            (Some(place), value) if !merges => *place = legacy::whole_number(value),
            _ => return self.unread(target.span, format!("`{}` is not part of a schema", target.text)),
        }
        Ok(())
    }
}

/// Returns true if there is an assignment like `a = 1` or `a += 1`. Comparisons and the arrows of
/// `match` don't count.
fn assigns(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_sign = |at: usize| {
        let (before, after) = (&bytes[..at], bytes.get(at + 1));
        let compares = match before {
            [.., b'<', b'<'] | [.., b'>', b'>'] => false,
            [.., last] => b"=!<>".contains(last),
            [] => false,
        };
        bytes[at] == b'=' && !compares && !matches!(after, Some(b'=' | b'>'))
    };
    (0..bytes.len()).any(is_sign)
}

/// Returns the text of a literal, possibly one converted to a `String`.
pub(super) fn literal_text(expr: &Expr<'_>) -> Option<String> {
    match &expr.kind {
        ExprKind::Literal(Value::String(text)) => Some(text.clone()),
        ExprKind::Method(inner, "to_string" | "to_owned" | "into", args) if args.is_empty() => {
            literal_text(inner)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_not_assignments() {
        for (text, expected) in [
            ("a = 1", true),
            ("a=1", true),
            ("a += 1", true),
            ("a <<= 1", true),
            ("a >>= 1", true),
            ("a == b", false),
            ("a != b", false),
            ("a <= b && b >= c", false),
            ("match a { 1 => b, _ => c }", false),
            ("=", true),
        ] {
            assert_eq!(assigns(text), expected, "{text}");
        }
    }
}
