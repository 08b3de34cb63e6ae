//! Searches for a history in which the operator misbehaves.
//!
//! Undisturbed runs come first, to find out which requests the operator makes and in which states
//! it settles. Later runs disturb one of these requests or modify a declaration, and must settle in
//! the same states. Any remaining budget is spent on disturbing two requests at once.

mod bases;
mod elsewhere;
mod follows;
mod server;
mod shrink;

use std::collections::BTreeSet;

use rbuilder_testing::Random;

use self::elsewhere::mask_of_copies;
use self::shrink::Reported;
use crate::history::{History, Perturbation, Step};
use crate::kept::{Kept, KeptOutcome};
use crate::mishaps::{first_mishaps, mishaps};
use crate::oracle::{Oracle, Violation};
use crate::placement::{changing, crashes, handovers, late, neighbours, perturbations, replacements};
use crate::progress::Progress;
use crate::report::Report;
use crate::run::{Expected, Outcome, Setting, run};
use crate::settings::Budget;
use crate::timeline::Event;
use crate::world::{Snapshot, extend_mask};

const MOST_FAILURES: usize = 5;
/// Number of histories with other metadata of a declared object: from scratch, and as an update.
const METADATA: usize = 2;

/// A history in which the operator misbehaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The violated property.
    pub oracle: Oracle,
    /// What went wrong.
    pub message: String,
    /// The shortest failing history found.
    pub history: History,
    /// Timeline of `history`.
    pub events: Vec<Event>,
    /// Object and field, to tell findings of the same oracle apart.
    pub(crate) subject: String,
    /// In which way `history` differs from the undisturbed one, apart from its perturbations.
    pub(crate) circumstances: Vec<String>,
}

pub(crate) struct Search<'s> {
    setting: &'s Setting,
    budget: Budget,
    progress: Progress,
    found: Report,
    disturbed: BTreeSet<String>,
    /// Whether two runs of the same history differ.
    is_random: bool,
    /// Outcome of the undisturbed history, if it was run already.
    plain: Option<Outcome>,
}

struct Base {
    history: History,
    outcome: Outcome,
    expected: Expected,
}

impl Base {
    /// Perturbations for a history with two replicas, or for one in which time passes.
    fn disturbances(&self) -> Vec<Perturbation> {
        if self.history.replicated {
            return handovers(&changing(&self.outcome.moments, 0));
        }
        let passing = self
            .history
            .steps
            .iter()
            .position(|step| matches!(step, Step::PassUntil(_)));
        late(&changing(&self.outcome.moments, passing.unwrap_or(0)))
    }
}

pub(crate) fn run_plain(setting: &Setting) -> Outcome {
    let (history, expected) = plain(setting);
    run(setting, &history, &expected)
}

/// The undisturbed history, with the only state known in advance: nothing is left after the last
/// deletion.
fn plain(setting: &Setting) -> (History, Expected) {
    let history = History::plain(setting.declarations.len());
    let mut steps = vec![None; history.steps.len() - 1];
    steps.push(Some(Snapshot::of_cluster(&setting.server, &setting.tolerance)));
    let expected = Expected {
        steps,
        ..Expected::default()
    };
    (history, expected)
}

impl<'s> Search<'s> {
    /// Starts a search. `plain` is the result of [`run_plain`], if it was already run in this
    /// setting.
    pub(crate) fn new(
        setting: &'s Setting,
        plain: Option<Outcome>,
        budget: Budget,
        progress: Progress,
    ) -> Self {
        Self {
            setting,
            budget,
            progress,
            found: Report::default(),
            disturbed: BTreeSet::new(),
            is_random: false,
            plain,
        }
    }

    pub(crate) fn search(mut self, kept: Vec<History>) -> Report {
        self.search_all(kept);
        self.progress
            .print(&self.budget, self.found.histories, &self.found.coverage);
        self.found
    }

