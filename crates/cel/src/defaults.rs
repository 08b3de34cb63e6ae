//! Checks schema defaults against rules: the API server rejects a CRD if one of its defaults
//! violates a rule.
//!
//! Nested defaults aren't applied before the rules of the enclosing value run, as in
//! `apiextensions-apiserver/pkg/apiserver/schema/defaulting`.

use rbuilder_schema::{Cel, Schema};
use serde_json::Value;

use super::evaluate::{self, Output, Plan, Stop, Values};
use super::parser::parse_expression;
use super::rules::{RulePlace, has_rules};
use super::types::{Decl, Type};
use super::{abbreviate, check};

type RuleDiagnostic = rbuilder_diagnostic::Diagnostic<RulePlace>;

/// Checks every default in the schema of a complete object against the rules on the default and on
/// values inside it.
///
/// Skips rules that don't type-check, which are reported elsewhere, and rules that the evaluator
/// doesn't support.
pub fn check_defaults(root: &Schema) -> Vec<RuleDiagnostic> {
    let mut found = Vec::new();
    if has_rules(root) {
        visit(root, "", &mut found);
    }
    found
}

/// `additionalProperties` are skipped, as defaults aren't allowed there.
fn visit(schema: &Schema, path: &str, found: &mut Vec<RuleDiagnostic>) {
    if let Some(default) = &schema.default {
        let default = Default { path, whole: default };
        default.check_value(default.whole, schema, path, true, found);
    }
    for (name, property) in &schema.properties {
        visit(property, &format!("{path}.{name}"), found);
    }
    if let Some(items) = &schema.items {
        visit(items, &format!("{path}[]"), found);
    }
}

struct Default<'d> {
    path: &'d str,
    whole: &'d Value,
}

impl Default<'_> {
    fn check_value(
        &self,
        value: &Value,
        schema: &Schema,
        path: &str,
        is_correlated: bool,
        found: &mut Vec<RuleDiagnostic>,
    ) {
        // Rules on an embedded object may read fields that its schema doesn't declare.
        if schema.embedded_resource || value.is_null() {
            return;
        }
        for rule in &schema.validations {
            let verdict = judge(rule, value, schema, is_correlated);
            found.extend(self.describe(rule, verdict, path));
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let property = schema.properties.get(name.as_str());
                    if let Some(inner) = property.or(schema.additional_properties.as_ref()) {
                        let step = if property.is_some() { name } else { "*" };
                        self.check_value(value, inner, &format!("{path}.{step}"), is_correlated, found);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    if let Some(inner) = &schema.items {
                        // Items aren't correlated, as they have no old value.
                        self.check_value(item, inner, &format!("{path}[]"), false, found);
                    }
                }
            }
            _ => {}
        }
    }

    fn describe(&self, rule: &Cel, verdict: Verdict, path: &str) -> Option<RuleDiagnostic> {
        let reason = match verdict {
            Verdict::Holds | Verdict::Unknown => return None,
            Verdict::Fails => "is false".to_owned(),
            Verdict::Stops(reason) => format!("fails with \"{reason}\""),
        };
        let place = RulePlace {
            path: path.to_owned(),
            origin: rule.origin,
            range: 0..rule.rule.len(),
        };
        let rule = abbreviate(&rule.rule);
        let message = format!(
            "the rule `{rule}` {reason} for the default {} of `{}`",
            self.whole, self.path
        );
        let help = match reason.contains("no such key") {
            true => {
                "write all fields that the rule reads in the default: the API server adds no defaults inside of a default"
            }
            false => "change the default or the rule: the API server rejects the definition",
        };
        Some(RuleDiagnostic::error(place, message).help(help))
    }
}

fn judge(rule: &Cel, value: &Value, schema: &Schema, is_correlated: bool) -> Verdict {
    if rule.rule.contains("oldSelf") && !is_correlated {
        return Verdict::Unknown;
    }
    let Some(own) = Decl::of(schema, false).map(|decl| decl.ty()) else {
        return Verdict::Unknown;
    };
    let is_optional = rule.optional_old_self == Some(true);
    let old = match is_optional {
        true => Type::optional(own.clone()),
        false => own.clone(),
    };
    let Ok(mut parsed) = parse_expression(&rule.rule) else {
        return Verdict::Unknown;
    };
    let variables = [("self", own), ("oldSelf", old)];
    let checked = check::check_expression(&mut parsed.root, parsed.nodes, &variables);
    if checked.diagnostics.iter().any(super::Diagnostic::is_error) || checked.result != Type::Bool {
        return Verdict::Unknown;
    }
    let Ok(plan) = Plan::new(parsed.root, checked) else {
        return Verdict::Unknown;
    };
    // On create, transition rules only run if they set `optionalOldSelf`.
    let olds: &[Option<&Value>] = match is_optional {
        true => &[Some(value), None],
        false => &[Some(value)],
    };
    let verdicts = olds.iter().map(|old| {
        let values = Values {
            own: value,
            old: *old,
            schema,
            is_object: false,
        };
        match evaluate::run(&plan, values, is_optional).result {
            Ok(Output::Bool(true)) => Verdict::Holds,
            Ok(Output::Bool(false)) => Verdict::Fails,
            Err(Stop::Error(reason)) => Verdict::Stops(reason),
            _ => Verdict::Unknown,
        }
    });
    let mut broken = verdicts.filter(|verdict| *verdict != Verdict::Holds);
    broken.next().unwrap_or(Verdict::Holds)
}

