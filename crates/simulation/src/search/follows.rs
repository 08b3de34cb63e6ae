//! Finds fields that are derived from generated Secrets, see [`Follower`].

use crate::history::{Disturbance, History, Perturbation};
use crate::oracle::Follower;
use crate::placement::changing;

use super::{Base, Search};

/// Histories for each pair of a Secret and a field.
const HISTORIES: usize = 3;
const MOST_PAIRS: usize = 4;

impl Search<'_> {
    /// Finds out which fields follow which Secrets, and adds them to the expectations.
    pub(super) fn learn_followers(&mut self, base: &mut Base) {
        for follower in followers(base).into_iter().take(MOST_PAIRS) {
            let Some(alone) = removal(base, &[&follower.object]) else {
                return;
            };
            let Some(both) = removal(base, &[&follower.secret, &follower.object]) else {
                return;
            };
            // A field that is random itself changes when its object is made again. A field that
            // depends on another Secret doesn't change with this one.
            if self.keeps(base, &alone, &follower) && !self.keeps(base, &both, &follower) {
                base.expected.followers.push(follower);
            }
        }
    }

    /// Number of histories to find out what follows a Secret, and whether it does.
    pub(super) fn count_followed(&self, base: &Base) -> usize {
        HISTORIES * followers(base).len().min(MOST_PAIRS)
    }

    fn keeps(&mut self, base: &Base, history: &History, follower: &Follower) -> bool {
        let outcome = self.run(history, &base.expected);
        let last = self.setting.declarations.len() - 1;
        let state = outcome.settled.get(last);
        state.is_some_and(|state| follower.is_unchanged(state))
    }

    /// Deletes the Secrets that fields follow.
    pub(super) fn replace_followed(&mut self, base: &Base) {
        for follower in &base.expected.followers {
            if let Some(history) = removal(base, &[&follower.secret]) {
                self.try_history(&history, &base.expected);
            }
        }
    }
}

/// Another actor deletes objects after the operator's last write.
fn removal(base: &Base, objects: &[&str]) -> Option<History> {
    let is_declared = |step: usize| !base.history.steps[step].deletes();
    let changing = changing(&base.outcome.moments, 0);
    let last = changing.iter().rfind(|moment| is_declared(moment.step))?;
    let perturbations = objects.iter().map(|object| Perturbation {
        at: last.name.clone(),
        action: Disturbance::Remove((*object).to_owned()),
    });
    Some(History {
        perturbations: perturbations.collect(),
        ..base.history.clone()
    })
}

/// All pairs of Secrets with generated values and fields of other objects that differ from run to
/// run.
fn followers(base: &Base) -> Vec<Follower> {
    let Some(state) = base.history.steps.iter().rposition(|step| !step.deletes()) else {
        return Vec::new();
    };
    let Some(state) = base.outcome.settled.get(state) else {
        return Vec::new();
    };
    let is_made = |name: &&str| base.outcome.made.contains(*name);
    let generated = base.expected.generated.iter();
    let secrets = generated
        .filter_map(|field| Some(field.split_once(" .")?.0))
        .filter(is_made);
    let mut secrets: Vec<&str> = secrets.collect();
    secrets.dedup();
    let mut found = Vec::new();
    for entry in &base.expected.mask {
        let Some((object, path)) = entry.split_once(" .").filter(|(object, _)| is_made(object)) else {
            continue;
        };
        let others = secrets.iter().filter(|secret| **secret != object);
        found.extend(others.filter_map(|secret| Follower::new(state, secret, object, &format!(".{path}"))));
    }
    found
}
