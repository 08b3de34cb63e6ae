//! Every rule of a CRD's schema: read, typed, and priced by how often it can run.

use std::ops::Range;
use std::sync::Arc;

use rbuilder_schema::{Cel, ListType, Origin, Schema, SchemaType};

use super::types::{Decl, MAX_REQUEST, Type};
use super::{CRD_BUDGET, Examined, RULE_BUDGET, Wanted, examine};

/// The place of a rule, in the schema and in the source it was written in.
#[derive(Clone, Debug, PartialEq)]
pub struct RulePlace {
    /// The path of the value that the rule is on, as `.spec.items[].name`; empty for the whole object.
    pub path: String,
    /// The place of the marker, as [`Cel::origin`] has it.
    pub origin: Origin,
    /// The bytes of the rule, or of its message expression.
    pub range: Range<usize>,
}

impl RulePlace {
    /// Returns the path as the end of a message.
    pub fn describe(&self) -> String {
        match self.path.as_str() {
            "" => "in a rule of the whole object".to_owned(),
            path => format!("in a rule of `{path}`"),
        }
    }
}

type RuleDiagnostic = rbuilder_diagnostic::Diagnostic<RulePlace>;

/// Checks every rule of the schema of a whole object.
///
/// The order is that of the schema: a value's own rules, its fields by name, its items or values; what only all rules
/// together show comes last.
pub fn check_rules(root: &Schema) -> Vec<RuleDiagnostic> {
    if !has_rules(root) {
        return Vec::new();
    }
    let mut walk = Walk {
        found: Vec::new(),
        costs: Vec::new(),
    };
    walk.visit(root, Decl::of(root, true), &Scope::root());
    walk.total();
    walk.found
}

fn has_rules(schema: &Schema) -> bool {
    !schema.validations.is_empty()
        || schema.properties.values().any(|property| has_rules(property))
        || schema.items.as_deref().is_some_and(has_rules)
        || schema.additional_properties.as_deref().is_some_and(has_rules)
}