    fn search_all(&mut self, kept: Vec<History>) {
        let Some(base) = self.base() else {
            let unknown = kept
                .into_iter()
                .map(|history| Kept::new(history, KeptOutcome::NotRun));
            self.found.kept = unknown.collect();
            return;
        };
        self.found.requests = base.outcome.moments.len();
        let calls = base.outcome.moments.iter().filter(|moment| moment.is_external);
        // External calls count twice, see `Simulation::histories`.
        let declared = self.setting.declared();
        let mishaps = first_mishaps(&mishaps(&base.history.steps, &base.outcome, &declared, 0));
        let others = self.count_copies()
            + self.count_followed(&base)
            + mishaps.len()
            + METADATA * self.setting.declarations.len();
        self.budget.adapt(self.found.requests + calls.count(), others);
        self.found.coverage.add_requests(&base.outcome.moments);
        self.repeat(&base, kept);
        self.paces(&base);
        self.foreground(&base);
        self.orders(&base);
        let crashes = crashes(&changing(&base.outcome.moments, 0), base.outcome.accepts_past);
        self.disturb_each(&base, &crashes);
        self.disturb_each(&base, &mishaps);
        self.elsewhere(&base);
        self.replace_followed(&base);
        let extra = [self.replicas(&base), self.months(&base)];
        let mut bases = self.variants(&base);
        bases.insert(0, base);
        for base in &bases[1..] {
            self.found.coverage.add_requests(&base.outcome.moments);
        }
        let singles = bases
            .iter()
            .map(|base| perturbations(&base.history.steps, &base.outcome, &declared));
        let mut singles: Vec<Vec<Perturbation>> = singles.collect();
        singles[0].retain(|perturbation| !mishaps.contains(perturbation));
        for base in extra.into_iter().flatten() {
            singles.insert(1, base.disturbances());
            bases.insert(1, base);
        }
        let mut queues: Vec<_> = singles.iter().map(|singles| singles.iter()).collect();
        for pair in replacements(&bases[0].outcome, &declared) {
            if !self.is_done() {
                self.disturb(&bases[0], pair.to_vec());
            }
        }
        // Favor the first declaration, which has the shortest histories.
        while !self.is_done() && queues.iter().any(|queue| queue.len() > 0) {
            for number in 1..queues.len().max(2) {
                for number in [0, 0, number] {
                    if let Some(next) = queues.get_mut(number).and_then(Iterator::next) {
                        self.disturb_each(&bases[number], std::slice::from_ref(next));
                    }
                }
            }
        }
        let tried = crashes.into_iter().chain(mishaps);
        let first = tried.chain(singles[0].iter().cloned());
        let all: Vec<Vec<Perturbation>> = std::iter::once(first.collect())
            .chain(singles[1..].iter().cloned())
            .collect();
        self.pairs(&bases, &all);
        self.found.disturbed = self.disturbed.len().min(self.found.requests);
    }

    fn repeat(&mut self, base: &Base, kept: Vec<History>) {
        for history in kept {
            let expected = self.expect(base, &history);
            let outcome = self.run(&history, &expected);
            let reached = history.perturbations.len() - outcome.unreached.len();
            self.report(&history, &expected, &outcome);
            let result = match outcome.violations.is_empty() {
                false => KeptOutcome::Fails,
                true if reached == 0 && !history.perturbations.is_empty() => KeptOutcome::NotReached,
                true => KeptOutcome::Passes,
            };
            self.found.kept.push(Kept::new(history, result));
        }
    }

    fn disturb_each(&mut self, base: &Base, perturbations: &[Perturbation]) {
        for perturbation in perturbations {
            if self.is_done() {
                return;
            }
            self.disturbed.insert(perturbation.at.clone());
            self.disturb(base, vec![perturbation.clone()]);
        }
    }

    /// Runs a single history and compares it with undisturbed ones.
    pub(crate) fn replay(mut self, history: &History) -> Report {
        let Some(base) = self.base() else {
            return self.found;
        };
        let expected = self.expect(&base, history);
        let outcome = self.run(history, &expected);
        if !self.report(history, &expected, &outcome) {
            self.found.timeline = outcome.events;
        }
        self.found
    }

    /// State and index of the time-passing step in the undisturbed version of `history`.
    fn state_after_time(&mut self, history: &History) -> Option<(usize, Snapshot)> {
        let number = history
            .steps
            .iter()
            .position(|step| matches!(step, Step::PassUntil(_)))?;
        let undisturbed = History {
            perturbations: Vec::new(),
            ..history.clone()
        };
        let outcome = self.run(&undisturbed, &Expected::default());
        let state = outcome.settled.get(number)?.clone();
        outcome.passed_hours.is_none().then_some((number, state))
    }

