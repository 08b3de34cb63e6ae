// SPDX-License-Identifier: Apache-2.0

//! Detects when all objects are in the desired state, independently of the operator.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bench_operator::api::Memcached;
use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use tokio::task::JoinSet;

use crate::cluster::Cluster;

/// Timeout per object.
const PER_OBJECT: Duration = Duration::from_millis(100);

/// Running watches.
pub struct Observer {
    watches: JoinSet<Result<Instant>>,
    limit: Duration,
}

impl Observer {
    /// Starts watching Memcacheds and Deployments.
    pub fn new(cluster: &Cluster) -> Self {
        let objects: Api<Memcached> = Api::all(cluster.client.clone());
        let deployments: Api<PartialObjectMeta<Deployment>> = Api::all(cluster.client.clone());
        let expected = cluster.objects;
        let mut watches = JoinSet::new();
        watches.spawn(async move {
            // Lists pages of 500 objects by default, which costs the server little.
            let objects = watcher::watcher(objects, watcher::Config::default());
            seen(objects, expected, is_available).await
        });
        watches.spawn(async move {
            let deployments = watcher::watcher(deployments, watcher::Config::default());
            seen(
                deployments,
                expected,
                |_: &PartialObjectMeta<Deployment>| true,
            )
            .await
        });
        let limit =
            Duration::from_secs(60) + PER_OBJECT * u32::try_from(expected).unwrap_or(u32::MAX);
        Self { watches, limit }
    }

    /// Returns the time at which the last object reached the desired state.
    pub async fn steady(mut self) -> Result<Instant> {
        let deadline = tokio::time::Instant::now() + self.limit;
        let mut last = None;
        while let Some(seen) = tokio::time::timeout_at(deadline, self.watches.join_next()).await? {
            last = last.max(Some(seen??));
        }
        match last {
            Some(last) => Ok(last),
            None => bail!("nothing was watched"),
        }
    }
}

fn is_available(object: &Memcached) -> bool {
    let conditions = object.status.iter().flat_map(|status| &status.conditions);
    let mut available = conditions.filter(|condition| condition.type_ == "Available");
    available.any(|condition| {
        condition.status == "True" && condition.observed_generation == object.metadata.generation
    })
}

/// Returns the time at which the expected number of objects has been wanted.
async fn seen<K: Resource>(
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    expected: usize,
    wanted: impl Fn(&K) -> bool,
) -> Result<Instant> {
    let mut events = std::pin::pin!(events);
    let mut done = HashSet::new();
    while done.len() < expected {
        match events.next().await {
            Some(Ok(Event::Apply(object) | Event::InitApply(object))) if wanted(&object) => {
                done.insert(object.meta().uid.clone());
            }
            Some(Ok(_)) => {}
            // An API server that has just started cannot be watched yet. The watcher tries again.
            Some(Err(_)) => tokio::time::sleep(Duration::from_secs(1)).await,
            None => bail!("a watch ended"),
        }
    }
    Ok(Instant::now())
}
