//! What can be read off a rule without running it: constants that it demands, and whether it always
//! holds for values about which something is known. Both only look at the syntax, and ignore what they
//! don't understand.

use serde_json::{Value, json};

use super::ast::{ACCUMULATOR, Expr, Kind, Literal};
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
    let steps = chain(field)?;
    let path = steps.into_iter().map(|step| step.name.to_owned()).collect();
    let value = match &constant.kind {
        Kind::Literal(Literal::Bool(value)) => json!(value),
        Kind::Literal(Literal::Int(value)) => json!(value),
        Kind::Literal(Literal::Double(value)) => json!(value),
        Kind::Literal(Literal::String(value)) => json!(value),
        _ => return None,
    };
    Some((path, value))
}

struct Link<'e> {
    name: &'e str,
    is_optional: bool,
}

/// The fields selected from `self` or `oldSelf`.
fn chain(expr: &Expr) -> Option<Vec<Link<'_>>> {
    let (operand, name, is_optional) = match &expr.kind {
        Kind::Ident(name) => return matches!(name.as_str(), "self" | "oldSelf").then(Vec::new),
        Kind::Select { operand, field, .. } => (&**operand, field.as_str(), false),
        Kind::Call { function, args, .. } if function == "_?._" => match args.as_slice() {
            [operand, name] => match &name.kind {
                Kind::Literal(Literal::String(name)) => (operand, name.as_str(), true),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    };
    let mut links = chain(operand)?;
    links.push(Link { name, is_optional });
    Some(links)
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
        Some(links) => fields.push(links.iter().map(|link| link.name.to_owned()).collect()),
        None => expr
            .children()
            .into_iter()
            .for_each(|child| collect_fields(child, fields)),
    }
}

/// What is known about the values that a rule is evaluated for. Paths are names of fields below `self`,
/// as the rule spells them.
pub trait Facts {
    /// Whether a field is absent.
    fn is_absent(&self, path: &[&str]) -> bool;

    /// Whether a field, and all fields above it, have a value other than null.
    fn is_present(&self, path: &[&str]) -> bool;

    /// Whether a field that is present never has this value.
    fn is_excluded(&self, path: &[&str], value: &Value) -> bool;
}

/// Returns true if a rule holds for every value for which the facts are true.
pub fn holds_with(rule: &str, facts: &dyn Facts) -> bool {
    parse_expression(rule).is_ok_and(|parsed| Reading { facts }.of(&parsed.root) == Known::Bool(true))
}

#[derive(Clone, Copy, PartialEq)]
enum Known {
    Bool(bool),
    /// An empty optional.
    Nothing,
    EmptyList,
    /// Anything, including an error.
    Unknown,
}

struct Reading<'a> {
    facts: &'a dyn Facts,
}

