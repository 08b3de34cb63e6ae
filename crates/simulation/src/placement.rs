//! Where a history is disturbed: at the requests that a run without perturbations has made.

use std::collections::BTreeSet;

use rbuilder_testing::Random;

use crate::external::is_external;
use crate::history::{Disturbance, Perturbation, Step};
use crate::run::Outcome;
use crate::traffic::Moment;

/// Status codes of failures that are injected into writes.
pub(crate) const CODES: [u16; 5] = [409, 429, 500, 503, 504];

/// Returns the requests from a step on that changed something.
pub(crate) fn changing(moments: &[Moment], first_step: usize) -> Vec<&Moment> {
    let moments = moments.iter();
    moments
        .filter(|moment| moment.changed && moment.step >= first_step)
        .collect()
}

/// Returns the crashes and lost answers at each write: most operators fail there first. Caches begin in the
/// past only if the operator accepts that.
pub(crate) fn crashes(changing: &[&Moment], accepts_past: bool) -> Vec<Perturbation> {
    let actions = [
        Disturbance::CrashAfter,
        Disturbance::CrashBefore,
        Disturbance::LoseAnswer,
        Disturbance::CrashIntoPast,
    ];
    let each = actions
        .iter()
        .filter(|action| accepts_past || **action != Disturbance::CrashIntoPast);
    each.flat_map(|action| at_each(changing, action)).collect()
}

/// Returns what lets the lease change hands at each write: the leader dies, or cannot reach the server.
pub(crate) fn handovers(changing: &[&Moment]) -> Vec<Perturbation> {
    let mut list: Vec<Perturbation> = at_each(changing, &Disturbance::CutOff)
        .chain(at_each(changing, &Disturbance::CrashAfter))
        .collect();
    // A small budget must reach both, and not only the first writes.
    Random::new(4).shuffle(&mut list);
    list
}

/// Returns what disturbs the writes that the operator makes because time has passed.
pub(crate) fn late(changing: &[&Moment]) -> Vec<Perturbation> {
    let actions = [
        Disturbance::CrashBefore,
        Disturbance::Refuse(503),
        Disturbance::CrashAfter,
        Disturbance::LoseAnswer,
    ];
    let mut list: Vec<Perturbation> = actions
        .iter()
        .flat_map(|action| at_each(changing, action))
        .collect();
    // The first writes are much like the later ones.
    Random::new(5).shuffle(&mut list);
    list
}

/// Returns pairs that let the operator see an object that was replaced beside a child of the former one:
/// after the operator has made the child, the object is deleted and declared again, and from the next
/// write on, the events of the child's kind are late.
pub(crate) fn replacements(outcome: &Outcome, declared: &[String]) -> Vec<[Perturbation; 2]> {
    let is_own = |kind: &str| declared.iter().any(|name| name.split(' ').next() == Some(kind));
    let changing = changing(&outcome.moments, 0);
    let mut pairs = Vec::new();
    for (made, next) in changing.iter().zip(changing.iter().skip(1)) {
        // The name of a request begins with its verb and kind, such as `create pods default/a #1`.
        let kind = made.name.split(' ').nth(1).unwrap_or_default();
        if made.is_external || is_own(kind.split('/').next().unwrap_or_default()) {
            continue;
        }
        for name in declared {
            let redeclare = Disturbance::Redeclare(name.clone());
            let delay = Disturbance::DelayEvents(kind.to_owned());
            let (made, next) = ([*made], [*next]);
            let redeclared = at_each(&made, &redeclare);
            pairs.extend(
                redeclared
                    .zip(at_each(&next, &delay))
                    .map(|(one, other)| [one, other]),
            );
        }
    }
    pairs
}

