//! Shrinks failing histories, by dropping perturbations and simplifying random values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Search;
use crate::history::{History, Step};
use crate::oracle::Violation;
use crate::run::{Expected, Outcome};
use crate::simpler::simpler;
use crate::timeline::Event;

/// Limits the number of runs; complex values have many simpler ones.
const MOST_TRIES: usize = 100;

#[derive(Clone)]
pub(super) struct Reported {
    pub(super) history: History,
    pub(super) expected: Expected,
    pub(super) violation: Violation,
    pub(super) events: Vec<Event>,
}

impl Search<'_> {
    pub(super) fn shrink(&mut self, reported: Reported) -> Reported {
        let mut best = self.remove_perturbations(reported);
        for number in 0..best.history.steps.len() {
            if self.is_random(&best.history.steps[number]) {
                best = self.simplify(best, number);
            }
        }
        best
    }

    fn remove_perturbations(&mut self, mut best: Reported) -> Reported {
        let mut number = 0;
        while number < best.history.perturbations.len() && best.history.perturbations.len() > 1 {
            let mut smaller = best.history.clone();
            smaller.perturbations.remove(number);
            match self.reports(&smaller, &best.expected, &best.violation) {
                Some(found) => best = found,
                None => number += 1,
            }
        }
        best
    }

    fn is_random(&self, step: &Step) -> bool {
        let Step::ApplyWith(number, changes) = step else {
            return false;
        };
        self.setting.declarations[*number].random.contains(changes)
    }

    /// Greedily simplifies the values of a step as long as the history still fails.
    fn simplify(&mut self, mut best: Reported, step: usize) -> Reported {
        let mut tries = 0;
        'simplified: loop {
            let Step::ApplyWith(number, changes) = best.history.steps[step].clone() else {
                return best;
            };
            for changes in simpler_changes(&changes) {
                if self.setting.refusal(number, &changes).is_some() {
                    continue;
                }
                tries += 1;
                if tries > MOST_TRIES {
                    return best;
                }
                let mut smaller = best.history.clone();
                smaller.steps[step] = Step::ApplyWith(number, changes.clone());
                let expected = self.expect_with(&best.expected, step, number, changes);
                if let Some(found) = self.reports(&smaller, &expected, &best.violation) {
                    best = found;
                    continue 'simplified;
                }
            }
            return best;
        }
    }

    /// Adapts the expected states to different values in a step.
    fn expect_with(
        &mut self,
        expected: &Expected,
        step: usize,
        number: usize,
        changes: BTreeMap<String, Value>,
    ) -> Expected {
        let mut expected = expected.clone();
        // The result must be the same as if the values had been declared from scratch.
        if expected.steps[step].is_some() {
            let count = self.setting.declarations.len();
            let mut fresh = History::plain(count);
            fresh.steps[number] = Step::ApplyWith(number, changes);
            let alone = self.run(&fresh, &Expected::default());
            expected.steps[step] = alone.achieved(count - 1).cloned();
        }
        expected
    }

    /// Runs a history. Returns it if it violates the same oracle as before.
    fn reports(&mut self, history: &History, expected: &Expected, known: &Violation) -> Option<Reported> {
        let Outcome {
            violations, events, ..
        } = self.run(history, expected);
        let violation = violations.into_iter().find(|found| found.is_same(known))?;
        Some(Reported {
            history: history.clone(),
            expected: expected.clone(),
            violation,
            events,
        })
    }
}

/// Simpler changes to a declaration. Always keeps at least one change, as the result would
/// otherwise equal the declared object.
fn simpler_changes(changes: &BTreeMap<String, Value>) -> Vec<BTreeMap<String, Value>> {
    let object = Value::Object(changes.clone().into_iter().collect());
    let all = simpler(&object).into_iter();
    all.filter_map(|simpler| match simpler {
        Value::Object(fields) if !fields.is_empty() => Some(fields.into_iter().collect()),
        _ => None,
    })
    .collect()
}