    fn expect(&mut self, base: &Base, history: &History) -> Expected {
        let mut expected = base.expected.clone();
        expected.steps.clear();
        let count = self.setting.declarations.len();
        let mut applied = BTreeSet::new();
        for step in &history.steps {
            match (step, step.declaration()) {
                (Step::Delete(number) | Step::DeleteForeground(number), _) => applied.remove(number),
                (_, Some(number)) => applied.insert(number),
                (_, None) => false,
            };
            let state = match step {
                _ if applied.len() < count => None,
                Step::Apply(_) => base.expected.steps[count - 1].clone(),
                Step::ApplyWith(number, changes) => {
                    let mut fresh = base.history.clone();
                    fresh.steps[*number] = Step::ApplyWith(*number, changes.clone());
                    let alone = self.run(&fresh, &Expected::default());
                    alone.achieved(count - 1).cloned()
                }
                _ => None,
            };
            expected.steps.push(state);
        }
        if let Some((number, state)) = self.state_after_time(history) {
            expected.steps[number] = Some(state);
        }
        if history.steps.iter().any(Step::is_elsewhere)
            && let Some(both) = self.with_copies(base)
        {
            self.expect_elsewhere(&mut expected, base, &both, &history.steps);
        }
        if let Some(last) = expected.steps.last_mut().filter(|last| last.is_none()) {
            *last = base.expected.steps.last().cloned().flatten();
        }
        if history.perturbations.is_empty() {
            expected.oracle = Some(Oracle::Path);
        }
        expected
    }

    fn is_done(&self) -> bool {
        self.budget.is_spent(self.found.histories) || self.found.failures.len() >= MOST_FAILURES
    }

    fn run(&mut self, history: &History, expected: &Expected) -> Outcome {
        self.found.histories += 1;
        let outcome = run(self.setting, history, expected);
        let coverage = &mut self.found.coverage;
        coverage.note_perturbations(&history.perturbations, &outcome.unreached);
        self.progress
            .update(&self.budget, self.found.histories, &self.found.coverage);
        outcome
    }

    /// Runs the undisturbed history. `None` if there's no state to compare other histories with,
    /// because the operator never becomes quiet or the server rejects a declaration.
    fn base(&mut self) -> Option<Base> {
        let (history, mut expected) = plain(self.setting);
        let outcome = match self.plain.take() {
            Some(outcome) => {
                self.found.histories += 1;
                outcome
            }
            None => self.run(&history, &expected),
        };
        if let Some(why) = outcome.rejected {
            let message = format!("the server rejects a declaration: {why}");
            let violation = Violation::new(Oracle::End, "", message);
            self.fail(&violation, history, outcome.events);
            return None;
        }
        self.report(&history, &expected, &outcome);
        if outcome.settled.len() < history.steps.len() || is_loop(&outcome) {
            return None;
        }
        // Determinism check: the same seed must produce the same requests. Their order within an
        // instant doesn't matter, since `tokio::select!` chooses it at random.
        let again = self.run(&history, &expected);
        if let Some(difference) = first_difference(&outcome.events, &again.events) {
            self.note_random(difference, &history, again.events);
            // The search goes on with what both runs have in common.
            for (state, again) in outcome.settled.iter().zip(&again.settled) {
                extend_mask(&mut expected.mask, state, again);
            }
        }
        // Mask whatever changes with the seed, i.e. anything random or time-dependent.
        let other = History {
            seed: 1,
            ..history.clone()
        };
        let other = self.run(&other, &expected);
        for (state, other) in outcome.settled.iter().zip(&other.settled) {
            extend_mask(&mut expected.mask, state, other);
        }
        self.found.masked = expected.mask.iter().cloned().collect();
        let copies = mask_of_copies(self.setting, &expected.mask);
        expected.mask.extend(copies);
        expected.steps = outcome.settled.iter().cloned().map(Some).collect();
        let is_secret = |field: &&String| field.starts_with("secrets ") && field.contains(" .data.");
        let generated = expected.mask.iter().filter(is_secret);
        expected.generated = generated
            .filter(|field| !outcome.replaced.contains(*field))
            .cloned()
            .collect();
        let mut base = Base {
            history,
            outcome,
            expected,
        };
        self.learn_followers(&mut base);
        Some(base)
    }

    fn disturb(&mut self, base: &Base, perturbations: Vec<Perturbation>) {
        let history = History {
            perturbations,
            ..base.history.clone()
        };
        self.try_history(&history, &base.expected);
    }

    fn pairs(&mut self, bases: &[Base], singles: &[Vec<Perturbation>]) {
        let mut random = Random::new(1);
        if singles.iter().all(Vec::is_empty) {
            return;
        }
        while !self.is_done() {
            let number = match random.below(2) {
                0 => 0,
                _ => random.below(bases.len()),
            };
            let (base, singles) = (&bases[number], &singles[number]);
            // Count it regardless, to guarantee termination.
            if singles.len() < 2 {
                self.found.histories += 1;
                continue;
            }
            let first = &singles[random.below(singles.len())];
            let near = neighbours(&base.outcome.moments, &first.at, singles);
            // Prefer perturbations that are close together: the second one is then more likely to
            // hit while the operator recovers from the first.
            let second = match random.below(4) {
                0 => &singles[random.below(singles.len())],
                _ => near[random.below(near.len())],
            };
            self.disturb(base, vec![first.clone(), second.clone()]);
        }
    }