/// Returns the other perturbations to try with a history. For a history that changes a declaration, they
/// also include crashes from there on.
pub(crate) fn perturbations(steps: &[Step], outcome: &Outcome, declared: &[String]) -> Vec<Perturbation> {
    let last_apply = steps.iter().rposition(|step| !step.deletes());
    let state = last_apply.and_then(|number| outcome.settled.get(number));
    let objects: Vec<&String> = state.into_iter().flat_map(|state| state.0.keys()).collect();
    // Somebody also deletes Pods of a workload.
    let is_pod = |name: &String| outcome.asks_for_pods && name.starts_with("pods ");
    let is_made = |name: &String| outcome.made.contains(name) || is_external(name) || is_pod(name);
    let is_child = |name: &&&String| !declared.contains(name) && !name.contains('<') && is_made(name);
    let children = objects.iter().filter(is_child);
    let in_cluster = objects.iter().filter(|name| !is_external(name));
    let kinds = in_cluster.filter_map(|name| Some(name.split_once(' ')?.0));
    let kinds: BTreeSet<&str> = kinds.collect();
    // Disturb the steps of a path that differ from the base.
    let change = steps.iter().position(|step| matches!(step, Step::ApplyWith(..)));
    let first_step = change.unwrap_or(0);
    let moments = outcome.moments.iter();
    let moments: Vec<&Moment> = moments.filter(|moment| moment.step >= first_step).collect();
    let changing = changing(&outcome.moments, first_step);
    let mut list = Vec::new();
    if change.is_some() {
        list.extend(crashes(&changing, outcome.accepts_past));
    }
    let mut add = |moments: &[&Moment], action: &Disturbance| list.extend(at_each(moments, action));
    for name in declared {
        add(&changing, &Disturbance::Redeclare(name.clone()));
    }
    let behind = declared.iter().filter(|_| outcome.accepts_past);
    let behind = behind.filter_map(|name| Some(name.split_once(' ')?.0));
    for kind in behind.collect::<BTreeSet<_>>() {
        add(&changing, &Disturbance::CrashBehind(kind.to_owned()));
    }
    for child in children {
        add(&changing, &Disturbance::Remove(child.to_string()));
        if !is_external(child) && !is_pod(child) {
            add(&changing, &Disturbance::Edit(child.to_string()));
        }
    }
    for kind in kinds {
        add(&changing, &Disturbance::DelayEvents(kind.to_owned()));
    }
    let external: Vec<&Moment> = moments
        .iter()
        .copied()
        .filter(|moment| moment.is_external)
        .collect();
    add(&external, &Disturbance::Slow);
    add(&moments, &Disturbance::Forbid);
    let (first, later) = outages(&moments);
    list.extend(first);
    // A small budget must not leave out whole kinds of perturbations.
    Random::new(2).shuffle(&mut list);
    let mut later = later;
    Random::new(3).shuffle(&mut later);
    list.append(&mut later);
    // Nothing retries a call of an external system but the operator itself.
    let mut refusals: Vec<Perturbation> = at_each(&external, &Disturbance::Refuse(503)).collect();
    list.retain(|perturbation| !refusals.contains(perturbation));
    refusals.append(&mut list);
    refusals
}

/// Returns the errors of the server and of watches at each request: first, one of each at every request,
/// and then all others. Most operators treat them alike.
fn outages(moments: &[&Moment]) -> (Vec<Perturbation>, Vec<Perturbation>) {
    let mut first = Vec::new();
    let mut later = Vec::new();
    let watches = [Disturbance::ExpireWatches, Disturbance::EndWatches];
    let codes = CODES.map(Disturbance::Refuse);
    for (number, moment) in moments.iter().enumerate() {
        for actions in [&codes[..], &watches] {
            let chosen = number % actions.len();
            for (index, action) in actions.iter().enumerate() {
                let list = if index == chosen { &mut first } else { &mut later };
                list.extend(at_each(&[*moment], action));
            }
        }
    }
    (first, later)
}

/// How many requests apart neighbours are.
const NEAR: usize = 2;

/// Returns the perturbations at a request and at those around it.
pub(crate) fn neighbours<'p>(
    moments: &[Moment],
    at: &str,
    perturbations: &'p [Perturbation],
) -> Vec<&'p Perturbation> {
    let place = moments.iter().position(|moment| moment.name == at).unwrap_or(0);
    let around = &moments[place.saturating_sub(NEAR)..moments.len().min(place + NEAR + 1)];
    let is_near = |perturbation: &&Perturbation| around.iter().any(|moment| moment.name == perturbation.at);
    perturbations.iter().filter(is_near).collect()
}

/// Returns a perturbation for each moment.
fn at_each<'m>(moments: &'m [&Moment], action: &'m Disturbance) -> impl Iterator<Item = Perturbation> + 'm {
    moments.iter().map(|moment| Perturbation {
        at: moment.name.clone(),
        action: action.clone(),
    })
}
