//! Mishaps of a cluster that every operator has to cope with: objects that are deleted while it is
//! idle, Pods that are evicted, and quotas that are full.

use std::collections::BTreeSet;

use crate::history::{Disturbance, Perturbation, Step};
use crate::placement::{at_each, changing, children, last_declared};
use crate::run::Outcome;
use crate::traffic::Moment;

/// Number of mishaps of a kind that every operator gets.
const MOST: usize = 4;

/// Resources whose controllers create Pods.
const HAVE_PODS: [&str; 5] = [
    "daemonsets.apps",
    "deployments.apps",
    "jobs.batch",
    "replicasets.apps",
    "statefulsets.apps",
];

/// Late deletions, evictions and full quotas, as three lists.
///
/// A deletion or an eviction is first tried after the last request, when the operator is idle, and
/// a full quota when the first object of the kind is created.
pub(crate) fn mishaps(
    steps: &[Step],
    outcome: &Outcome,
    declared: &[String],
    first_step: usize,
) -> [Vec<Perturbation>; 3] {
    let changing = changing(&outcome.moments, first_step);
    let declaring = changing.iter().filter(|moment| !steps[moment.step].deletes());
    let declaring: Vec<&Moment> = declaring.rev().copied().collect();
    let pods = pods_to_evict(steps, outcome, declared);
    // An eviction says more than the deletion of a workload's Pod.
    let is_made = |name: &&&String| !name.starts_with("pods ") || outcome.made.contains(**name);
    let children = children(steps, outcome, declared);
    let removals = children.iter().filter(is_made);
    let removals = removals.map(|name| Disturbance::RemoveLater((*name).clone()));
    let evictions = pods.into_iter().map(|name| Disturbance::Evict(name.clone()));
    [
        at_all(&declaring, removals),
        at_all(&declaring, evictions),
        full_quotas(&changing),
    ]
}

/// The mishaps that every operator gets.
pub(crate) fn first_mishaps(mishaps: &[Vec<Perturbation>; 3]) -> Vec<Perturbation> {
    let lists = mishaps.iter().map(|list| one_of_each(list));
    lists.flat_map(|list| list.into_iter().take(MOST)).collect()
}

fn at_all(moments: &[&Moment], actions: impl Iterator<Item = Disturbance>) -> Vec<Perturbation> {
    actions
        .flat_map(|action| at_each(moments, &action).collect::<Vec<_>>())
        .collect()
}

/// The first perturbation with each disturbance.
fn one_of_each(list: &[Perturbation]) -> Vec<Perturbation> {
    let mut found: Vec<Perturbation> = Vec::new();
    for perturbation in list {
        if found.iter().all(|known| known.action != perturbation.action) {
            found.push(perturbation.clone());
        }
    }
    found
}

/// Quotas of the created objects, and of the Pods of created workloads.
fn full_quotas(changing: &[&Moment]) -> Vec<Perturbation> {
    let mut list = Vec::new();
    for moment in changing.iter().filter(|moment| moment.creates) {
        let resource = moment.resource();
        // A cluster-scoped object has no quota, and a subresource isn't an object.
        if moment.namespace().is_empty() || resource.contains('/') {
            continue;
        }
        let pods = HAVE_PODS.contains(&resource).then_some("pods");
        for resource in std::iter::once(resource).chain(pods) {
            let action = Disturbance::FillQuota(resource.to_owned());
            list.extend(at_each(&[*moment], &action));
        }
    }
    list
}

/// Pods that somebody has to replace: those that the operator has made, and one of each workload.
///
/// A Pod that is never restarted, or only after a failure, may end for good.
fn pods_to_evict<'o>(steps: &[Step], outcome: &'o Outcome, declared: &[String]) -> Vec<&'o String> {
    let mut owners = BTreeSet::new();
    let pods = last_declared(steps, outcome).filter(|(name, pod)| {
        let is_made = outcome.made.contains(*name);
        name.starts_with("pods ")
            && !declared.contains(name)
            && (is_made || outcome.asks_for_pods)
            && pod["spec"]["restartPolicy"] == "Always"
            && (is_made || owners.insert(pod["metadata"]["ownerReferences"][0].to_string()))
    });
    pods.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::world::Snapshot;

    fn moment(name: &str, creates: bool, step: usize) -> Moment {
        Moment {
            name: name.to_owned(),
            changed: true,
            is_external: false,
            creates,
            step,
        }
    }

    fn pod(policy: &str, owner: &str) -> Value {
        json!({ "metadata": { "ownerReferences": [{ "name": owner }] }, "spec": { "restartPolicy": policy } })
    }

    #[test]
    fn pods_and_kinds_of_created_objects_have_mishaps() {
        let objects = [
            ("pods x/bare", pod("Always", "app")),
            ("pods x/once", pod("Never", "app")),
            ("pods x/set-0", pod("Always", "set")),
            ("pods x/set-1", pod("Always", "set")),
            ("statefulsets.apps x/set", json!({})),
        ];
        let mut state = Snapshot::default();
        let named = objects.map(|(name, value)| (name.to_owned(), value));
        state.objects.extend(named);
        let made = ["pods x/bare", "pods x/once", "statefulsets.apps x/set"].map(str::to_owned);
        let outcome = Outcome {
            settled: vec![state],
            moments: vec![
                moment("patch statefulsets.apps x/set #1", true, 0),
                moment("create pods x/bare #1", true, 0),
                moment("patch nodes n #1", true, 0),
                moment("patch apps.example.com/status x/app #1", false, 0),
                moment("delete pods x/bare #1", false, 1),
            ],
            made: made.into(),
            asks_for_pods: true,
            ..Outcome::default()
        };
        let mishaps = mishaps(&[Step::Apply(0), Step::Delete(0)], &outcome, &[], 0);
        let [removals, evictions, quotas] = mishaps.map(|list| {
            let list = one_of_each(&list).into_iter();
            list.map(|perturbation| perturbation.to_string())
                .collect::<Vec<_>>()
        });
        let last = "10 seconds after `patch apps.example.com/status x/app #1`";
        let removed = ["pods x/bare", "pods x/once", "statefulsets.apps x/set"];
        assert_eq!(
            removals,
            removed.map(|name| format!("another actor deletes {name} {last}"))
        );
        let evicted = ["pods x/bare", "pods x/set-0"];
        assert_eq!(evictions, evicted.map(|name| format!("{name} is evicted {last}")));
        let full = [
            ("statefulsets.apps", "patch statefulsets.apps x/set #1"),
            ("pods", "patch statefulsets.apps x/set #1"),
        ];
        assert_eq!(
            quotas,
            full.map(|(kind, at)| format!("a quota has no room for {kind} for 30 seconds, from `{at}` on"))
        );
    }
}
