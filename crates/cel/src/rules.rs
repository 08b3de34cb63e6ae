//! Checks the rules in a CRD's schema, and estimates their cost based on the number of runs.
//!
//! Budgets and cardinality follow `apiextensions-apiserver/pkg/apis/apiextensions/validation`.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rbuilder_schema::{Cel, ListType, Origin, PathEnd, Schema, find_field};

use super::bounds::{MissingBound, advise_bounds};
use super::field_path::follow_field_path;
use super::types::{Decl, MAX_REQUEST, Type};
use super::{CRD_BUDGET, Examined, RULE_BUDGET, ResultType, abbreviate, examine_expression};

/// The location of a rule in the schema and in its source.
#[derive(Clone, Debug, PartialEq)]
pub struct RulePlace {
    /// The path of the value that the rule applies to, e.g. `.spec.items[].name`. Empty for the
    /// entire object.
    pub path: String,
    /// The origin of the marker, from [`Cel::origin`].
    pub origin: Origin,
    /// Byte range in the rule, or in its message expression.
    pub range: Range<usize>,
}

impl RulePlace {
    /// Formats the place as the end of a message.
    pub fn describe(&self) -> String {
        match self.path.as_str() {
            "" => "in a rule on the whole object".to_owned(),
            path => format!("in a rule on `{path}`"),
        }
    }
}

type RuleDiagnostic = rbuilder_diagnostic::Diagnostic<RulePlace>;

/// Checks every rule in the schema of a complete object.
///
/// Diagnostics are in schema order: the rules of a value come first, then those of its fields by
/// name, then those of its items or values. An error about the total cost comes last.
pub fn check_rules(root: &Schema) -> Vec<RuleDiagnostic> {
    if !has_rules(root) {
        return Vec::new();
    }
    let mut walk = Walk::default();
    walk.visit(root, Decl::of(root, true), &Scope::root());
    walk.check_total();
    walk.found
}

/// Returns true if a schema or any of its descendants has rules.
pub(crate) fn has_rules(schema: &Schema) -> bool {
    !schema.validations.is_empty()
        || schema.properties.values().any(|property| has_rules(property))
        || schema.items.as_deref().is_some_and(has_rules)
        || schema.additional_properties.as_deref().is_some_and(has_rules)
}

#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) path: String,
    /// Maximum number of values per object at this path, if bounded.
    times: Option<u64>,
    /// The innermost unbounded list or map around it.
    pub(crate) unbounded: Option<MissingBound>,
    /// The innermost list around it whose items aren't correlatable.
    uncorrelatable: Option<String>,
}

pub(crate) struct Cost {
    pub(crate) once: u64,
    pub(crate) times: u64,
    place: RulePlace,
    /// Abbreviated source.
    rule: String,
}

impl Cost {
    fn total(&self) -> u64 {
        self.once.saturating_mul(self.times)
    }
}

struct Site<'s> {
    rule: &'s Cel,
    schema: &'s Schema,
    scope: &'s Scope,
    place: RulePlace,
}

impl<'s> Site<'s> {
    /// The same rule, but reported at one of its arguments.
    fn at(&self, origin: Origin) -> Site<'s> {
        let place = RulePlace {
            origin,
            ..self.place.clone()
        };
        Site { place, ..*self }
    }
}

#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) found: Vec<RuleDiagnostic>,
    pub(crate) costs: Vec<Cost>,
}

impl Walk {
    pub(crate) fn visit(&mut self, schema: &Schema, decl: Option<Arc<Decl>>, scope: &Scope) {
        for rule in &schema.validations {
            self.check_rule(rule, schema, decl.as_ref(), scope);
        }
        for (name, property) in &schema.properties {
            if has_rules(property) {
                let decl = Decl::of(property, property.embedded_resource);
                let mut inner = scope.clone();
                inner.path = format!("{}.{name}", scope.path);
                self.visit(property, decl, &inner);
            }
        }
        if let Some(items) = schema.items.as_deref().filter(|items| has_rules(items)) {
            let mut inner = scope.inside("[]", schema.max_items, "max_items");
            if schema.list_type != Some(ListType::Map) {
                inner.uncorrelatable = Some(scope.path.clone());
            }
            self.visit(items, Decl::of(items, items.embedded_resource), &inner);
        }
        if let Some(values) = schema
            .additional_properties
            .as_deref()
            .filter(|values| has_rules(values))
        {
            let inner = scope.inside(".*", schema.max_properties, "max_properties");
            self.visit(values, Decl::of(values, values.embedded_resource), &inner);
        }
    }

    fn check_rule(&mut self, rule: &Cel, schema: &Schema, decl: Option<&Arc<Decl>>, scope: &Scope) {
        let site = Site {
            rule,
            schema,
            scope,
            place: RulePlace {
                path: scope.path.clone(),
                origin: rule.origin,
                range: 0..rule.rule.len(),
            },
        };
        let Some(decl) = decl else {
            let message = "this value is not visible to rules: its content has no schema";
            let help = "give it a type, or check it in a webhook";
            return self.error(&site.place, message, help);
        };
        let own = decl.ty();
        let old = match rule.optional_old_self {
            Some(true) => Type::optional(own.clone()),
            _ => own.clone(),
        };
        let variables = [("self", own), ("oldSelf", old)];
        let examined = examine_expression(&rule.rule, &variables, ResultType::Bool, Some(decl));
        self.check_transition(&site, &examined);
        let times = scope.times.unwrap_or(MAX_REQUEST / (decl.min_bytes + 1));
        self.check_cost(&site, "the rule", examined.cost, times);
        self.add(examined, &site.place, "");
        if let Some(expression) = &rule.message_expression {
            let examined = examine_expression(expression, &variables, ResultType::String, Some(decl));
            // The server evaluates at most one message per object: that of the first failing rule.
            let site = site.at(rule.message_expression_origin.or(rule.origin));
            self.check_cost(&site, "`message_expression`", examined.cost, 1);
            self.add(examined, &site.place, "`message_expression`: ");
        }
        if let Some(path) = &rule.field_path
            && let Err(reason) = follow_field_path(path, schema)
        {
            let message = format!("invalid field path `{path}`: {reason}");
            let site = site.at(rule.field_path_origin.or(rule.origin));
            self.error(
                &site.place,
                message,
                suggest_field_path(path, &scope.path, schema),
            );
        }
    }

