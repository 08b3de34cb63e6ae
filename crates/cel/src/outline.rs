//! What can be read off a rule without running it: constants that it demands, and fields that it
//! mentions. Both only look at the syntax, and ignore what they don't understand.

use serde_json::{Value, json};

use super::ast::{Expr, Kind, Literal};
use super::parser::parse_expression;

/// A constant that a rule demands of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Names of fields below `self`, as the rule spells them. Empty for `self` itself.
    pub path: Vec<String>,
    /// One constant that satisfies the rule.
    pub value: Value,
    /// Whether the rule also holds without the field.
    pub is_optional: bool,
}

/// Returns the constants that a rule demands, e.g. of `self.kind == 'Cup' && self.size in [1, 2]`.
pub fn demanded_constants(rule: &str) -> Vec<Demand> {
    let mut demands = Vec::new();
    if let Ok(parsed) = parse_expression(rule) {
        collect_demands(&parsed.root, false, &mut demands);
    }
    demands
}

fn collect_demands(expr: &Expr, is_optional: bool, demands: &mut Vec<Demand>) {
    let Kind::Call { function, args, .. } = &expr.kind else {
        return;
    };
    match (function.as_str(), args.as_slice()) {
        ("_&&_", args) => args
            .iter()
            .for_each(|arg| collect_demands(arg, is_optional, demands)),
        ("_||_", args) => args.iter().for_each(|arg| collect_demands(arg, true, demands)),
        ("_==_", [left, right]) => {
            let demand = demand(left, right).or_else(|| demand(right, left));
            demands.extend(demand.map(|(path, value)| Demand {
                path,
                value,
                is_optional,
            }));
        }
        ("@in", [item, list]) => {
            if let Kind::List(items) = &list.kind
                && let Some((first, _)) = items.first()
            {
                let demand = demand(item, first);
                demands.extend(demand.map(|(path, value)| Demand {
                    path,
                    value,
                    is_optional,
                }));
            }
        }
        _ => {}
    }
}

fn demand(field: &Expr, constant: &Expr) -> Option<(Vec<String>, Value)> {
    let path = chain(field)?.into_iter().map(str::to_owned).collect();
    let value = match &constant.kind {
        Kind::Literal(Literal::Bool(value)) => json!(value),
        Kind::Literal(Literal::Int(value)) => json!(value),
        Kind::Literal(Literal::Double(value)) => json!(value),
        Kind::Literal(Literal::String(value)) => json!(value),
        _ => return None,
    };
    Some((path, value))
}

/// The fields selected from `self` or `oldSelf`.
fn chain(expr: &Expr) -> Option<Vec<&str>> {
    let (operand, name) = match &expr.kind {
        Kind::Ident(name) => return matches!(name.as_str(), "self" | "oldSelf").then(Vec::new),
        Kind::Select { operand, field, .. } => (&**operand, field.as_str()),
        _ => optional_select(expr)?,
    };
    let mut names = chain(operand)?;
    names.push(name);
    Some(names)
}

/// The operand and the field of `operand.?field`.
pub(super) fn optional_select(expr: &Expr) -> Option<(&Expr, &str)> {
    match &expr.kind {
        Kind::Call { function, args, .. } if function == "_?._" => match args.as_slice() {
            [operand, name] => match &name.kind {
                Kind::Literal(Literal::String(name)) => Some((operand, name)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Returns the fields below `self` that a rule mentions, as the rule spells them. Those of a list's
/// items aren't included, but the list is.
pub fn mentioned_fields(rule: &str) -> Vec<Vec<String>> {
    let mut fields = Vec::new();
    if let Ok(parsed) = parse_expression(rule) {
        collect_fields(&parsed.root, &mut fields);
    }
    fields
}

fn collect_fields(expr: &Expr, fields: &mut Vec<Vec<String>>) {
    match chain(expr) {
        Some(names) => fields.push(names.into_iter().map(str::to_owned).collect()),
        None => expr
            .children()
            .into_iter()
            .for_each(|child| collect_fields(child, fields)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_demanded_constants() {
        let check = |rule: &str, expected: &[(&str, Value, bool)]| {
            let found: Vec<(String, Value, bool)> = demanded_constants(rule)
                .into_iter()
                .map(|demand| (demand.path.join("."), demand.value, demand.is_optional))
                .collect();
            let expected: Vec<(String, Value, bool)> = expected
                .iter()
                .map(|(path, value, is_optional)| ((*path).to_owned(), value.clone(), *is_optional))
                .collect();
            assert_eq!(found, expected, "{rule}");
        };
        check("self.a == 'x'", &[("a", json!("x"), false)]);
        check("3 == self.a.b", &[("a.b", json!(3), false)]);
        check("self == true", &[("", json!(true), false)]);
        check(
            "self.a in ['x', 'y'] && self.b == 1.5",
            &[("a", json!("x"), false), ("b", json!(1.5), false)],
        );
        check("!has(self.a) || self.a == 'x'", &[("a", json!("x"), true)]);
        check("self.a != 'x'", &[]);
        check("self.a == self.b", &[]);
        check("self.a ==", &[]);
    }

    #[test]
    fn finds_mentioned_fields() {
        let check = |rule: &str, expected: &[&str]| {
            let found = mentioned_fields(rule);
            let found: Vec<String> = found.iter().map(|path| path.join(".")).collect();
            assert_eq!(found, expected, "{rule}");
        };
        check("has(self.a.b) || self.?c.d.orValue(1) > 2", &["a.b", "c.d"]);
        check("self.l.all(x, x.a == self.b)", &["l", "b"]);
        check("self.size() > 3", &[""]);
    }
}
