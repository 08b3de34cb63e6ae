//! Where a history is disturbed: at the requests that a run without perturbations has made.

use std::collections::BTreeSet;

use rbuilder_testing::Random;

use crate::history::{Disturbance, Perturbation, Step};
use crate::network::Moment;
use crate::run::Outcome;

/// Status codes of failures that are injected into writes.
pub(crate) const CODES: [u16; 5] = [409, 429, 500, 503, 504];

/// Returns the requests from a step on that changed something.
pub(crate) fn changing(moments: &[Moment], first_step: usize) -> Vec<&Moment> {
    let moments = moments.iter();
    moments
        .filter(|moment| moment.changed && moment.step >= first_step)
        .collect()
}

/// Returns the crashes and lost answers at each write: most operators fail there first.
pub(crate) fn crashes(changing: &[&Moment]) -> Vec<Perturbation> {
    let actions = [
        Disturbance::CrashAfter,
        Disturbance::CrashBefore,
        Disturbance::LoseAnswer,
        Disturbance::CrashIntoPast,
    ];
    let each = actions.iter();
    each.flat_map(|action| at_each(changing, action)).collect()
}

/// Returns the other perturbations to try with a history. For a history that changes a declaration, they
/// also include crashes from there on.
pub(crate) fn perturbations(steps: &[Step], outcome: &Outcome, declared: &[String]) -> Vec<Perturbation> {
    let last_apply = steps.iter().rposition(|step| !matches!(step, Step::Delete(_)));
    let state = last_apply.and_then(|number| outcome.settled.get(number));
    let objects: Vec<&String> = state.into_iter().flat_map(|state| state.0.keys()).collect();
    let is_child = |name: &&&String| !declared.contains(name) && !name.contains('<');
    let children = objects.iter().filter(is_child);
    let kinds = objects.iter().filter_map(|name| Some(name.split_once(' ')?.0));
    let kinds: BTreeSet<&str> = kinds.collect();
    // Disturb the steps of a path that differ from the base.
    let change = steps.iter().position(|step| matches!(step, Step::ApplyWith(..)));
    let first_step = change.unwrap_or(0);
    let moments = outcome.moments.iter();
    let moments: Vec<&Moment> = moments.filter(|moment| moment.step >= first_step).collect();
    let changing = changing(&outcome.moments, first_step);
    let mut list = Vec::new();
    if change.is_some() {
        list.extend(crashes(&changing));
    }
    let mut add = |moments: &[&Moment], action: &Disturbance| list.extend(at_each(moments, action));
    for name in declared {
        add(&changing, &Disturbance::Redeclare(name.clone()));
    }
    for child in children {
        add(&changing, &Disturbance::Remove(child.to_string()));
        add(&changing, &Disturbance::Edit(child.to_string()));
    }
    for kind in kinds {
        add(&changing, &Disturbance::DelayEvents(kind.to_owned()));
    }
    for code in CODES {
        add(&moments, &Disturbance::Refuse(code));
    }
    for action in [
        Disturbance::Forbid,
        Disturbance::ExpireWatches,
        Disturbance::EndWatches,
    ] {
        add(&moments, &action);
    }
    // A small budget must not leave out whole kinds of perturbations.
    Random::new(2).shuffle(&mut list);
    list
}

/// Returns a perturbation for each moment.
fn at_each<'m>(moments: &'m [&Moment], action: &'m Disturbance) -> impl Iterator<Item = Perturbation> + 'm {
    moments.iter().map(|moment| Perturbation {
        at: moment.name.clone(),
        action: action.clone(),
    })
}
