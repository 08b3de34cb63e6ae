//! CEL rules. A rule is identified by its expression, as in server-side apply.

use rbuilder_cel::{Facts, follows_from, mentioned_fields};
use rbuilder_schema::{Cel, Schema, SchemaType, cel_name};
use serde_json::Value;

use super::alone::{Alone, with_rule};
use super::{Comparison, Probe};
use crate::path::Path;

impl Comparison {
    pub(super) fn compare_rules(&mut self, old: &Schema, new: &Schema, path: &Path) {
        let decides = |rule: &Cel| {
            (
                rule.rule.trim().to_owned(),
                rule.optional_old_self.unwrap_or_default(),
            )
        };
        let text = |rule: &Cel| rule.rule.trim().to_owned();
        let same = |list: &[Cel], rule: &Cel| list.iter().any(|known| decides(known) == decides(rule));
        let mut removed: Vec<&Cel> = old
            .validations
            .iter()
            .filter(|rule| !same(&new.validations, rule))
            .collect();
        for rule in &new.validations {
            if let Some(known) = old
                .validations
                .iter()
                .find(|known| decides(known) == decides(rule))
            {
                if words(known) != words(rule) {
                    let message = format!("the message of the rule `{}` changes", text(rule));
                    self.add("rule-message-changed", path, message, Probe::Nothing);
                }
                continue;
            }
            let former = removed
                .iter()
                .position(|former| is_successor(former, rule))
                .map(|at| removed.remove(at));
            let (name, message) = match former {
                Some(former) => (
                    "rule-changed",
                    format!("rule `{}` instead of `{}`", text(rule), text(former)),
                ),
                None => ("rule-added", format!("rule `{}`", text(rule))),
            };
            if !self.is_filled_differently && holds_for_old_values(rule, old, new) {
                let message = format!("{message}, which all old values satisfy");
                self.add(name, path, message, Probe::Unaffected);
                continue;
            }
            let probe = Probe::Rule {
                rule: Box::new(rule.clone()),
                node: Box::new(old.clone()),
                alone: Alone::at(path, with_rule(old, new, rule)),
            };
            self.add(name, path, message, probe);
        }
        for rule in removed {
            self.add(
                "rule-removed",
                path,
                format!("no rule `{}`", text(rule)),
                Probe::Nothing,
            );
        }
    }
}

/// Returns true if each value of the old schema satisfies a new rule. The old rules only help if they
/// saw the same fields.
fn holds_for_old_values(rule: &Cel, old: &Schema, new: &Schema) -> bool {
    let is_filled_alike = |path: &Vec<String>| {
        let mut nodes = (old, new);
        for (depth, name) in path.iter().enumerate() {
            // `has` fails for fields of null.
            if nodes.0.default != nodes.1.default || depth > 0 && nodes.0.nullable {
                return false;
            }
            nodes = match (field_of_rule(nodes.0, name), field_of_rule(nodes.1, name)) {
                (Some((_, before)), Some((_, after))) => (before, after),
                // About new fields, there are other facts.
                _ => return true,
            };
        }
        fills_alike(nodes.0, nodes.1)
    };
    let are_comparable = mentioned_fields(&rule.rule).iter().all(is_filled_alike);
    let former = old.validations.iter().filter(|_| are_comparable);
    let former = former.map(|rule| rule.rule.as_str());
    follows_from(&rule.rule, former, &OldValues { old, new })
}

/// Whether a value contains the same fields after defaulting, as far as both schemas have them.
fn fills_alike(old: &Schema, new: &Schema) -> bool {
    let inner = |one: Option<&Schema>, other: Option<&Schema>| match (one, other) {
        (Some(one), Some(other)) => fills_alike(one, other),
        _ => true,
    };
    old == new
        || old.default == new.default
            && inner(old.items.as_deref(), new.items.as_deref())
            && inner(
                old.additional_properties.as_deref(),
                new.additional_properties.as_deref(),
            )
            && old.properties.iter().all(|(name, field)| {
                new.properties
                    .get(name)
                    .is_none_or(|other| fills_alike(field, other))
            })
}

/// What is known about values of the old schema when rules of the new one are evaluated: fields that
/// only the new schema has are absent, required ones are present, and enumerations have no new values.
struct OldValues<'s> {
    old: &'s Schema,
    new: &'s Schema,
}

impl Facts for OldValues<'_> {
    fn is_absent(&self, path: &[&str]) -> bool {
        let mut nodes = (Some(self.old), Some(self.new));
        for name in path {
            let (Some(before), Some(after)) = nodes else {
                return false;
            };
            let (field, known) = (field_of_rule(after, name), field_of_rule(before, name));
            // A default fills in the field.
            if field.is_none_or(|(_, field)| field.default.is_some()) {
                return false;
            }
            let is_open = before.preserve_unknown_fields
                || before.additional_properties.is_some()
                || before.embedded_resource
                || before.schema_type != Some(SchemaType::Object);
            if known.is_none() && is_open {
                return false;
            }
            nodes = (known.map(|(_, known)| known), field.map(|(_, field)| field));
        }
        nodes.0.is_none()
    }

    fn is_present(&self, path: &[&str]) -> bool {
        let mut nodes = (self.old, self.new);
        for name in path {
            // The server drops fields that the new schema lacks.
            let (Some((wire, before)), Some((_, after))) =
                (field_of_rule(nodes.0, name), field_of_rule(nodes.1, name))
            else {
                return false;
            };
            if before.nullable || !nodes.0.required.contains(wire) {
                return false;
            }
            nodes = (before, after);
        }
        true
    }

    fn is_excluded(&self, path: &[&str], value: &Value) -> bool {
        let mut nodes = (self.old, self.new);
        for name in path {
            let Some((wire, before)) = field_of_rule(nodes.0, name) else {
                return false;
            };
            let after = field_of_rule(nodes.1, name).map_or(before, |(_, after)| after);
            // Another default may fill in a new value.
            if before.default != after.default && !nodes.0.required.contains(wire) {
                return false;
            }
            nodes = (before, after);
        }
        let values = &nodes.0.enumeration;
        value.is_string() && !values.is_empty() && !values.contains(value)
    }
}

/// Returns the field with a name as rules spell it, and its name in objects.
fn field_of_rule<'s>(schema: &'s Schema, name: &str) -> Option<(&'s str, &'s Schema)> {
    let fields = schema.properties.iter();
    let mut found = fields.filter(|(wire, _)| cel_name(wire).as_deref() == Some(name));
    found.next().map(|(wire, field)| (&**wire, &**field))
}

/// Returns true if a rule supersedes another one. Rules that report the same are likely to be
/// different versions of one rule.
fn is_successor(former: &Cel, rule: &Cel) -> bool {
    former.rule.trim() == rule.rule.trim()
        || former.message.is_some() && former.message == rule.message && former.field_path == rule.field_path
}

fn words(rule: &Cel) -> (Option<&str>, Option<&str>, Option<&str>, Option<&str>) {
    let reason = rule.reason.map(|reason| reason.as_str());
    (
        rule.message.as_deref(),
        rule.message_expression.as_deref(),
        rule.field_path.as_deref(),
        reason,
    )
}
