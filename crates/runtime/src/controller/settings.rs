//! Builder methods for a controller's settings.

use std::time::Duration;

use kube::runtime::reflector::ObjectRef;

use super::Controller;
use crate::backoff::Backoff;
use crate::object::Watchable;
use crate::rate_limiter::RateLimiter;
use crate::shards::ShardBy;

/// Each worker takes some memory and is woken when the queue is closed.
const MOST_WORKERS: usize = 10_000;

impl<K: Watchable, S: Send + Sync + 'static> Controller<K, S> {
    /// Sets the maximum number of concurrent reconciles. Defaults to 4. Clamped to the range from 1
    /// to 10,000.
    pub fn concurrency(mut self, max: usize) -> Self {
        self.concurrency = max.clamp(1, MOST_WORKERS);
        self
    }

    /// Runs the controller on all replicas, without waiting for leadership, as soon as the caches
    /// have synced.
    ///
    /// Useful for state that is local to a replica, e.g. a table in memory. Beware of conflicts if
    /// multiple replicas write to the same object.
    pub fn on_every_replica(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// Sets which field determines the replica that reconciles an object, if the operator is
    /// [sharded](crate::Manager::sharded). Defaults to the UID. Has no effect if the operator is
    /// not sharded.
    ///
    /// With [`ShardBy::Namespace`], all objects in a namespace are handled by the same replica,
    /// which only watches [owned](Self::owns) objects in its own namespaces. The API server selects
    /// them if it supports that. This works best with lots of namespaces of similar size whose
    /// hashes are evenly distributed. See [`ShardBy`] for details.
    ///
    /// The manager refuses to start if the kind is cluster-scoped.
    pub fn shard_by(mut self, field: ShardBy) -> Self {
        self.division.by = field;
        self
    }

    /// Adds a label with the shard of the owner to all owned objects, so that each replica of a
    /// [sharded](crate::Manager::sharded) operator only receives its own objects, regardless of the
    /// API server's version.
    ///
    /// Without the label, each replica receives the [owned](Self::owns) objects of all replicas and
    /// drops most of them, since the API server can't select objects by owner.
    ///
    /// The label is named `rbuilder.dev/owner-shard`, and is set by
    /// [`Ctx::apply_owned`](crate::Ctx::apply_owned), [`create_owned`](crate::Ctx::create_owned),
    /// [`create_or_update_owned`](crate::Ctx::create_or_update_owned) and apply sets. An owned
    /// object without the label is invisible to the operator until one of these functions writes
    /// it, so do not use this if your objects are created in other ways.
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
    ///
    /// The name is also stored in the cluster: API servers store which field manager has set a field,
    /// and [`apply_set`](crate::Ctx::apply_set) uses the name in an annotation and in labels. If the
    /// name has to change, add [`renamed_from`](Self::renamed_from).
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds a former name of this controller, or the name of a controller that was removed in favor of
    /// this one. Can be called several times.
    ///
    /// This controller then continues with the [sets](crate::Ctx::apply_set) that were recorded under
    /// the former name. Without it, these would be sets of another controller, whose objects this one
    /// refuses to apply and does not delete.
    ///
    /// Keep it until all objects of the kind were reconciled under the new name. Fields that were
    /// applied under the former name, and are no longer applied, keep their values.
    pub fn renamed_from(mut self, name: impl Into<String>) -> Self {
        self.former_names.push(name.into());
        self
    }

    /// Cancels a reconcile that takes longer than `limit`, and treats it as failed. There is no
    /// limit by default.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets the delays between failed reconciles of the same object. The first delay is `min`. It
    /// doubles with each consecutive failure, up to `max`; a success resets it.
    ///
    /// Defaults to 5 ms and 1000 s, as in controller-runtime. Delays are at least 1 ms, and never
    /// exceed `max` even if `min` does. Shorthand for [`rate_limiter`](Self::rate_limiter);
    /// replaces a limiter that was set earlier.
    pub fn backoff(mut self, min: Duration, max: Duration) -> Self {
        self.backoff = Backoff { min, max };
        self.limiter = None;
        self
    }

    /// Sets the rate limiter, which determines the delays after failed reconciles, e.g. to limit
    /// the rate for all objects together. Defaults to exponential backoff per object, see
    /// [`rate_limiter`](crate::rate_limiter).
    ///
    /// The limiter is consulted after errors, conflicts, panics and timeouts. After a success or a
    /// terminal error, it is asked to forget the object. Objects that change are always reconciled
    /// immediately.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectRef<K>>) -> Self {
        self.limiter = Some(Box::new(limiter));
        self
    }

    /// Sets whether to recover from panics in a reconcile. Defaults to `true`: the panic is logged
    /// and counted, and the object is retried as after an error.
    ///
    /// With `false`, a panic stops the manager with an error that names the controller and the
    /// object.
    pub fn recover_panics(mut self, recover: bool) -> Self {
        self.recover_panics = recover;
        self
    }
}
