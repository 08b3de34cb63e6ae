//! Builder methods for a controller's settings.

use std::time::Duration;

use kube::runtime::reflector::ObjectRef;

use super::Controller;
use crate::backoff::Backoff;
use crate::object::Watchable;
use crate::rate_limiter::RateLimiter;
use crate::shards::ShardBy;

/// Each worker takes some memory, and has to be woken when the queue is closed.
const MOST_WORKERS: usize = 10_000;

impl<K: Watchable, S: Send + Sync + 'static> Controller<K, S> {
    /// Sets how many objects may be reconciled at the same time. Defaults to 4. The value is
    /// clamped to the range from 1 to 10,000.
    pub fn concurrency(mut self, max: usize) -> Self {
        self.concurrency = max.clamp(1, MOST_WORKERS);
        self
    }

    /// Runs the controller on all replicas, regardless of who the leader is, as soon as the caches
    /// have synced.
    ///
    /// This is useful for state that is local to a replica, e.g. a table in memory. Note that there
    /// will be conflicts if multiple replicas write to the same object.
    pub fn on_every_replica(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// Sets which field determines the replica that works on an object, if the operator is
    /// [sharded](crate::Manager::sharded). Defaults to the UID. Has no effect if the operator is
    /// not sharded.
    ///
    /// With [`ShardBy::Namespace`], all objects in a namespace are handled by the same replica. It
    /// only watches [owned](Self::owns) objects in its own namespaces, and lets the API server
    /// select those if that is supported. This works best if you have lots of namespaces of similar
    /// size, and if their hashes are evenly distributed. See [`ShardBy`] for details.
    ///
    /// The manager refuses to start if the kind is cluster-scoped.
    pub fn shard_by(mut self, field: ShardBy) -> Self {
        self.division.by = field;
        self
    }

    /// Adds a label with the shard of the owner to all owned objects. This allows each replica of a
    /// [sharded](crate::Manager::sharded) operator to receive just its own objects, no matter which
    /// version the API server has.
    ///
    /// Without this, each replica receives the [owned](Self::owns) objects of all replicas and then
    /// drops most of them. The API server cannot help with that since it does not look at owners.
    ///
    /// The label is named `rbuilder.dev/owner-shard`, and is set by
    /// [`Ctx::apply_owned`](crate::Ctx::apply_owned), [`create_owned`](crate::Ctx::create_owned),
    /// [`create_or_update_owned`](crate::Ctx::create_or_update_owned) and apply sets. If an owned
    /// object does not have the label, the operator can't see it until it has been written by one
    /// of these functions. So do not use this if your objects are created in other ways.
    ///
    /// Has no effect if the operator is not sharded, or with [`ShardBy::Namespace`].
    pub fn label_owned(mut self) -> Self {
        self.division.labels_owned = true;
        self
    }

    /// Sets the name of this controller. Defaults to the kind in lower case.
    ///
    /// The name is used as the field manager when applying objects, as the reporter of events, and
    /// as a label in logs and metrics. All controllers of a manager must have different names.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Cancels a reconcile when it takes longer than `limit`, and treats this as an error. There is
    /// no limit by default.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets the delays between failed reconciles of the same object. The first delay is `min`. It
    /// doubles with each consecutive failure, up to `max`, and is reset by a success.
    ///
    /// Defaults to 5 ms and 1000 s, as in controller-runtime. Delays are at least 1 ms, and never
    /// exceed `max` even if `min` does. This is a shorthand for
    /// [`rate_limiter`](Self::rate_limiter), and replaces a limiter that was set earlier.
    pub fn backoff(mut self, min: Duration, max: Duration) -> Self {
        self.backoff = Backoff { min, max };
        self.limiter = None;
        self
    }

    /// Sets the rate limiter, which determines the delays after failed reconciles. For example, you
    /// can limit the rate for all objects together. Defaults to exponential backoff per object, see
    /// [`rate_limiter`](crate::rate_limiter).
    ///
    /// The limiter is used after errors, conflicts, panics and timeouts. After a success or a
    /// terminal error, it has to forget the object. It doesn't affect objects that change, which
    /// are always reconciled immediately.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectRef<K>>) -> Self {
        self.limiter = Some(Box::new(limiter));
        self
    }

    /// Sets what happens if a reconcile panics. Defaults to `true`, which means that the panic is
    /// logged and counted, and the object is retried as if there had been an error.
    ///
    /// If set to `false`, a panic stops the manager. The error then contains the names of
    /// the controller and the object.
    pub fn recover_panics(mut self, recover: bool) -> Self {
        self.recover_panics = recover;
        self
    }
}
