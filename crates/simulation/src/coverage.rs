//! Coverage of a search: which requests were disturbed, and by what.

use std::collections::BTreeMap;

use crate::history::{Disturbance, Perturbation};
use crate::traffic::Moment;

/// Perturbation kinds with their descriptions, in report order.
pub(crate) const KINDS: &[(&str, &str)] = &[
    ("crash-before", "the operator dies before a request"),
    ("crash-after", "the operator dies after a request"),
    (
        "crash-into-past",
        "the operator dies, and its next caches begin in the past",
    ),
    (
        "crash-behind",
        "the operator dies, and its next cache of the declared kind begins in the past",
    ),
    ("cut-off", "a process cannot reach the server for 30 seconds"),
    ("lose-answer", "the answer to a request is lost"),
    ("refuse-409", "the server answers with 409"),
    ("refuse-429", "the server answers with 429"),
    ("refuse-500", "the server answers with 500"),
    ("refuse-503", "the server answers with 503"),
    ("refuse-504", "the server answers with 504"),
    ("forbid", "a permission is missing for a time"),
    ("fill-quota", "a quota is full for a time"),
    ("delay-events", "the events of a kind are late"),
    ("slow", "the answer of an external system takes a minute"),
    ("end-watches", "all watches end"),
    ("expire-watches", "all watches expire"),
    ("remove", "another actor deletes an object of the operator"),
    (
        "remove-later",
        "another actor deletes an object while the operator is idle",
    ),
    ("edit", "another actor changes an object of the operator"),
    ("evict", "a Pod is evicted"),
    (
        "redeclare",
        "the declared object is deleted and declared again, unseen",
    ),
    (SLOW_ENVIRONMENT, "the environment is slow"),
    (FAILING_ENVIRONMENT, "nothing in the environment becomes ready"),
    (
        BREAKING_ENVIRONMENT,
        "the environment breaks after everything was ready",
    ),
    (FOREGROUND, "objects are deleted in the foreground"),
    (OTHER_ORDER, "the objects are declared in the opposite order"),
    (MONTHS, "three months pass"),
    (TWO_REPLICAS, "two replicas elect a leader"),
    (OTHER_DECLARATION, "another declaration, and back"),
    (
        ELSEWHERE,
        "objects of the same names in another namespace, and the end of it",
    ),
];

pub(crate) const SLOW_ENVIRONMENT: &str = "slow-environment";
pub(crate) const FAILING_ENVIRONMENT: &str = "failing-environment";
pub(crate) const BREAKING_ENVIRONMENT: &str = "breaking-environment";
pub(crate) const FOREGROUND: &str = "foreground";
pub(crate) const OTHER_ORDER: &str = "other-order";
pub(crate) const MONTHS: &str = "months";
pub(crate) const TWO_REPLICAS: &str = "two-replicas";
pub(crate) const ELSEWHERE: &str = "elsewhere";
pub(crate) const OTHER_DECLARATION: &str = "other-declaration";

/// A request that the operator sends in an undisturbed run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CoveredRequest {
    /// Request and ordinal, e.g. `create pods default/a #1`.
    pub(crate) name: String,
    pub(crate) changes: bool,
    /// Number of hits per perturbation kind.
    pub(crate) disturbed: BTreeMap<String, usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tried {
    /// Number of histories that contain this kind.
    pub(crate) histories: usize,
    /// Number of histories in which it was actually triggered. May be lower than `histories`, since
    /// a disturbed operator doesn't necessarily send the request that a perturbation is attached
    /// to.
    pub(crate) reached: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) requests: Vec<CoveredRequest>,
    numbers: BTreeMap<String, usize>,
    pub(crate) kinds: BTreeMap<String, Tried>,
}

impl Coverage {
    /// Registers the requests of an undisturbed run.
    pub(crate) fn add_requests(&mut self, moments: &[Moment]) {
        for moment in moments {
            let number = self.numbers.entry(moment.name.clone()).or_insert_with(|| {
                self.requests.push(CoveredRequest {
                    name: moment.name.clone(),
                    changes: false,
                    disturbed: BTreeMap::new(),
                });
                self.requests.len() - 1
            });
            self.requests[*number].changes |= moment.changed;
        }
    }

