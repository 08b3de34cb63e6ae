//! Contexts of a controller in additional clusters.
//!
//! All methods of [`Ctx`] use its client and its caches, so another cluster needs an ordinary
//! context with the client and the caches of that cluster. The state and the queue are shared with
//! the controller; everything else is separate (e.g. the record of previous applies). These
//! contexts are created on first use, and exist until the cluster is removed.

use std::sync::Arc;

use futures::FutureExt;
use kube::runtime::events::Reporter;
use kube::{Client, ResourceExt};

use super::applied::AppliedObjects;
use super::apply_set::{AppliedSetsPool, Searches};
use super::{Ctx, LateWatches, Shared};
use crate::cluster::{Cluster, Clusters};
use crate::error::OwnershipError;
use crate::events::new_event_channel;
use crate::leader_election::{Fence, fence_client};
use crate::metrics::Metrics;
use crate::object::{AnyObject, Key, describe_object};
use crate::shutdown::Shutdown;

#[derive(Clone)]
pub(crate) struct ClusterLinks {
    pub(crate) clusters: Clusters,
    /// Required for writes, no matter which cluster they go to.
    pub(crate) fence: Option<Fence>,
    pub(crate) metrics: Metrics,
    /// Makes event publishers exit once their queue is empty. `None` in tests.
    pub(crate) stop_events: Option<Shutdown>,
}

impl ClusterLinks {
    /// For contexts that don't belong to a manager.
    pub(super) fn of_test() -> Self {
        Self {
            clusters: Clusters::default(),
            fence: None,
            metrics: Metrics::new(),
            stop_events: None,
        }
    }

    fn fence(&self, client: Client) -> Client {
        match &self.fence {
            Some(fence) => fence_client(client, fence),
            None => client,
        }
    }
}

/// The part of a context that only exists outside of the manager's own cluster.
pub(super) struct OtherCluster {
    cluster: Cluster,
    /// The corresponding context in the manager's own cluster.
    own: Arc<Shared>,
}

impl<S> Ctx<S> {
    /// Returns the context of this controller in another cluster. All of its methods use the caches
    /// and the API server of that cluster. Cheap, except for the first call.
    ///
    /// Leader election always takes place in the manager's own cluster. With `--leader-elect`,
    /// writes to any cluster fail once this process has lost its lease.
    ///
    /// [`cached`](Self::cached) returns an error until the cache has synced; otherwise the cluster
    /// would seem to be empty. If the cluster becomes unreachable, failed reconciles are retried
    /// with backoff, and immediately once it is back.
    ///
    /// # Owner references
    ///
    /// Owner references can't refer to objects in other clusters. The `…_owned` methods return an
    /// error if the owner is in a different cluster. Instead, you can store the owner in a label or
    /// an annotation, map changes to the owner with
    /// [`Watch::in_cluster`](crate::Watch::in_cluster), and delete the objects in a
    /// [finalizer](crate::Controller::finalizer).
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use rbuilder::{Cluster, Ctx, Result};
    /// # struct State { edge: Cluster }
    /// # async fn copy(ctx: Ctx<State>, map: ConfigMap) -> Result<()> {
    /// ctx.in_cluster(&ctx.edge).apply(map).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if called from outside of a tokio runtime.
    pub fn in_cluster(&self, cluster: &Cluster) -> Self {
        let own = self.own_shared();
        let controller = Arc::as_ptr(own).addr();
        let shared = cluster.context_of(controller, || Arc::new(new_shared(own, cluster)));
        Self {
            shared,
            state: Arc::clone(&self.state),
            forces: self.forces,
            applied_sets: self.applied_sets.clone(),
        }
    }

    /// Returns the cluster passed to [`in_cluster`](Self::in_cluster), or `None` for the manager's
    /// own cluster.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.shared.other_cluster.as_ref().map(|other| &other.cluster)
    }

    pub(crate) fn in_own_cluster(&self) -> Self {
        Self {
            shared: Arc::clone(self.own_shared()),
            ..self.clone()
        }
    }

    pub(crate) fn clusters(&self) -> &Clusters {
        &self.own_shared().links.clusters
    }

    fn own_shared(&self) -> &Arc<Shared> {
        let other = self.shared.other_cluster.as_ref();
        other.map_or(&self.shared, |other| &other.own)
    }

    /// Checks that `owner` isn't in another cluster, before writing `object` in this one.
    ///
    /// Only caches can tell: if the owner's UID is in a cache of another cluster but in none of
    /// this cluster, the owner is in the other cluster. Owners of kinds that aren't cached are
    /// accepted.
    pub(super) fn check_owner_cluster<O: AnyObject, C: AnyObject>(
        &self,
        owner: &O,
        object: &C,
    ) -> Result<(), OwnershipError> {
        let own = self.own_shared();
        let clusters = own.links.clusters.list();
        // Skip the search in the common case of a single cluster.
        if clusters.is_empty() && self.cluster().is_none() {
            return Ok(());
        }
        let (key, uid) = (Key::of_meta(owner.meta()), owner.uid().unwrap_or_default());
        if self.shared.caches.has_object(&key, &uid) {
            return Ok(());
        }
        let others = clusters.iter().map(Cluster::caches).chain([&own.caches]);
        let mut elsewhere = others.filter(|caches| caches.has_object(&key, &uid));
        match elsewhere.next() {
            None => Ok(()),
            Some(caches) => Err(OwnershipError::OtherCluster {
                object: describe_object(object),
                cluster: describe_cluster(self.shared.caches.cluster()),
                owner: describe_object(owner),
                owner_cluster: describe_cluster(caches.cluster()),
            }),
        }
    }
}

