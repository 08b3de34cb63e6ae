//! Prepares a controller to be run: erases its type and creates its queue, caches and workers.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use kube::Client;
use kube::runtime::events::Reporter;

use super::Controller;
use super::mapping_errors::MappingErrors;
use super::unselected::Departures;
use super::worker::Worker;
use super::worker::polls::Polls;
use crate::cache::Caches;
use crate::cluster::Clusters;
use crate::ctx::{ClusterLinks, ContextParts, Ctx, WatchTarget};
use crate::debug::ControllerQueue;
use crate::error::{Error, ManagerError};
use crate::events::new_event_channel;
use crate::kinds::Kinds;
use crate::leader_election::Fence;
use crate::metrics::Metrics;
use crate::object::{Key, Kind, Watchable};
use crate::queue::{NORMAL, Workqueue};
use crate::rate_limiter::ByReference;
use crate::request::Request;
use crate::shards::{Scope, ShardBy};
use crate::shutdown::Shutdown;

pub(crate) trait AnyController: Send {
    fn name(&self) -> &str;

    fn former_names(&self) -> &[String];

    /// Kind with its group, e.g. `Cup.shop.example.com`.
    #[cfg(feature = "testing")]
    fn group_kind(&self) -> String;

    /// Validates the settings. The error says how to fix them.
    fn check(&self) -> Result<(), ManagerError>;

    /// Subscribes to all caches, which then start filling the queue.
    ///
    /// The tasks of the returned controller may only run once the caches have synced and this
    /// process is the leader.
    fn prepare(self: Box<Self>, shared: &ManagerResources<'_>) -> PreparedController;
}

pub(crate) struct ManagerResources<'a> {
    pub(crate) client: Client,
    /// For controllers that only run on the leader.
    pub(crate) leader_client: Client,
    /// `None` if leader election is disabled.
    pub(crate) fence: Option<Fence>,
    pub(crate) caches: &'a Caches,
    pub(crate) kinds: Kinds,
    pub(crate) clusters: Clusters,
    pub(crate) metrics: Metrics,
    pub(crate) polls: &'a Polls,
    /// Makes event publishers exit once their queue is empty.
    pub(crate) stop_events: Shutdown,
}

pub(crate) struct PreparedController {
    pub(crate) name: String,
    pub(crate) everywhere: bool,
    pub(crate) concurrency: usize,
    /// Workers exit after the queue was closed, once they finish their current reconcile.
    pub(crate) workers: Vec<BoxFuture<'static, Result<(), Error>>>,
    pub(crate) events: BoxFuture<'static, ()>,
    kind: String,
    pub(crate) queue: Arc<Workqueue<Key>>,
    mapping_errors: MappingErrors,
}

impl PreparedController {
    pub(crate) fn debug_queue(&self) -> ControllerQueue {
        let errors = self.mapping_errors.clone();
        ControllerQueue::new(
            &self.name,
            self.kind.clone(),
            self.concurrency,
            &self.queue,
            errors,
        )
    }
}