impl Reading<'_> {
    fn of(&self, expr: &Expr) -> Known {
        match &expr.kind {
            Kind::Literal(Literal::Bool(value)) => Known::Bool(*value),
            Kind::List(items) if items.is_empty() => Known::EmptyList,
            Kind::Select { test: true, .. } if self.is_present(expr) => Known::Bool(true),
            Kind::Select { test, .. } => match (self.is_missing(expr), test) {
                (true, true) => Known::Bool(false),
                // Selecting from an empty optional results in one.
                (true, false) if is_through_optional(expr) => Known::Nothing,
                _ => Known::Unknown,
            },
            Kind::Call {
                function,
                target,
                args,
            } => self.of_call(expr, function, target.as_deref(), args),
            Kind::Fold(fold) => match (self.of(&fold.range), &fold.result.kind) {
                (Known::EmptyList, Kind::Ident(name)) if name == ACCUMULATOR => self.of(&fold.init),
                _ => Known::Unknown,
            },
            _ => Known::Unknown,
        }
    }

    fn of_call(&self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Known {
        match (function, target, args) {
            ("_&&_", _, args) => self.of_logic(args, false),
            ("_||_", _, args) => self.of_logic(args, true),
            ("!_", _, [arg]) => match self.of(arg) {
                Known::Bool(value) => Known::Bool(!value),
                _ => Known::Unknown,
            },
            ("_?_:_", _, [condition, yes, no]) => match self.of(condition) {
                Known::Bool(true) => self.of(yes),
                Known::Bool(false) => self.of(no),
                _ => match (self.of(yes), self.of(no)) {
                    (Known::Bool(yes), Known::Bool(no)) if yes == no && self.never_fails(condition) => {
                        Known::Bool(yes)
                    }
                    _ => Known::Unknown,
                },
            },
            ("_==_" | "_!=_", _, [left, right]) => {
                let is_excluded = self.excludes(left, right) || self.excludes(right, left);
                match is_excluded {
                    true => Known::Bool(function == "_!=_"),
                    false => Known::Unknown,
                }
            }
            ("@in", _, [item, list]) => match &list.kind {
                Kind::List(items) if items.iter().all(|(other, _)| self.excludes(item, other)) => {
                    Known::Bool(false)
                }
                _ => Known::Unknown,
            },
            ("_?._", ..) if self.is_missing(expr) => Known::Nothing,
            ("hasValue", Some(target), []) if self.of(target) == Known::Nothing => Known::Bool(false),
            ("orValue", Some(target), [other]) if self.of(target) == Known::Nothing => self.of(other),
            _ => Known::Unknown,
        }
    }

    /// Whether a field never equals a constant.
    fn excludes(&self, field: &Expr, constant: &Expr) -> bool {
        self.is_present(field)
            && demand(field, constant).is_some_and(|(path, value)| {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                self.facts.is_excluded(&path, &value)
            })
    }

    fn is_present(&self, expr: &Expr) -> bool {
        chain(expr).is_some_and(|links| {
            let names: Vec<&str> = links.iter().map(|link| link.name).collect();
            links.iter().all(|link| !link.is_optional) && self.facts.is_present(&names)
        })
    }

    /// Whether a condition has a value, which may be unknown.
    fn never_fails(&self, expr: &Expr) -> bool {
        match &expr.kind {
            Kind::Literal(_) => true,
            Kind::Select {
                operand, test: true, ..
            } => self.is_present(operand),
            Kind::Call { function, args, .. } => {
                let is_safe = |arg: &Expr| match function.as_str() {
                    "_&&_" | "_||_" | "!_" => self.never_fails(arg),
                    "_==_" | "_!=_" => matches!(arg.kind, Kind::Literal(_)) || self.is_present(arg),
                    _ => false,
                };
                args.iter().all(is_safe)
            }
            _ => false,
        }
    }

    /// The operand with the value `decisive` decides, whatever the other ones are.
    fn of_logic(&self, args: &[Expr], decisive: bool) -> Known {
        let known: Vec<Known> = args.iter().map(|arg| self.of(arg)).collect();
        if known.contains(&Known::Bool(decisive)) {
            return Known::Bool(decisive);
        }
        match known.iter().all(|known| *known == Known::Bool(!decisive)) {
            true => Known::Bool(!decisive),
            false => Known::Unknown,
        }
    }

    /// Returns true if `has` is false, or the optional empty, because of an absent field. Fields of
    /// an absent field are an error, unless they are selected through an optional.
    fn is_missing(&self, expr: &Expr) -> bool {
        let Some(links) = chain(expr) else { return false };
        let names: Vec<&str> = links.iter().map(|link| link.name).collect();
        let first = (1..=names.len()).find(|end| self.facts.is_absent(&names[..*end]));
        first.is_some_and(|end| end == names.len() || links[..end].iter().any(|link| link.is_optional))
    }
}

fn is_through_optional(expr: &Expr) -> bool {
    chain(expr).is_some_and(|links| links.iter().any(|link| link.is_optional))
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

    /// `n` is absent, `t` is `x` or `y`, and other fields are optional.
    struct Sample;

    impl Facts for Sample {
        fn is_absent(&self, path: &[&str]) -> bool {
            path.last() == Some(&"n")
        }

        fn is_present(&self, path: &[&str]) -> bool {
            path.iter().all(|name| *name == "t")
        }

        fn is_excluded(&self, _: &[&str], value: &Value) -> bool {
            value != "x" && value != "y"
        }
    }

    #[test]
    fn rules_hold_because_of_known_fields() {
        let check = |rule: &str, expected: bool| {
            assert_eq!(holds_with(rule, &Sample), expected, "{rule}");
        };
        check("!has(self.n) || self.n > 3", true);
        check("has(self.n) ? self.n > 3 : true", true);
        check("!has(self.a.n) || self.a.n == self.b", true);
        check("!(has(self.n) && self.b)", true);
        check("!has(self.?n.x) || false", true);
        check("self.?n.x.orValue(true)", true);
        check("self.?n.orValue([]).all(x, x > 3)", true);
        check("!self.?n.hasValue()", true);
        check("!has(oldSelf.n) || has(self.n)", true);
        check("has(self.n)", false);
        check("self.n > 3", false);
        check("!has(self.n.x)", false);
        check("!has(self.a) || self.a > 3", false);
        check("self.?n.orValue([]).exists(x, x > 3)", false);
        check("!has(self.n) && self.b", false);
        check("has(self.", false);
        check("self.t == 'new' ? has(self.n) : !has(self.n)", true);
        check("self.t != 'new' || self.n > 3", true);
        check("self.t in ['new', 'newer'] ? has(self.a) : true", true);
        check("self.t == 'x' ? !has(self.n) : true", true);
        check("(has(self.t) && !has(self.n)) || has(self.n)", true);
        check("has(self.a) ? !has(self.n) : true", true);
        check("self.t == 'x' ? has(self.n) : true", false);
        check("self.t in ['new', 'x'] ? has(self.a) : true", false);
        // These fail where `a` is absent.
        check("self.a == 'new' ? has(self.n) : true", false);
        check("self.a == 'x' ? !has(self.n) : true", false);
        check("has(self.a.b) ? !has(self.n) : true", false);
    }
}
