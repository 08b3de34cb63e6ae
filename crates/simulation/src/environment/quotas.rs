//! The quota controller, for the quotas of the simulation.

use serde_json::{Value, json};

use super::{Act, Behavior, World, status_act};
use crate::history::Pace;
use crate::later::{count, counted};
use crate::world::GIVEN;

/// Keeps the usage up to date: whoever deletes an object may create another one.
///
/// Quotas that the operator makes have no status, since nothing else in the simulation needs one.
pub(super) struct Quotas;

impl Behavior for Quotas {
    fn next(&self, world: &World, _: Pace) -> Vec<Act> {
        let quotas = world.of("", "resourcequotas");
        let own = quotas.filter(|quota| quota.value()["metadata"]["annotations"][GIVEN].is_string());
        own.filter_map(|quota| {
            let limits = quota.value()["spec"]["hard"].as_object()?;
            let (limit, _) = limits.iter().next()?;
            let resource = limit.strip_prefix(&counted(""))?;
            let used = count(world.objects(), quota.metadata("namespace"), resource);
            status_act(quota, json!({ "used": { limit: used.to_string() } }))
        })
        .collect()
    }
}

impl World {
    /// Whether a quota keeps Pods from being created in a namespace.
    pub(super) fn lacks_room_for_pods(&self, namespace: &str) -> bool {
        let quotas = self.of("", "resourcequotas");
        let mut quotas = quotas.filter(|quota| quota.metadata("namespace") == namespace);
        quotas.any(|quota| {
            let status = &quota.value()["status"];
            let count = |list: &Value| list[counted("pods")].as_str()?.parse::<usize>().ok();
            count(&status["hard"]).is_some_and(|most| count(&status["used"]) >= Some(most))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::{Cluster, block_on, workload};
    use super::*;

    #[test]
    fn workloads_wait_for_room() {
        for (plural, kind) in [("deployments", "Deployment"), ("statefulsets", "StatefulSet")] {
            block_on(async {
                let mut cluster = Cluster::empty(plural, Pace::Prompt);
                cluster.fill_quota("pods");
                cluster.create(&workload(kind)).await;
                let mut states = Vec::new();
                cluster
                    .settle(|cluster| {
                        let ready = cluster.objects(plural)[0].value()["status"]["readyReplicas"].as_i64();
                        states.push((cluster.objects("pods").len(), ready.unwrap_or_default()));
                    })
                    .await;
                states.dedup();
                assert_eq!(states.first(), Some(&(0, 0)), "{kind}: {states:?}");
                assert_eq!(states.last(), Some(&(2, 2)), "{kind}: {states:?}");
                assert!(
                    states.iter().all(|(pods, ready)| *pods as i64 >= *ready),
                    "{kind}: {states:?}"
                );
                assert!(cluster.objects("resourcequotas").is_empty());
            });
        }
    }

    #[test]
    fn deletion_makes_room() {
        block_on(async {
            let mut cluster = Cluster::with("statefulsets", &workload("StatefulSet"), Pace::Prompt).await;
            cluster.fill_quota("pods");
            let names = |cluster: &Cluster| -> Vec<String> {
                let pods = cluster.objects("pods");
                pods.iter().map(|pod| pod.metadata("uid").to_owned()).collect()
            };
            let before = names(&cluster);
            cluster.evict("web-0").await;
            let mut is_replaced = false;
            cluster
                .settle(|cluster| {
                    let is_full = !cluster.objects("resourcequotas").is_empty();
                    is_replaced |= is_full && names(cluster).len() == 2 && names(cluster) != before;
                })
                .await;
            assert!(is_replaced);
        });
    }
}
