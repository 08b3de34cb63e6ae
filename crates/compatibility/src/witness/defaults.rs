//! Searches for objects that a changed default makes invalid.

use rbuilder_schema::{Cel, Schema, cel_name};
use serde_json::{Value, json};

use super::literals::literals;
use super::make::Maker;
use super::{Candidate, Goal, MOST_ACCEPTED, Outcome, Pair, ROUNDS};
use crate::path::Step;

/// Rounds for each rule that may read the default.
const DEFAULT_ROUNDS: u64 = 60;

impl Pair<'_> {
    /// Searches for an object without the field at the goal's path that is refused with the new
    /// default. Otherwise, the outcome has an object that is read differently. `defaults` are the
    /// old and the new one.
    pub(crate) fn search_default(&self, goal: &Goal<'_>, defaults: &[Value]) -> Outcome {
        let mut outcome = Outcome::default();
        for round in 0..=ROUNDS {
            let dense = Maker::dense(round, &self.texts);
            for mut maker in [self.maker(round, 0), dense] {
                if self.examine_default(goal, &mut maker, false, &mut outcome) {
                    return outcome;
                }
            }
        }
        let rules: Vec<(&Cel, Vec<Value>)> = rules_around(&self.old.definition().schema, &goal.path.0)
            .into_iter()
            .map(|rule| (rule, literals(rule).into_iter().chain(near(defaults)).collect()))
            .collect();
        for round in 0..DEFAULT_ROUNDS {
            for (rule, pool) in &rules {
                let mut maker = Maker::for_rule(round, &rule.rule, pool, &self.texts);
                let is_optional = rule.optional_old_self == Some(true);
                let is_transition = rule.rule.contains("oldSelf") && !(is_optional && round % 2 == 1);
                if self.examine_default(goal, &mut maker, is_transition, &mut outcome) {
                    return outcome;
                }
            }
        }
        outcome
    }

    /// Examines an object without the field. If a rule compares with the stored object, the same
    /// object is written a second time, so that only the default can differ. Returns true if the
    /// search is over.
    fn examine_default(
        &self,
        goal: &Goal<'_>,
        maker: &mut Maker<'_>,
        is_transition: bool,
        outcome: &mut Outcome,
    ) -> bool {
        let object = self.make(maker, goal.path, &Candidate::Absent);
        let stored = is_transition.then_some(&object);
        self.examine(goal, &object, stored, outcome) || outcome.accepted >= MOST_ACCEPTED
    }
}

/// The rules that may read the value at a path, from the outermost.
fn rules_around<'s>(schema: &'s Schema, path: &[Step]) -> Vec<&'s Cel> {
    let Some((step, rest)) = path.split_first() else {
        return schema.validations.iter().collect();
    };
    let mut rules: Vec<&Cel> = schema
        .validations
        .iter()
        .filter(|rule| may_read(&rule.rule, step))
        .collect();
    let inner = match step {
        Step::Field(name) => schema
            .properties
            .get(name.as_str())
            .or(schema.additional_properties.as_ref()),
        Step::Items => schema.items.as_ref(),
        Step::Values => schema.additional_properties.as_ref(),
    };
    rules.extend(inner.into_iter().flat_map(|inner| rules_around(inner, rest)));
    rules
}

/// Returns false if a rule only selects other fields.
fn may_read(rule: &str, step: &Step) -> bool {
    let Step::Field(name) = step else { return true };
    let names_field = cel_name(name).is_some_and(|name| rule.contains(&name));
    names_field || rule.split("self").skip(1).any(|rest| !rest.starts_with('.'))
}

/// The scalars in defaults, and their neighbors, with which rules may compare other fields.
fn near(defaults: &[Value]) -> Vec<Value> {
    let values = defaults.iter().flat_map(|default| match default {
        Value::Object(fields) => near(&fields.values().cloned().collect::<Vec<_>>()),
        Value::Array(items) => near(items),
        Value::Number(number) => match number.as_i64() {
            Some(number) => [-1, 0, 1].map(|by| json!(number.saturating_add(by))).into(),
            None => vec![default.clone()],
        },
        other => vec![other.clone()],
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_may_read_fields_that_they_name_and_whole_values() {
        let field = Step::Field("mode".to_owned());
        assert!(may_read("self.mode > 1", &field));
        assert!(may_read("size(self) > 1", &field));
        assert!(may_read("self.map(key, key) == []", &Step::Values));
        assert!(!may_read("self.size > 1 && has(self.size)", &field));
    }

    #[test]
    fn scalars_of_defaults_come_with_their_neighbours() {
        let found = near(&[json!({ "a": [3], "b": "x" })]);
        assert_eq!(found, [json!(2), json!(3), json!(4), json!("x")]);
    }
}
