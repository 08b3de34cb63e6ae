//! Decides where to inject perturbations, based on the requests of an undisturbed run.

use std::collections::BTreeSet;

use rbuilder_testing::Random;
use serde_json::Value;

use crate::external::is_external;
use crate::history::{Disturbance, Perturbation, Step};
use crate::mishaps::mishaps;
use crate::run::Outcome;
use crate::traffic::Moment;
use crate::world::Snapshot;

pub(crate) const CODES: [u16; 5] = [409, 429, 500, 503, 504];

pub(crate) fn changing(moments: &[Moment], first_step: usize) -> Vec<&Moment> {
    let moments = moments.iter();
    moments
        .filter(|moment| moment.changed && moment.step >= first_step)
        .collect()
}

/// A crash and a lost response for each write. These find most bugs, so they're tried first.
///
/// Restarting with stale caches only makes sense if the operator accepts stale lists.
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

/// Perturbations that hand the lease over to the other replica, at each write.
pub(crate) fn handovers(changing: &[&Moment]) -> Vec<Perturbation> {
    let mut list: Vec<Perturbation> = at_each(changing, &Disturbance::CutOff)
        .chain(at_each(changing, &Disturbance::CrashAfter))
        .collect();
    // Shuffle, so that a small budget covers both kinds and not just the first few writes.
    Random::new(4).shuffle(&mut list);
    list
}

/// Perturbations for later writes, i.e. those made without a preceding change in the cluster.
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
    // Periodic writes are all alike; don't spend the whole budget on the first few.
    Random::new(5).shuffle(&mut list);
    list
}

/// Pairs of perturbations that make the operator observe a replaced object along with a child of
/// its predecessor.
///
/// The object is deleted and redeclared right after its child was created. From the next write on,
/// events for the child's kind are delayed.
pub(crate) fn replacements(outcome: &Outcome, declared: &[String]) -> Vec<[Perturbation; 2]> {
    let is_own = |kind: &str| declared.iter().any(|name| name.split(' ').next() == Some(kind));
    let changing = changing(&outcome.moments, 0);
    let mut pairs = Vec::new();
    if finds_remains(outcome) {
        return pairs;
    }
    for (made, next) in changing.iter().zip(changing.iter().skip(1)) {
        // Request names look like `create pods default/a #1`; the kind is the second word.
        let kind = made.resource();
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

/// Returns whether an object that is declared again finds what its predecessor has left on purpose.
/// It may then not be treated like the first one.
fn finds_remains(outcome: &Outcome) -> bool {
    outcome.settled.iter().any(Snapshot::has_kept)
}

/// Objects in the state after the last declaration.
pub(crate) fn last_declared<'o>(
    steps: &[Step],
    outcome: &'o Outcome,
) -> impl Iterator<Item = (&'o String, &'o Value)> {
    let last_apply = steps.iter().rposition(|step| !step.deletes());
    let state = last_apply.and_then(|number| outcome.settled.get(number));
    state.into_iter().flat_map(|state| &state.objects)
}

/// Whether an object is a Pod in a simulation that has those of workloads.
fn is_pod(outcome: &Outcome, name: &str) -> bool {
    outcome.asks_for_pods && name.starts_with("pods ")
}

/// Objects that the operator has made for the declared ones, and Pods of workloads if it reads
/// them: other actors delete these, too. Only objects with a name of their own.
pub(crate) fn children<'o>(steps: &[Step], outcome: &'o Outcome, declared: &[String]) -> Vec<&'o String> {
    // The operator's own objects aren't made for any declared object, and need not be restored.
    let is_made = |name: &String| {
        let is_own = outcome.before.contains(name);
        outcome.made.contains(name) && !is_own || is_external(name) || is_pod(outcome, name)
    };
    let names = last_declared(steps, outcome).map(|(name, _)| name);
    names
        .filter(|name| !declared.contains(name) && !name.contains('<') && is_made(name))
        .collect()
}

/// All other perturbations to try. If the history modifies a declaration, crashes after the
/// modification are included.
pub(crate) fn perturbations(steps: &[Step], outcome: &Outcome, declared: &[String]) -> Vec<Perturbation> {
    let objects = last_declared(steps, outcome);
    let objects: Vec<&String> = objects.map(|(name, _)| name).collect();
    let in_cluster = objects.iter().filter(|name| !is_external(name));
    let kinds = in_cluster.filter_map(|name| Some(name.split_once(' ')?.0));
    let kinds: BTreeSet<&str> = kinds.collect();
    // Up to the first modification, the steps equal those of the base history, where they were
    // disturbed already.
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
    for name in declared.iter().filter(|_| !finds_remains(outcome)) {
        add(&changing, &Disturbance::Redeclare(name.clone()));
    }
    let behind = declared.iter().filter(|_| outcome.accepts_past);
    let behind = behind.filter_map(|name| Some(name.split_once(' ')?.0));
    for kind in behind.collect::<BTreeSet<_>>() {
        add(&changing, &Disturbance::CrashBehind(kind.to_owned()));
    }
    for child in children(steps, outcome, declared) {
        add(&changing, &Disturbance::Remove(child.clone()));
        if !is_external(child) && !is_pod(outcome, child) {
            add(&changing, &Disturbance::Edit(child.clone()));
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
    // Without shuffling, a small budget would never reach some kinds of perturbations.
    Random::new(2).shuffle(&mut list);
    let mut list = take_turns(list);
    let mut later = later;
    Random::new(3).shuffle(&mut later);
    list.append(&mut later);
    list.extend(take_turns(mishaps(steps, outcome, declared, first_step).concat()));
    // Try refused external calls first. Clients retry API server requests on their own, but
    // external calls can only be retried by the operator itself.
    let mut refusals: Vec<Perturbation> = at_each(&external, &Disturbance::Refuse(503)).collect();
    list.retain(|perturbation| !refusals.contains(perturbation));
    refusals.append(&mut list);
    refusals
}

/// Interleaves the disturbances round-robin.
fn take_turns(list: Vec<Perturbation>) -> Vec<Perturbation> {
    let mut turns: Vec<(usize, Perturbation)> = Vec::with_capacity(list.len());
    for perturbation in list {
        let same = turns
            .iter()
            .filter(|(_, known)| known.action == perturbation.action);
        turns.push((same.count(), perturbation));
    }
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, perturbation)| perturbation).collect()
}

/// Server errors and closed watches for all requests, as two lists.
///
/// Operators mostly handle all status codes alike, and likewise all closed watches. The first list
/// therefore contains one of each per request, the second list all remaining combinations.
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

/// Distance in requests.
const NEAR: usize = 2;

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

pub(crate) fn at_each<'m>(
    moments: &'m [&Moment],
    action: &'m Disturbance,
) -> impl Iterator<Item = Perturbation> + 'm {
    moments.iter().map(|moment| Perturbation {
        at: moment.name.clone(),
        action: action.clone(),
    })
}