impl<K: Watchable, S: Send + Sync + 'static> AnyController for Controller<K, S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn former_names(&self) -> &[String] {
        &self.former_names
    }

    #[cfg(feature = "testing")]
    fn group_kind(&self) -> String {
        self.kind.group_kind()
    }

    fn check(&self) -> Result<(), ManagerError> {
        let has_finalizers = !self.handlers.finalizers.is_empty();
        if self.unselected.is_none() && has_finalizers && self.selection.can_lose_objects() {
            return Err(ManagerError::Selection {
                kind: self.kind.describe(),
                reason: "an object that leaves it keeps the finalizer of the controller and could never be deleted; \
                     add `.when_unselected(…)` to the controller",
            });
        }
        if self.division.by == ShardBy::Namespace && !self.kind.namespaced {
            return Err(ManagerError::ShardBy(self.kind.describe()));
        }
        Ok(())
    }

    fn prepare(self: Box<Self>, shared: &ManagerResources<'_>) -> PreparedController {
        let Self {
            name,
            former_names,
            kind,
            selection,
            unselected,
            need,
            filter,
            state,
            concurrency,
            everywhere,
            division,
            timeout,
            recover_panics,
            resync,
            backoff,
            limiter,
            handlers,
            watches,
            triggers,
            reads,
            kinds,
        } = *self;
        let caches = shared.caches;
        let (client, fence) = match everywhere {
            true => (&shared.client, None),
            false => (&shared.leader_client, shared.fence.clone()),
        };
        let (sender, waiting) = new_event_channel(shared.metrics.events_dropped(&name));
        let events = waiting
            .publish(
                client.clone(),
                Reporter::from(name.as_str()),
                shared.stop_events.clone().requested(),
            )
            .boxed();
        let queue = Workqueue::new(shared.metrics.queue(&name)).with_backoff(backoff);
        let queue = Arc::new(match limiter {
            Some(limiter) => queue.with_rate_limiter(Box::new(ByReference {
                kind: kind.clone(),
                limiter,
            })),
            None => queue,
        });
        // A controller that runs on every replica needs all objects.
        let shards = caches.options().shards.clone().filter(|_| !everywhere);
        let selection = match &shards {
            Some(_) => selection.in_scope(Scope::Own(division.by)),
            None => selection,
        };
        let mapping_errors = MappingErrors::new(&name, shared.metrics.mapping_errors(&name));
        let parts = ContextParts {
            mapping_errors: mapping_errors.clone(),
            client: client.clone(),
            controller: name.clone(),
            former_names,
            events: sender,
            caches: caches.clone(),
            kinds: shared.kinds.clone(),
            watch_target: Some(WatchTarget::new(&kind, &queue)),
            division: shards.is_some().then_some(division),
            links: ClusterLinks {
                clusters: shared.clusters.clone(),
                fence: fence.clone(),
                metrics: shared.metrics.clone(),
                stop_events: Some(shared.stop_events.clone()),
            },
        };
        let ctx = Ctx::from_parts(parts, state);
        ctx.add_kind(&kind);
        kinds.into_iter().for_each(|kind| shared.kinds.add(kind));
        let finalizers = handlers.finalizers.iter();
        let finalizers = finalizers.map(|finalizer| finalizer.name.clone()).collect();
        // Without mutable selectors, objects never leave the selection.
        let unselected = unselected.filter(|_| selection.can_lose_objects());
        let worker = Arc::new(Worker {
            departures: Arc::new(Departures::new(unselected, finalizers)),
            cache: caches.of_needed(&kind, &selection, need),
            queue: Arc::clone(&queue),
            deleted: Arc::default(),
            shards,
            shard_by: division.by,
            conflicts: Mutex::default(),
            fence,
            timeout,
            recover_panics,
            handlers,
            metrics: shared.metrics.controller(&name, concurrency),
            ctx,
        });
        // Hold a weak reference, so that the metrics don't keep the queue alive.
        let counted = Arc::downgrade(&queue);
        shared.metrics.before_scrape(move || {
            if let Some(queue) = counted.upgrade() {
                queue.refresh_metrics();
            }
        });
        reads.into_iter().for_each(|read| read(caches));
        worker.watch_primary(filter);
        for watch in watches {
            watch(&kind, &queue, &worker.ctx);
        }
        let mut workers: Vec<BoxFuture<'static, Result<(), Error>>> = Vec::new();
        workers.extend((0..concurrency).map(|_| Arc::clone(&worker).work(shared.polls.slot()).boxed()));
        for requests in triggers {
            let triggered = enqueue_triggers(requests, kind.clone(), Arc::clone(&queue));
            workers.push(triggered.map(Ok).boxed());
        }
        if worker.departures.are_handled() {
            workers.push(Arc::clone(&worker).find_departed().map(Ok).boxed());
        }
        if let Some(period) = resync {
            workers.push(Arc::clone(&worker).resync(period).map(Ok).boxed());
        }
        PreparedController {
            name,
            everywhere,
            concurrency,
            workers,
            events,
            kind: kind.describe(),
            queue,
            mapping_errors,
        }
    }
}

/// Forwards requests from a stream until the queue is closed.
async fn enqueue_triggers<K: Watchable>(
    mut requests: BoxStream<'static, Request<K>>,
    kind: Kind<K>,
    queue: Arc<Workqueue<Key>>,
) {
    let enqueue_all = async {
        while let Some(request) = requests.next().await {
            request.to_key_request(&kind).enqueue(&queue, NORMAL);
        }
        // The controller keeps running after the stream ends, so don't return.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = enqueue_all => {}
        () = queue.closed() => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::reflector::ObjectRef;
    use tokio::time::Instant;

    use super::*;
    use crate::trigger;

    #[tokio::test(start_paused = true)]
    async fn trigger_has_a_priority_and_a_delay() {
        let queue = Arc::new(Workqueue::new(Metrics::new().queue("test")));
        let (trigger, triggers) = trigger::channel::<ConfigMap>();
        let minute = Duration::from_secs(60);
        trigger.send(ObjectRef::new("plain")).await;
        for request in [
            Request::new(ObjectRef::new("low")).low_priority(),
            Request::new(ObjectRef::new("high")).priority(10),
            Request::new(ObjectRef::new("later")).after(minute),
        ] {
            assert!(trigger.try_send(request));
        }
        let enqueuing = tokio::spawn(enqueue_triggers(
            triggers.boxed(),
            Kind::of_type(),
            Arc::clone(&queue),
        ));
        let started = Instant::now();
        tokio::task::yield_now().await;
        for (expected, waited) in [
            ("high", Duration::ZERO),
            ("plain", Duration::ZERO),
            ("low", Duration::ZERO),
            ("later", minute),
        ] {
            let key = queue.next().await.unwrap();
            assert_eq!(
                (&*key.name, started.elapsed().as_secs()),
                (expected, waited.as_secs())
            );
            queue.done(&key);
        }
        queue.close();
        enqueuing.await.unwrap();
    }
}