    fn error(&mut self, place: &RulePlace, message: impl Into<String>, help: impl Into<String>) {
        self.found
            .push(RuleDiagnostic::error(place.clone(), message).help(help));
    }

    fn add(&mut self, examined: Examined, place: &RulePlace, prefix: &str) {
        for mut diagnostic in examined.diagnostics {
            diagnostic.message.insert_str(0, prefix);
            self.found.push(diagnostic.map_place(|range| RulePlace {
                range,
                ..place.clone()
            }));
        }
    }

    fn check_transition(&mut self, site: &Site<'_>, examined: &Examined) {
        let uses_old = examined.used.iter().any(|name| name == "oldSelf");
        if let (true, Some(list)) = (uses_old, &site.scope.uncorrelatable) {
            let message =
                format!("`oldSelf` cannot be used here: old and new items of `{list}` are not correlated");
            let help = "make it a list of type `map` (`list_type = \"map\"`), or put the rule on the list";
            self.error(&site.place, message, help);
        }
        // The marker parser already reports rules that don't mention `oldSelf` at all.
        let mentioned = site.rule.rule.contains("oldSelf");
        if mentioned && !uses_old && site.rule.optional_old_self.is_some() && examined.cost.is_some() {
            let help = "remove it, or compare with `oldSelf`";
            self.error(
                &site.place,
                "`optional_old_self` requires a rule that uses `oldSelf`",
                help,
            );
        }
    }

    fn check_cost(&mut self, site: &Site<'_>, what: &str, once: Option<u64>, times: u64) {
        let Some(once) = once else { return };
        let cost = Cost {
            once,
            times,
            place: site.place.clone(),
            rule: abbreviate(&site.rule.rule),
        };
        if cost.total() > RULE_BUDGET {
            let message = format!(
                "the estimated cost of {what} exceeds the API server's limit by a factor of {}",
                factor(cost.total(), RULE_BUDGET)
            );
            let scope = site.scope;
            let help = advise_bounds(site.schema, &scope.path, scope.unbounded.as_ref());
            self.error(&site.place, message, help);
        }
        self.costs.push(cost);
    }

    fn check_total(&mut self) {
        let total = self
            .costs
            .iter()
            .fold(0u64, |sum, cost| sum.saturating_add(cost.total()));
        // Rules over their own budget were already reported, and fixing those may be enough.
        if total <= CRD_BUDGET || self.costs.iter().any(|cost| cost.total() > RULE_BUDGET) {
            return;
        }
        self.costs.sort_by_key(|cost| Reverse(cost.total()));
        let Some(place) = self.costs.first().map(|cost| cost.place.clone()) else {
            return;
        };
        let shown: Vec<String> = self
            .costs
            .iter()
            .take(4)
            .map(|cost| match cost.place.path.as_str() {
                "" => format!("`{}` on the whole object", cost.rule),
                path => format!("`{}` on `{path}`", cost.rule),
            })
            .collect();
        let message = format!(
            "the estimated cost of all rules of this kind exceeds the API server's limit by a factor of {}",
            factor(total, CRD_BUDGET)
        );
        let help = format!(
            "limit the lists, maps and strings of the most expensive rules: {}",
            shown.join(", ")
        );
        self.error(&place, message, help);
    }
}

impl Scope {
    pub(crate) fn root() -> Scope {
        Scope {
            path: String::new(),
            times: Some(1),
            unbounded: None,
            uncorrelatable: None,
        }
    }

    fn inside(&self, step: &str, limit: Option<u64>, bound: &'static str) -> Scope {
        let unbounded = match limit {
            None => Some(MissingBound {
                path: self.path.clone(),
                bound,
            }),
            Some(_) => self.unbounded.clone(),
        };
        Scope {
            path: format!("{}{step}", self.path),
            times: self.times.and_then(|times| Some(times.saturating_mul(limit?))),
            unbounded,
            uncorrelatable: self.uncorrelatable.clone(),
        }
    }
}

fn factor(cost: u64, budget: u64) -> String {
    let factor = cost as f64 / budget as f64;
    match factor {
        factor if factor > 100.0 => "more than 100".to_owned(),
        factor if factor < 1.5 => format!("{factor:.2}"),
        factor => format!("{factor:.1}"),
    }
}

fn suggest_field_path(path: &str, scope: &str, schema: &Schema) -> String {
    if let Some(relative) = path.strip_prefix(scope)
        && !scope.is_empty()
        && follow_field_path(relative, schema).is_ok()
    {
        return format!("write `{relative}`: the path is relative to the value that the rule applies to");
    }
    match find_field(schema, path) {
        PathEnd::Missing { near: Some(near), .. } => format!("did you mean `{near}`?"),
        _ => "write it relative to the value that the rule applies to, such as `.size` in a rule on `.spec`"
            .to_owned(),
    }
}