#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    Holds,
    Fails,
    Stops(String),
    Unknown,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `expected` is a part of the message, or `None` if nothing should be reported.
    fn check(schema: Value, rule: &str, default: Value, expected: Option<&str>) {
        let mut field = schema;
        field["default"] = default;
        field["x-kubernetes-validations"] = json!([{ "rule": rule }]);
        let root = json!({ "type": "object", "properties": {
            "spec": { "type": "object", "properties": { "field": field } },
        }});
        let root: Schema = serde_json::from_value(root).expect("a schema");
        let found: Vec<String> = check_defaults(&root)
            .into_iter()
            .map(|found| found.message)
            .collect();
        let expected: Vec<String> = expected
            .map(|what| {
                let default = &root.properties["spec"].properties["field"].default;
                let default = default.as_ref().map(Value::to_string).unwrap_or_default();
                format!("the rule `{rule}` {what} for the default {default} of `.spec.field`")
            })
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{rule}");
    }

    const FALSE: Option<&str> = Some("is false");

    #[test]
    fn rules_on_numbers() {
        let check = |rule, default, expected| check(json!({ "type": "integer" }), rule, default, expected);
        check("self < 3", json!(5), FALSE);
        check("self < 3", json!(2), None);
        check("self * 2 == 10 && -self < 0", json!(5), None);
        check("self / 0 == 1", json!(5), Some("fails with \"division by zero\""));
        check("self / 0 == 1 || self == 5", json!(5), None);
        check("self / 0 == 1 && self == 6", json!(5), FALSE);
        check("self in [1, 2]", json!(5), FALSE);
        check("self == oldSelf", json!(5), None);
        check("self > oldSelf", json!(5), FALSE);
        check("string(self) == '5'", json!(5), None);
        check("double(self) < 4.5", json!(5), FALSE);
    }

    #[test]
    fn rules_on_strings() {
        let check = |rule, default, expected| check(json!({ "type": "string" }), rule, default, expected);
        check("self.startsWith('a')", json!("b"), FALSE);
        check("self.matches('^a+$')", json!("aa"), None);
        check("self.matches('^a+$')", json!("ab"), FALSE);
        check("size(self) == 2 && self.size() == 2", json!("äö"), None);
        check("self.split(',').all(part, part != '')", json!("a,,b"), FALSE);
        check("self + 'b' == 'ab'", json!("a"), None);
        check("isURL(self)", json!("a"), FALSE);
        check("quantity(self).isLessThan(quantity('1'))", json!("5"), FALSE);
        // The evaluator doesn't support named time zones.
        let zone = "timestamp(self).getHours('Europe/Rome') == 1";
        check(zone, json!("2024-01-01T00:00:00Z"), None);
        // The left operand fails, but `false` decides.
        let both = "timestamp(self).getDate('a')>0 && false";
        check(both, json!("2024-01-01T00:00:00Z"), FALSE);
    }

    #[test]
    fn rules_on_objects() {
        let limits = json!({ "type": "object", "properties": {
            "last": { "type": "integer", "default": 3 }, "daily": { "type": "integer", "default": 7 },
            "name-of": { "type": "string" },
        }});
        let check = |rule, default, expected| check(limits.clone(), rule, default, expected);
        check(
            "self.daily >= self.last",
            json!({}),
            Some("fails with \"no such key: daily\""),
        );
        check("!has(self.daily) || self.daily >= self.last", json!({}), None);
        check("self.daily >= self.last", json!({ "daily": 1, "last": 2 }), FALSE);
        check("self.daily >= self.last", json!({ "daily": 2, "last": 2 }), None);
        check("has(self.name__dash__of)", json!({ "daily": 2 }), FALSE);
        check("has(self.name__dash__of)", json!({ "name-of": "a" }), None);
    }

    #[test]
    fn rules_on_lists_and_maps() {
        let of_lists = json!({ "type": "array", "items": { "type": "integer" } });
        let list = |rule, expected| check(of_lists.clone(), rule, json!([1, 2, 3]), expected);
        list("self.all(item, item < 3)", FALSE);
        list("self.exists(item, item == 3)", None);
        list("self.exists_one(item, item > 1)", FALSE);
        list("self.map(item, item * 2) == [2, 4, 6]", None);
        list("self.filter(item, item > 1).size() == 2", None);
        list("self[3] == 1", Some("fails with \"index out of bounds: 3\""));
        list("self.all(index, item, item == index + 1)", None);
        list("self.sum() == 6 && self.max() == 3 && self.isSorted()", None);
        let set = json!({ "type": "array", "items": { "type": "integer" }, "x-kubernetes-list-type": "set" });
        check(set.clone(), "self == [3, 2, 1]", json!([1, 2, 3]), None);
        check(set.clone(), "self == [3, 2, 4]", json!([1, 2, 3]), FALSE);
        check(set.clone(), "(self + [1]).size() == 3", json!([1, 2, 3]), None);
        check(set, "self.all(item, item > 1)", json!([1, 2, 3]), FALSE);
        let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        let map = |rule, expected| check(map.clone(), rule, json!({ "a": "b" }), expected);
        map("self.all(key, self[key] == 'b')", None);
        map("'c' in self", FALSE);
        map("self.all(key, size(key) > 1)", FALSE);
    }

    #[test]
    fn checks_rules_on_values_inside_a_default() {
        let rule = json!([{ "rule": "self > 0" }]);
        let root = json!({ "type": "object", "properties": { "spec": {
            "type": "object", "default": { "list": [1, 0] }, "properties": {
                "list": { "type": "array", "items": { "type": "integer", "x-kubernetes-validations": rule } },
            },
        }}});
        let root: Schema = serde_json::from_value(root).expect("a schema");
        let found = check_defaults(&root);
        let places: Vec<&str> = found.iter().map(|found| found.place.path.as_str()).collect();
        assert_eq!(places, [".spec.list[]"]);
    }
}