fn describe_cluster(name: Option<&str>) -> String {
    name.map_or_else(
        || "the manager's own cluster".to_owned(),
        |name| format!("the cluster `{name}`"),
    )
}

fn new_shared(own: &Arc<Shared>, cluster: &Cluster) -> Shared {
    let links = own.links.clone();
    let client = links.fence(cluster.client());
    let stopped = links.stop_events.clone();
    let (events, waiting) = new_event_channel(links.metrics.events_dropped(&own.controller));
    let reporter = Reporter::from(own.controller.as_str());
    let publisher = waiting.publish(client.clone(), reporter, async move {
        match stopped {
            Some(stopped) => stopped.requested().await,
            None => std::future::pending().await,
        }
    });
    cluster.run_publisher(&own.controller, publisher.boxed());
    if let Some(target) = &own.watch_target {
        // Don't make reconciles that failed because the cluster was unreachable sit out their
        // backoff.
        let queue = Arc::clone(target.queue());
        cluster.on_ready(move || queue.retry_failed());
    }
    Shared {
        client,
        controller: own.controller.clone(),
        former_names: own.former_names.clone(),
        events,
        caches: cluster.caches().clone(),
        kinds: cluster.kinds().clone(),
        watch_target: own.watch_target.clone(),
        late_watches: LateWatches::default(),
        applied: AppliedObjects::new(own.caches.options().applied_bytes),
        searches: Searches::default(),
        applied_sets: AppliedSetsPool::default(),
        // Objects in other clusters can't have owners in the manager's cluster.
        division: None,
        links,
        mapping_errors: own.mapping_errors.clone(),
        other_cluster: Some(OtherCluster {
            cluster: cluster.clone(),
            own: Arc::clone(own),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::client::Body;
    use kube::core::ObjectMeta;
    use serde_json::json;
    use tokio::time::Instant;

    use super::super::ContextParts;
    use super::*;
    use crate::cache::{CacheOptions, Caches};
    use crate::controller::MappingErrors;
    use crate::kinds::Kinds;

    fn client() -> Client {
        let service = tower::service_fn(|_: Request<Body>| async {
            let body = json!({ "metadata": { "name": "any", "namespace": "default" } });
            Ok::<_, Infallible>(Response::new(Body::from(body.to_string().into_bytes())))
        });
        Client::new(service, "default")
    }

    fn leader_context(fence: &Fence) -> Ctx<()> {
        let (events, _) = new_event_channel(Metrics::new().events_dropped("memo"));
        let (caches, _) = Caches::new(client(), Vec::new(), CacheOptions::default());
        let links = ClusterLinks {
            fence: Some(fence.clone()),
            ..ClusterLinks::of_test()
        };
        let parts = ContextParts {
            client: client(),
            controller: "memo".to_owned(),
            former_names: Vec::new(),
            events,
            caches,
            kinds: Kinds::default(),
            watch_target: None,
            division: None,
            links,
            mapping_errors: MappingErrors::new("memo", Metrics::new().mapping_errors("memo")),
        };
        Ctx::from_parts(parts, ())
    }

    #[tokio::test(start_paused = true)]
    async fn writes_to_other_clusters_require_the_own_clusters_lease() {
        let fence = Fence::new("operator");
        let edge = leader_context(&fence).in_cluster(&Cluster::new("edge", client()));
        let map = || ConfigMap {
            metadata: ObjectMeta {
                name: Some("any".to_owned()),
                namespace: Some("default".to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        let refusal = async || edge.apply(map()).await.unwrap_err().to_string();
        assert!(refusal().await.contains("is not held yet"), "{}", refusal().await);
        assert!(fence.extend(Instant::now() + Duration::from_secs(10)));
        edge.apply(map()).await.unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(
            refusal().await.contains("is no longer held"),
            "{}",
            refusal().await
        );
        let read = edge.api::<ConfigMap>(&map()).get("any").await;
        assert!(read.is_ok(), "reads need no lease");
    }
}
