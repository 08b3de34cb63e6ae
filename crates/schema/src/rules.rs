//! The CEL rules on a value. Expressions must be unique, because server-side apply uses them as the
//! key of the list.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_diagnostic::Diagnostic;

use crate::{Cel, MarkerName, Schema};

/// Removes exact duplicates, which occur if a type and a field of that type have the same rule.
pub fn unite_rules(rules: &mut Vec<Cel>) {
    if rules.len() < 2 {
        return;
    }
    let mut seen = BTreeSet::new();
    rules.retain(|rule| seen.insert(content_of(rule)));
}

/// Returns the first rule with the same expression as an earlier one that isn't equal, e.g. because
/// the messages differ.
pub fn find_repeated_rule(rules: &[Cel]) -> Option<&Cel> {
    let mut seen: BTreeMap<&str, &Cel> = BTreeMap::new();
    rules.iter().find(|rule| {
        let earlier = seen.insert(&rule.rule, rule);
        earlier.is_some_and(|earlier| earlier != *rule)
    })
}

pub(crate) fn refuse_repeated_rules(
    marker: &'static str,
    schema: &Schema,
    diagnostics: &mut Vec<Diagnostic<MarkerName>>,
) {
    if let Some(rule) = find_repeated_rule(&schema.validations) {
        let diagnostic = Diagnostic::error(Some(marker), describe_repeated_rule(rule));
        diagnostics.push(diagnostic.help(REPEATED_RULE_HELP));
    }
}

pub(crate) fn describe_repeated_rule(rule: &Cel) -> String {
    format!(
        "the rule `{}` is on this value twice, with different contents",
        rule.rule
    )
}

pub(crate) const REPEATED_RULE_HELP: &str = "remove one of them: the type and the field each have it, or a marker such as `immutable`; server-side apply rejects the definition";

fn content_of(rule: &Cel) -> impl Ord + use<> {
    (
        rule.rule.clone(),
        rule.message.clone(),
        rule.message_expression.clone(),
        rule.field_path.clone(),
        rule.reason.map(|reason| reason.as_str()),
        rule.optional_old_self,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rule: &str, message: &str) -> Cel {
        Cel {
            rule: rule.into(),
            message: Some(message.into()),
            ..Cel::default()
        }
    }

    #[test]
    fn drops_equal_rules_and_finds_conflicting_ones() {
        let mut rules = vec![rule("a", "1"), rule("b", "1"), rule("a", "1")];
        unite_rules(&mut rules);
        assert_eq!(rules, [rule("a", "1"), rule("b", "1")]);
        assert_eq!(find_repeated_rule(&rules), None);
        rules.push(rule("a", "2"));
        unite_rules(&mut rules);
        assert_eq!(rules.len(), 3);
        assert_eq!(find_repeated_rule(&rules), Some(&rule("a", "2")));
    }
}
