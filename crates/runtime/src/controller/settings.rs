//! Settings of a controller: concurrency, timeouts, retries and its name.

use std::time::Duration;

use kube::runtime::reflector::ObjectRef;

use super::Controller;
use crate::backoff::Backoff;
use crate::object::Watchable;
use crate::rate_limiter::RateLimiter;
use crate::shards::ShardBy;

/// Maximum number of workers. Each takes memory and is woken when the queue closes.
const MOST_WORKERS: usize = 10_000;

impl<K: Watchable, S: Send + Sync + 'static> Controller<K, S> {
    /// Sets the maximum number of concurrent reconciles, clamped to between 1 and 10,000. Defaults
    /// to 4.
    pub fn concurrency(mut self, max: usize) -> Self {
        self.concurrency = max.clamp(1, MOST_WORKERS);
        self
    }

    /// Runs the controller in every replica, leader or not, once the caches are synced.
    ///
    /// Use it for state that is local to the replica, such as an in-memory table. Replicas that
    /// write the same object conflict with each other.
    pub fn on_every_replica(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// Sets what decides which replica of a [sharded](crate::Manager::sharded) operator works on an
    /// object. Defaults to its UID.
    ///
    /// With [`ShardBy::Namespace`], a replica works on all objects of a namespace, and only watches the
    /// [owned](Self::owns) objects in its namespaces, which the API server selects if it can. Use it if
    /// there are many namespaces of similar size, with names that the hash spreads evenly; see [`ShardBy`].
    ///
    /// The manager refuses to start if the kind has no namespaces. Nothing changes without shards.
    pub fn shard_by(mut self, field: ShardBy) -> Self {
        self.division.by = field;
        self
    }

    /// Labels owned objects with the shard of their owner, so that a replica of a
    /// [sharded](crate::Manager::sharded) operator only receives its own, from API servers of every
    /// version.
    ///
    /// Otherwise every replica receives the [owned](Self::owns) objects of all replicas and drops most
    /// of them, because the API server does not look at owners. The label is
    /// `rbuilder.dev/owner-shard`. [`Ctx::apply_owned`](crate::Ctx::apply_owned),
    /// [`create_owned`](crate::Ctx::create_owned),
    /// [`create_or_update_owned`](crate::Ctx::create_or_update_owned) and apply sets add it. Owned objects without it are
    /// invisible until one of these functions writes them again, so do not use this for objects that are created in
    /// other ways. Nothing changes without shards, or with [`ShardBy::Namespace`].
    pub fn label_owned(mut self) -> Self {
        self.division.labels_owned = true;
        self
    }

    /// Sets the name of the controller. Defaults to the kind in lower case.
    ///
    /// The name is the field manager of applied objects, the reporter of events, and a label in logs and metrics. It
    /// must be unique in a manager.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Cancels a reconcile that takes longer than `limit` and treats it as failed. Unlimited by default.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets the delays after failed reconciles of an object: `min` after the first, then doubling up to `max`, until one
    /// succeeds. Defaults to 5 ms and 1000 s, as in controller-runtime.
    ///
    /// A delay is never shorter than 1 ms and never longer than `max`, even if `min` is. This is a
    /// shorthand for [`rate_limiter`](Self::rate_limiter) and replaces a limiter that was set
    /// before.
    pub fn backoff(mut self, min: Duration, max: Duration) -> Self {
        self.backoff = Backoff { min, max };
        self.limiter = None;
        self
    }

    /// Sets the limiter that decides on the delays after failed reconciles, for example one shared
    /// by all objects. Defaults to exponential back-off for each object; see
    /// [`rate_limiter`](crate::rate_limiter).
    ///
    /// The limiter is consulted after errors, conflicts, panics and timeouts, and told to forget an
    /// object after a success or a terminal error. Changes to an object always reconcile it at
    /// once.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectRef<K>>) -> Self {
        self.limiter = Some(Box::new(limiter));
        self
    }

    /// Sets how panics in a reconcile are handled. With `true`, the default, a panic is logged and
    /// counted, and the object is requeued as after an error. With `false`, it stops the manager
    /// with an error that names the controller and the object.
    pub fn recover_panics(mut self, recover: bool) -> Self {
        self.recover_panics = recover;
        self
    }
}
