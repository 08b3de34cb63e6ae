//! Checks CEL rules as the API server does, and reports errors where the rules are written.

use std::collections::BTreeSet;
use std::sync::Arc;

use rbuilder_schema::{Cel, Schema, cel_name};

use super::Version;
use crate::origin;
use crate::schemas::Schemas;

pub(super) fn check_rules(version: &Version<'_>, schemas: &mut Schemas<'_>) {
    let mut said = BTreeSet::new();
    let of_rules = rbuilder_cel::check_rules(&version.schema);
    let of_defaults = rbuilder_cel::check_defaults(&version.schema);
    for diagnostic in of_rules.into_iter().chain(of_defaults) {
        let at = origin::place_of(diagnostic.place.origin).unwrap_or(version.place);
        // Several fields may use a type with rules; report each rule only once.
        if !said.insert((at, diagnostic.message.clone())) {
            continue;
        }
        let place = diagnostic.place.describe();
        let diagnostic = diagnostic.map_message(|message| format!("{message} ({place})"));
        schemas.report().add(diagnostic.at(at));
    }
    let mut found = Vec::new();
    find_unknown_defaults(&version.schema, &mut found);
    for (rule, path) in found {
        let at = origin::place_of(rule.origin).unwrap_or(version.place);
        let message = format!(
            "the rule reads `{path}`, to which serde gives a default that the schema does not have: the API server refuses an object without the field"
        );
        if said.insert((at, message.clone())) {
            let help = format!("write `!has({path}) || …`, or give the field a default in the schema");
            schemas.report().warning(at, message, &help);
        }
    }
}

/// Collects rules that read a field whose default is only known to the program, together with the
/// field's path.
fn find_unknown_defaults<'s>(schema: &'s Schema, found: &mut Vec<(&'s Cel, String)>) {
    for rule in &schema.validations {
        for path in paths_of_self(&rule.rule) {
            let unknown = unknown_field(schema, &path);
            found.extend(
                unknown
                    .filter(|path| !asks_for(&rule.rule, path))
                    .map(|path| (rule, path)),
            );
        }
    }
    let inner = schema.properties.values().chain(&schema.items);
    for inner in inner.chain(&schema.additional_properties) {
        find_unknown_defaults(Arc::as_ref(inner), found);
    }
}

/// E.g. `[a, b]` and `[c]` for `self.a.b > self.c`.
fn paths_of_self(rule: &str) -> Vec<Vec<&str>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = rule.match_indices("self.");
    // This leaves out e.g. `x.self.a` and `myself.a`.
    let starts = starts.filter(|(at, _)| !rule[..*at].ends_with(|c: char| is_word(c) || c == '.'));
    let path = |at: usize| {
        let rest = &rule[at + "self.".len()..];
        let end = rest.find(|c: char| !is_word(c) && c != '.').unwrap_or(rest.len());
        rest[..end].split('.').collect()
    };
    starts.map(|(at, _)| path(at)).collect()
}

fn unknown_field(schema: &Schema, path: &[&str]) -> Option<String> {
    let mut schema = schema;
    for (position, name) in path.iter().enumerate() {
        let mut properties = schema.properties.iter();
        let (_, property) = properties.find(|(property, _)| cel_name(property).as_deref() == Some(name))?;
        if property.lacks_default.0 {
            return Some(format!("self.{}", path[..=position].join(".")));
        }
        schema = property;
    }
    None
}

/// Returns true if the rule guards the field with `has()`, e.g. `!has(self.a) || self.a > 1`.
fn asks_for(rule: &str, path: &str) -> bool {
    let rule: String = rule.split_whitespace().collect();
    rule.contains(&format!("has({path})"))
}