    fn try_kind(&mut self, kind: &str, history: &History, expected: &Expected) {
        if !self.is_done() {
            self.found.coverage.note(kind);
        }
        self.try_history(history, expected);
    }

    fn try_history(&mut self, history: &History, expected: &Expected) {
        if self.is_done() {
            return;
        }
        let outcome = self.run(history, expected);
        self.report(history, expected, &outcome);
    }

    /// Records the failures of a run that aren't known yet. Returns whether the run can't be
    /// compared with others: it has a new failure, or its state is wrong.
    fn report(&mut self, history: &History, expected: &Expected, outcome: &Outcome) -> bool {
        let mut is_new = false;
        for violation in &outcome.violations {
            if !self.is_known(violation) && self.found.failures.len() < MOST_FAILURES {
                is_new = true;
                self.add(history, expected, outcome, violation);
            }
        }
        let mut violations = outcome.violations.iter();
        is_new || violations.any(|violation| violation.oracle.is_of_state())
    }

    fn is_known(&self, violation: &Violation) -> bool {
        let mut known = self.found.failures.iter();
        known.any(|failure| failure.oracle == violation.oracle && failure.subject == violation.subject)
    }

    fn add(&mut self, history: &History, expected: &Expected, outcome: &Outcome, violation: &Violation) {
        let Reported {
            history,
            expected,
            violation,
            events,
        } = self.shrink(Reported {
            history: history.clone(),
            expected: expected.clone(),
            violation: violation.clone(),
            events: outcome.events.clone(),
        });
        if self.is_known(&violation) {
            return;
        }
        // A loop takes long, and its first run proves it.
        if violation.oracle != Oracle::Quiet {
            let again = run(self.setting, &history, &expected);
            if let Some(difference) = first_difference(&events, &again.events) {
                self.note_random(difference, &history, again.events);
                if !again.violations.iter().any(|found| found.is_same(&violation)) {
                    return;
                }
            }
        }
        self.fail(&violation, history, events);
    }

    fn note_random(&mut self, difference: String, history: &History, events: Vec<Event>) {
        if !self.is_random && !self.setting.accepted.contains(&Oracle::Determinism) {
            let violation = Violation::new(Oracle::Determinism, "", difference);
            self.fail(&violation, history.clone(), events);
        }
        self.is_random = true;
    }

    fn fail(&mut self, violation: &Violation, history: History, events: Vec<Event>) {
        self.found.failures.push(Failure {
            oracle: violation.oracle,
            message: violation.message.clone(),
            subject: violation.subject.clone(),
            circumstances: history.describe(&self.setting.declared(), violation.step),
            history,
            events,
        });
    }
}

fn is_loop(outcome: &Outcome) -> bool {
    let mut violations = outcome.violations.iter();
    violations.any(|violation| violation.oracle == Oracle::Quiet)
}

/// Compares the events of two runs, without the order of those at the same instant.
fn first_difference(expected: &[Event], found: &[Event]) -> Option<String> {
    let (expected, found) = (in_order(expected), in_order(found));
    let position = expected.iter().zip(&found).position(|(one, other)| one != other);
    let position = match position {
        Some(position) => position,
        None if expected.len() == found.len() => return None,
        None => expected.len().min(found.len()),
    };
    let show = |events: &[&Event]| {
        events
            .get(position)
            .map_or("nothing".to_owned(), ToString::to_string)
    };
    Some(format!(
        "two runs of the same history differ: the operator uses the system's clock, random numbers, threads, the order \
         of a HashMap, or `tokio::select!` without `biased;`\n    first: {}\n    then:  {}",
        show(&expected),
        show(&found)
    ))
}

fn in_order(events: &[Event]) -> Vec<&Event> {
    let mut events: Vec<&Event> = events.iter().collect();
    events.sort_by_key(|event| (event.at, event.actor, &event.text, event.code, event.changed));
    events
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::timeline::Actor;

    #[test]
    fn order_within_an_instant_does_not_matter() {
        let event = |at: u64, text: &str| Event {
            at: Duration::from_secs(at),
            actor: Actor::Operator,
            text: text.to_owned(),
            code: 200,
            changed: false,
            is_external: false,
        };
        let events = [event(1, "a"), event(1, "b"), event(2, "c")];
        let other = [event(1, "b"), event(1, "a"), event(2, "c")];
        assert_eq!(first_difference(&events, &other), None);
        let later = [event(1, "b"), event(2, "a"), event(2, "c")];
        let difference = first_difference(&events, &later).unwrap();
        assert!(
            difference.contains("first: ") && difference.contains("tokio::select!"),
            "{difference}"
        );
    }
}
