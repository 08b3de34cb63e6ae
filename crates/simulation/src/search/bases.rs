//! Undisturbed histories that differ from the first one in other respects: environment, order of
//! declarations, their values, number of replicas, or elapsed time.
//!
//! Some of them also serve as bases for perturbations.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Base, Search};
use crate::coverage::{
    BREAKING_ENVIRONMENT, FAILING_ENVIRONMENT, FOREGROUND, MONTHS, OTHER_DECLARATION, OTHER_ORDER,
    SLOW_ENVIRONMENT, TWO_REPLICAS,
};
use crate::history::{History, Pace, Step};
use crate::oracle::Oracle;
use crate::placement::changing;
use crate::run::Expected;
use crate::world::{Snapshot, compare, extend_mask};

const HOURS: u32 = 90 * 24;

impl Search<'_> {
    pub(super) fn paces(&mut self, base: &Base) {
        let slow = History {
            environment: Pace::Slow,
            ..base.history.clone()
        };
        self.try_kind(SLOW_ENVIRONMENT, &slow, &base.expected);
        let failing = History {
            environment: Pace::Failing,
            ..base.history.clone()
        };
        // Nothing becomes ready, so only the state after the last deletion is known.
        let mut expected = base.expected.clone();
        let last = expected.steps.len() - 1;
        expected.steps[..last].fill(None);
        // What is kept after the deletion isn't ready either.
        let kept = expected.steps[last].iter().flat_map(|state| state.objects.keys());
        let kept: Vec<String> = kept.map(|name| format!("{name} .status")).collect();
        expected.mask.extend(kept);
        self.try_kind(FAILING_ENVIRONMENT, &failing, &expected);
        let count = self.setting.declarations.len();
        let mut breaking = base.history.clone();
        breaking.steps.insert(count, Step::FailEnvironment);
        expected.steps.insert(count, None);
        self.try_kind(BREAKING_ENVIRONMENT, &breaking, &expected);
    }

    pub(super) fn foreground(&mut self, base: &Base) {
        let mut history = base.history.clone();
        for step in &mut history.steps {
            if let Step::Delete(number) = step {
                *step = Step::DeleteForeground(*number);
            }
        }
        self.try_kind(FOREGROUND, &history, &base.expected);
    }

    /// Lets three months pass before the objects are deleted.
    ///
    /// Returns `None` if the operator is inactive during that time, as there's nothing to disturb
    /// then.
    pub(super) fn months(&mut self, base: &Base) -> Option<Base> {
        if self.is_done() {
            return None;
        }
        let count = self.setting.declarations.len();
        let mut history = base.history.clone();
        history.steps.insert(count, Step::PassUntil(HOURS));
        let mut expected = base.expected.clone();
        expected.steps.insert(count, None);
        let last = expected.steps.len() - 1;
        expected.steps[count..last].fill(None);
        // Certificates and passwords may be due for renewal.
        let generated = std::mem::take(&mut expected.generated);
        self.found.coverage.note(MONTHS);
        let outcome = self.run(&history, &expected);
        expected.generated = &generated - &outcome.replaced;
        self.found.passed_hours = outcome.passed_hours;
        let is_over = self.report(&history, &expected, &outcome) || outcome.passed_hours.is_some();
        if is_over
            || changing(&outcome.moments, count)
                .iter()
                .all(|moment| moment.step > count)
        {
            return None;
        }
        // Names and values may depend on the clock or on randomness; rerun with another seed to
        // find out which fields to mask.
        let other = self.run(
            &History {
                seed: 1,
                ..history.clone()
            },
            &expected,
        );
        let (state, again) = (outcome.settled.get(count)?, other.settled.get(count)?);
        extend_mask(&mut expected.mask, state, again);
        expected.steps[count] = Some(state.clone());
        Some(Base {
            history,
            outcome,
            expected,
        })
    }

    /// Tries two replicas. Returns a history for testing lease handovers at each write.
    pub(super) fn replicas(&mut self, base: &Base) -> Option<Base> {
        if !self.setting.has_replicas || self.is_done() {
            return None;
        }
        let history = History {
            replicated: true,
            ..base.history.clone()
        };
        self.found.coverage.note(TWO_REPLICAS);
        let outcome = self.run(&history, &base.expected);
        if self.report(&history, &base.expected, &outcome) {
            return None;
        }
        Some(Base {
            history,
            outcome,
            expected: base.expected.clone(),
        })
    }

    pub(super) fn orders(&mut self, base: &Base) {
        let count = self.setting.declarations.len();
        if count < 2 {
            return;
        }
        let mut history = base.history.clone();
        history.steps[..count].reverse();
        let mut expected = base.expected.clone();
        let last = expected.steps.len() - 1;
        // Intermediate states differ from those of the usual order.
        for (number, state) in expected.steps.iter_mut().enumerate() {
            if number != count - 1 && number != last {
                *state = None;
            }
        }
        self.try_kind(OTHER_ORDER, &history, &expected);
    }

    /// Tries the variants of each declaration, both from scratch and as an update of the original.
    /// Returns the update histories.
    pub(super) fn variants(&mut self, base: &Base) -> Vec<Base> {
        let mut bases = Vec::new();
        let count = self.setting.declarations.len();
        // Reserve the other half for perturbations.
        let budget = self.budget.half_of_rest(self.found.histories);
        for number in 0..count {
            let declaration = &self.setting.declarations[number];
            for changes in declaration.variants() {
                if self.is_done() || budget.is_spent(self.found.histories) {
                    return bases;
                }
                if let Some(why) = self.setting.refusal(number, &changes) {
                    self.note_refused(&Step::ApplyWith(number, changes), &why);
                    continue;
                }
                bases.extend(self.variant(base, number, changes));
            }
        }
        bases
    }

    fn variant(&mut self, base: &Base, number: usize, changes: BTreeMap<String, Value>) -> Option<Base> {
        let count = self.setting.declarations.len();
        let mut fresh = base.history.clone();
        fresh.steps[number] = Step::ApplyWith(number, changes.clone());
        let mut steps = vec![None; fresh.steps.len() - 1];
        steps.push(base.expected.steps.last().cloned().flatten());
        let mut expected = Expected {
            steps,
            mask: base.expected.mask.clone(),
            oracle: Some(Oracle::Path),
            ..Expected::default()
        };
        let alone = self.run(&fresh, &expected);
        self.found.coverage.note(OTHER_DECLARATION);
        if let Some(why) = &alone.rejected {
            self.note_refused(&fresh.steps[number], why);
        }
        if self.report(&fresh, &expected, &alone) || alone.rejected.is_some() {
            return None;
        }
        let target = alone.settled.get(count - 1)?;
        self.note_unused(base, number, &changes, target);
        let mut path = base.history.clone();
        path.steps.insert(count, Step::ApplyWith(number, changes));
        path.steps.insert(count + 1, Step::Apply(number));
        expected.steps = base.expected.steps.clone();
        expected.steps.insert(count, alone.achieved(count - 1).cloned());
        expected
            .steps
            .insert(count + 1, base.expected.steps[count - 1].clone());
        let mut outcome = self.run(&path, &expected);
        if outcome
            .violations
            .iter()
            .any(|found| found.oracle == Oracle::Path)
            && !self.is_done()
        {
            // The variant may have random or time-dependent fields that the declared object lacks.
            let other = self.run(&History { seed: 1, ..fresh }, &Expected::default());
            let before = expected.mask.len();
            if let Some(other) = other.settled.get(count - 1) {
                extend_mask(&mut expected.mask, &alone.settled[count - 1], other);
            }
            if expected.mask.len() > before {
                outcome = self.run(&path, &expected);
            }
        }
        let is_refused = outcome.rejected.is_some();
        let is_stuck = !is_refused && self.report(&path, &expected, &outcome);
        if is_refused || is_stuck {
            let has_arrived = outcome.settled.len() > count + 1;
            if is_stuck && !has_arrived {
                return None;
            }
            // Some changes can't be reverted, e.g. volumes can't shrink. The way to the variant is a
            // history of its own, which deletes the modified object along with the others.
            path.steps.remove(count + 1);
            expected.steps.remove(count + 1);
            let last = expected.steps.len() - 1;
            expected.steps[count + 1..last].fill(None);
            outcome = self.run(&path, &expected);
            if let Some(why) = &outcome.rejected {
                self.note_refused(&path.steps[count], why);
            }
            if self.report(&path, &expected, &outcome) || outcome.rejected.is_some() {
                return None;
            }
        }
        for step in &outcome.irreversible {
            expected.steps[*step] = None;
        }
        // If the result may be path-dependent, perturbations may affect it, too.
        if self.setting.accepted.contains(&Oracle::Path) {
            return None;
        }
        expected.oracle = None;
        Some(Base {
            history: path,
            outcome,
            expected,
        })
    }

    fn note_refused(&mut self, step: &Step, why: &str) {
        let what = step.describe(&self.setting.declared());
        self.found.refused.push(format!("{what}: {why}"));
    }

    /// Reports fields that have no effect outside of the object itself.
    fn note_unused(
        &mut self,
        base: &Base,
        number: usize,
        changes: &BTreeMap<String, Value>,
        state: &Snapshot,
    ) {
        let own = self.setting.declarations[number].name.to_string();
        let count = self.setting.declarations.len();
        let before = base.expected.steps[count - 1].clone().unwrap_or_default();
        // Removing a field that's set to its default is a no-op and proves nothing.
        let spec_of = |state: &Snapshot| state.declared.get(&own).map(|object| object["spec"].clone());
        if spec_of(&before) == spec_of(state) {
            return;
        }
        let is_unused = compare(&before, state, &base.expected.mask).is_empty();
        // Skip unset fields. They may be unused for good reasons, e.g. as deprecated aliases.
        let declared = &self.setting.declarations[number].object;
        let set = changes
            .keys()
            .filter(|pointer| declared.pointer(pointer).is_some());
        for pointer in set {
            let field = format!("{own} {pointer}");
            let is_known = self.found.unused_fields.contains(&field);
            match is_unused {
                true if !is_known => self.found.unused_fields.push(field),
                false => self.found.unused_fields.retain(|known| known != &field),
                true => {}
            }
        }
    }
}
