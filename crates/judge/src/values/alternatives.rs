//! `allOf`, `anyOf`, `oneOf` and `not`.

use rbuilder_schema::Schema;
use serde_json::Value;

use super::{Checker, Outcome};
use crate::go;

impl Checker<'_> {
    pub(super) fn check_alternatives(&mut self, value: &Value, schema: &Schema, path: &str) -> Outcome {
        let mut outcome = Outcome::default();
        if !schema.any_of.is_empty() {
            self.check_any_of(value, &schema.any_of, path, &mut outcome);
        }
        if !schema.one_of.is_empty() {
            self.check_one_of(value, &schema.one_of, path, &mut outcome);
        }
        if !schema.all_of.is_empty() {
            self.check_all_of(value, &schema.all_of, path, &mut outcome);
        }
        if let Some(not) = &schema.not
            && self.check(value, not, path, None).is_valid()
        {
            outcome.add(self.general(format!("{} must not validate the schema (not)", go::quote(path))));
        }
        outcome.passed += 1;
        outcome
    }

    fn check_any_of(&mut self, value: &Value, parts: &[Schema], path: &str, outcome: &mut Outcome) {
        let mut best: Option<Outcome> = None;
        for part in parts {
            let result = self.check(value, part, path, None);
            if result.is_valid() {
                outcome.merge(result);
                return;
            }
            keep_better(&mut best, result);
        }
        outcome.add(self.general(format!(
            "{} must validate at least one schema (anyOf)",
            go::quote(path)
        )));
        outcome.merge(best.unwrap_or_default());
    }

    fn check_one_of(&mut self, value: &Value, parts: &[Schema], path: &str, outcome: &mut Outcome) {
        let (mut best, mut first, mut valid) = (None, None, 0);
        for part in parts {
            let result = self.check(value, part, path, None);
            if result.is_valid() {
                valid += 1;
                best = None;
                first.get_or_insert(result);
            } else if valid == 0 {
                keep_better(&mut best, result);
            }
        }
        let why = match valid {
            0 => "Found none valid".to_owned(),
            1 => {
                outcome.merge(first.unwrap_or_default());
                return;
            }
            valid => format!("Found {valid} valid alternatives"),
        };
        outcome.add(self.general(format!(
            "{} must validate one and only one schema (oneOf). {why}",
            go::quote(path)
        )));
        outcome.merge(best.unwrap_or_default());
    }

    fn check_all_of(&mut self, value: &Value, parts: &[Schema], path: &str, outcome: &mut Outcome) {
        let mut valid = 0;
        for part in parts {
            let result = self.check(value, part, path, None);
            valid += usize::from(result.is_valid());
            outcome.merge(result);
        }
        if valid != parts.len() {
            let why = if valid == 0 { ". None validated" } else { "" };
            outcome.add(self.general(format!(
                "{} must validate all the schemas (allOf){why}",
                go::quote(path)
            )));
        }
    }
}

// The first one wins ties.
fn keep_better(best: &mut Option<Outcome>, result: Outcome) {
    if best.as_ref().is_none_or(|best| result.passed > best.passed) {
        *best = Some(result);
    }
}