    pub(crate) fn note(&mut self, kind: &str) {
        let tried = self.kinds.entry(kind.to_owned()).or_default();
        tried.histories += 1;
        tried.reached += 1;
    }

    /// Counts how often each kind of perturbation was tried in a history and how often it was
    /// triggered; `unreached` lists the perturbations that never were.
    pub(crate) fn note_perturbations(&mut self, tried: &[Perturbation], unreached: &[Perturbation]) {
        for perturbation in tried {
            let kind = kind_of(&perturbation.action);
            let counts = self.kinds.entry(kind.clone()).or_default();
            counts.histories += 1;
            if unreached.contains(perturbation) {
                continue;
            }
            counts.reached += 1;
            if let Some(number) = self.numbers.get(&perturbation.at) {
                *self.requests[*number].disturbed.entry(kind).or_default() += 1;
            }
        }
    }

    /// Total number of writes, and how many of them were disturbed.
    pub(crate) fn writes(&self) -> (usize, usize) {
        let writes = self.requests.iter().filter(|request| request.changes);
        let is_covered = |request: &&CoveredRequest| !request.disturbed.is_empty();
        (writes.clone().count(), writes.filter(is_covered).count())
    }
}

fn kind_of(action: &Disturbance) -> String {
    let kind = match action {
        Disturbance::Refuse(code) => return format!("refuse-{code}"),
        Disturbance::CrashBefore => "crash-before",
        Disturbance::CrashAfter => "crash-after",
        Disturbance::CrashIntoPast => "crash-into-past",
        Disturbance::CrashBehind(_) => "crash-behind",
        Disturbance::CutOff => "cut-off",
        Disturbance::LoseAnswer => "lose-answer",
        Disturbance::Forbid => "forbid",
        Disturbance::FillQuota(_) => "fill-quota",
        Disturbance::DelayEvents(_) => "delay-events",
        Disturbance::Slow => "slow",
        Disturbance::EndWatches => "end-watches",
        Disturbance::ExpireWatches => "expire-watches",
        Disturbance::Remove(_) => "remove",
        Disturbance::RemoveLater(_) => "remove-later",
        Disturbance::Edit(_) => "edit",
        Disturbance::Evict(_) => "evict",
        Disturbance::Redeclare(_) => "redeclare",
    };
    kind.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(name: &str, changed: bool) -> Moment {
        Moment {
            name: name.to_owned(),
            changed,
            is_external: false,
            creates: false,
            step: 0,
        }
    }

    #[test]
    fn unreached_perturbations_cover_nothing() {
        let mut coverage = Coverage::default();
        coverage.add_requests(&[
            moment("list pods #1", false),
            moment("create pods default/a #1", true),
        ]);
        coverage.add_requests(&[moment("delete pods default/a #1", true)]);
        let at = |at: &str| Perturbation {
            at: at.to_owned(),
            action: Disturbance::Refuse(409),
        };
        let tried = [at("create pods default/a #1"), at("delete pods default/a #1")];
        coverage.note_perturbations(&tried, &tried[1..]);
        assert_eq!(coverage.writes(), (2, 1));
        let expected = Tried {
            histories: 2,
            reached: 1,
        };
        assert_eq!(coverage.kinds["refuse-409"], expected);
    }

    #[test]
    fn reports_list_each_kind_of_perturbation() {
        let text = "a".to_owned();
        for action in [
            Disturbance::CrashBefore,
            Disturbance::CrashAfter,
            Disturbance::CrashIntoPast,
            Disturbance::CrashBehind(text.clone()),
            Disturbance::CutOff,
            Disturbance::LoseAnswer,
            Disturbance::Forbid,
            Disturbance::FillQuota(text.clone()),
            Disturbance::DelayEvents(text.clone()),
            Disturbance::Slow,
            Disturbance::EndWatches,
            Disturbance::ExpireWatches,
            Disturbance::Remove(text.clone()),
            Disturbance::RemoveLater(text.clone()),
            Disturbance::Edit(text.clone()),
            Disturbance::Evict(text.clone()),
            Disturbance::Redeclare(text),
        ]
        .into_iter()
        .chain(crate::placement::CODES.map(Disturbance::Refuse))
        {
            let kind = kind_of(&action);
            assert!(KINDS.iter().any(|(known, _)| *known == kind), "{kind}");
        }
    }
}