/// What the values around a rule say about it.
#[derive(Clone)]
struct Scope {
    path: String,
    /// How often the value can be there in one object; nothing where no bound says so.
    times: Option<u64>,
    /// The nearest list or map without a bound, with the bound it lacks.
    unbounded: Option<(String, &'static str)>,
    /// The list within which nothing tells old and new items apart.
    uncorrelatable: Option<String>,
}

/// The most that a rule can cost in one object.
struct Cost {
    cost: u64,
    place: RulePlace,
    /// The beginning of the rule.
    rule: String,
}

struct Walk {
    found: Vec<RuleDiagnostic>,
    /// The cost of each rule.
    costs: Vec<Cost>,
}

impl Walk {
    fn visit(&mut self, schema: &Schema, decl: Option<Arc<Decl>>, scope: &Scope) {
        for rule in &schema.validations {
            self.rule(rule, schema, decl.as_ref(), scope);
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

    fn rule(&mut self, rule: &Cel, schema: &Schema, decl: Option<&Arc<Decl>>, scope: &Scope) {
        let place = RulePlace {
            path: scope.path.clone(),
            origin: rule.origin,
            range: 0..rule.rule.len(),
        };
        let Some(decl) = decl else {
            let message = "rules cannot see this value: its content has no schema";
            let help = "give it a type, or leave the check to a webhook";
            return self.error(&place, message, help);
        };
        let own = decl.ty();
        let old = match rule.optional_old_self {
            Some(true) => Type::optional(own.clone()),
            _ => own.clone(),
        };
        let variables = [("self", own), ("oldSelf", old)];
        let examined = examine(&rule.rule, &variables, Wanted::Bool, Some(decl));
        self.transition(rule, &examined, scope, &place);
        self.cost("rule", rule, &examined, schema, decl, scope, &place);
        self.take(examined, &place, "");
        if let Some(expression) = &rule.message_expression {
            let examined = examine(expression, &variables, Wanted::String, Some(decl));
            self.cost("message_expression", rule, &examined, schema, decl, scope, &place);
            self.take(examined, &place, "`message_expression`: ");
        }
        if let Some(path) = &rule.field_path
            && let Err(reason) = follow(path, schema)
        {
            let message = format!("the field path `{path}` leads nowhere: {reason}");
            let help = "write it from the value that the rule is on, as in `.spec.size`";
            self.error(&place, message, help);
        }
    }

    fn error(&mut self, place: &RulePlace, message: impl Into<String>, help: impl Into<String>) {
        self.found
            .push(RuleDiagnostic::error(place.clone(), message).help(help));
    }

    fn take(&mut self, examined: Examined, place: &RulePlace, prefix: &str) {
        for mut diagnostic in examined.diagnostics {
            diagnostic.message.insert_str(0, prefix);
            self.found.push(diagnostic.map_place(|range| RulePlace {
                range,
                ..place.clone()
            }));
        }
    }

    /// Rules about the old value need one.
    fn transition(&mut self, rule: &Cel, examined: &Examined, scope: &Scope, place: &RulePlace) {
        let uses_old = examined.used.iter().any(|name| name == "oldSelf");
        if let (true, Some(list)) = (uses_old, &scope.uncorrelatable) {
            let message =
                format!("`oldSelf` is not known here: nothing tells which item of `{list}` was which before");
            let help = "make it a list of type `map` (`list_type = \"map\"`), or put the rule on the list";
            self.error(place, message, help);
        }
        // The marker's reader has seen that the word is not there at all.
        let mentioned = rule.rule.contains("oldSelf");
        if mentioned && !uses_old && rule.optional_old_self.is_some() && examined.cost.is_some() {
            let help = "remove it, or compare with `oldSelf`";
            self.error(place, "`optional_old_self` needs a rule about `oldSelf`", help);
        }
    }

    fn cost(
        &mut self,
        what: &str,
        rule: &Cel,
        examined: &Examined,
        schema: &Schema,
        decl: &Decl,
        scope: &Scope,
        place: &RulePlace,
    ) {
        let Some(once) = examined.cost else { return };
        let times = match what {
            // A message is made once, for the first rule that fails.
            "message_expression" => 1,
            _ => scope.times.unwrap_or(MAX_REQUEST / (decl.least_bytes + 1)),
        };
        let cost = once.saturating_mul(times);
        self.costs.push(Cost {
            cost,
            place: place.clone(),
            rule: super::first_words(&rule.rule),
        });
        if cost <= RULE_BUDGET {
            return;
        }
        let factor = shown_factor(cost, RULE_BUDGET);
        let message = match what {
            "rule" => format!("the rule can cost {factor} times what the API server allows one rule"),
            what => format!("`{what}` can cost {factor} times what the API server allows"),
        };
        let help = advice(schema, scope);
        self.error(place, message, help);
    }

    fn total(&mut self) {
        let total = self
            .costs
            .iter()
            .fold(0u64, |sum, rule| sum.saturating_add(rule.cost));
        // Rules that are too dear each have been complained about.
        if total <= CRD_BUDGET || self.costs.iter().any(|rule| rule.cost > RULE_BUDGET) {
            return;
        }
        self.costs.sort_by_key(|rule| std::cmp::Reverse(rule.cost));
        let dearest: Vec<String> = self
            .costs
            .iter()
            .take(4)
            .map(|each| format!("`{}` on `{}`", each.rule, at(&each.place.path)))
            .collect();
        let Some(place) = self.costs.first().map(|dearest| dearest.place.clone()) else {
            return;
        };
        let factor = shown_factor(total, CRD_BUDGET);
        let message =
            format!("the rules of this kind can cost {factor} times what the API server allows all of them");
        let help = format!(
            "bound the lists, maps and texts of the dearest: {}",
            dearest.join(", ")
        );
        self.error(&place, message, help);
    }
}

impl Scope {
    fn root() -> Scope {
        Scope {
            path: String::new(),
            times: Some(1),
            unbounded: None,
            uncorrelatable: None,
        }
    }

    /// The scope of the items of a list or the values of a map.
    fn inside(&self, step: &str, most: Option<u64>, bound: &'static str) -> Scope {
        let unbounded = match most {
            None => Some((self.path.clone(), bound)),
            Some(_) => self.unbounded.clone(),
        };
        Scope {
            path: format!("{}{step}", self.path),
            times: self.times.and_then(|times| Some(times.saturating_mul(most?))),
            unbounded,
            uncorrelatable: self.uncorrelatable.clone(),
        }
    }
}

/// A path as a message shows it.
fn at(path: &str) -> &str {
    if path.is_empty() { "the whole object" } else { path }
}

fn shown_factor(cost: u64, budget: u64) -> String {
    let factor = cost as f64 / budget as f64;
    match factor {
        factor if factor > 100.0 => "more than 100".to_owned(),
        factor if factor < 1.5 => format!("{factor:.2}"),
        factor => format!("{factor:.1}"),
    }
}

/// Which bounds to add.
fn advice(schema: &Schema, scope: &Scope) -> String {
    let mut missing = Vec::new();
    if let Some((path, bound)) = &scope.unbounded {
        missing.push(format!("`{bound}` to `{path}`"));
    }
    unbounded(
        schema,
        at(&scope.path).trim_end_matches("the whole object"),
        &mut missing,
    );
    missing.truncate(4);
    if missing.is_empty() {
        return "make the rule simpler, or lower the bounds of the lists, maps and texts it goes through"
            .to_owned();
    }
    format!(
        "the size of what it goes through has no bound: add {}",
        missing.join(", ")
    )
}

/// The lists, maps and texts in a value that have no bound.
fn unbounded(schema: &Schema, path: &str, missing: &mut Vec<String>) {
    let shown = if path.is_empty() { "." } else { path };
    match schema.schema_type {
        Some(SchemaType::Array) if schema.max_items.is_none() => {
            missing.push(format!("`max_items` to `{shown}`"))
        }
        Some(SchemaType::String) if schema.max_length.is_none() && is_free(schema) => {
            missing.push(format!("`max_length` to `{shown}`"));
        }
        Some(SchemaType::Object)
            if schema.additional_properties.is_some() && schema.max_properties.is_none() =>
        {
            missing.push(format!("`max_properties` to `{shown}`"));
        }
        _ => {}
    }
    if let Some(items) = &schema.items {
        unbounded(items, &format!("{path}[]"), missing);
    }
    if let Some(values) = &schema.additional_properties {
        unbounded(values, &format!("{path}.*"), missing);
    }
    for (name, property) in &schema.properties {
        if missing.len() > 8 {
            return;
        }
        unbounded(property, &format!("{path}.{name}"), missing);
    }
}

/// Whether a text can be of any length.
fn is_free(schema: &Schema) -> bool {
    schema.enumeration.is_empty()
        && !matches!(schema.format.as_deref(), Some("date" | "date-time" | "duration"))
}

/// Follows a field path: `.name`, and `['name']` for a name with special letters or a key of a map.
fn follow(path: &str, schema: &Schema) -> Result<(), String> {
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name = if let Some(after) = rest.strip_prefix("['") {
            let end = after.find("']").ok_or("a bracket does not end in `']`")?;
            rest = &after[end + 2..];
            &after[..end]
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            rest = &after[end..];
            &after[..end]
        } else {
            return Err("a step is `.name` or `['name']`".to_owned());
        };
        schema = match (
            schema.properties.get(name),
            schema.additional_properties.as_deref(),
        ) {
            (Some(property), _) => property,
            (None, Some(values)) if schema.properties.is_empty() => values,
            _ => return Err(format!("there is no field `{name}`")),
        };
    }
    Ok(())
}

/// Each rule with its path, what was found about it, and how often it can run.
#[cfg(test)]
pub(crate) fn examine_all(root: &Schema) -> Vec<(String, String, Examined, u64)> {
    fn visit(schema: &Schema, is_root: bool, scope: &Scope, all: &mut Vec<(String, String, Examined, u64)>) {
        let decl = Decl::of(schema, is_root || schema.embedded_resource);
        for rule in &schema.validations {
            let decl = decl.as_ref().expect("a value that rules can see");
            let variables = [("self", decl.ty()), ("oldSelf", decl.ty())];
            let examined = examine(&rule.rule, &variables, Wanted::Bool, Some(decl));
            let times = scope.times.unwrap_or(MAX_REQUEST / (decl.least_bytes + 1));
            all.push((scope.path.clone(), rule.rule.clone(), examined, times));
        }
        for (name, property) in &schema.properties {
            let mut inner = scope.clone();
            inner.path = format!("{}.{name}", scope.path);
            visit(property, false, &inner, all);
        }
        if let Some(items) = schema.items.as_deref() {
            visit(
                items,
                false,
                &scope.inside("[]", schema.max_items, "max_items"),
                all,
            );
        }
        if let Some(values) = schema.additional_properties.as_deref() {
            visit(
                values,
                false,
                &scope.inside(".*", schema.max_properties, "max_properties"),
                all,
            );
        }
    }
    let mut all = Vec::new();
    visit(root, true, &Scope::root(), &mut all);
    all
}
