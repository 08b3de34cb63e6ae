//! Builder methods for settings: timeouts, caches, the client and the servers.

use std::time::Duration;

use hyper::body::Bytes;
use kube::client::Body;
use kube::runtime::watcher::{InitialListStrategy, ListSemantic};
use tower::{Layer, Service};

use super::{Manager, new_fence};
use crate::client::{ClientService, add_layer};
use crate::error::BoxError;
use crate::shards::Sharding;

impl Manager {
    /// Sets the grace period for reconciles on shutdown. Defaults to 30 s.
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how long webhooks are served after the process was asked to stop. Defaults to 5 s after
    /// SIGTERM, and to zero after SIGINT (Ctrl-C) and for [`start_until`](Self::start_until).
    ///
    /// When a Pod is deleted, the API server keeps calling its webhooks until all nodes have removed
    /// the Pod from the Service. If nothing listened during that time, writes would be rejected
    /// because of `failurePolicy: Fail`. Meanwhile, the process isn't ready, finishes its
    /// reconciles, and releases its lease, so this only matters if the rest takes less time. It's
    /// never longer than the [grace period](Self::grace_period).
    pub fn webhook_shutdown_delay(mut self, delay: Duration) -> Self {
        self.webhook_delay = Some(delay);
        self
    }

    /// Sets the timeout for caches to sync, after which the manager fails. Defaults to 2 min.
    ///
    /// Meanwhile, watches that fail (e.g. because of a missing CRD or permission) are retried.
    pub fn cache_sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Sets the lease duration, i.e. how long other replicas must wait after the last renewal
    /// before they may acquire the lease. Defaults to 15 s, and is rounded to whole seconds in the
    /// lease.
    ///
    /// If the leader is killed, there is no leader for this long. It must be longer than the [renew
    /// deadline](Self::renew_deadline).
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease.duration = duration;
        self
    }

    /// Sets the renew deadline. A leader that can't renew its lease for this long stops with an
    /// error. Defaults to 10 s.
    ///
    /// The leader does not survive a longer outage of the API server. It must be longer than 1.2
    /// times the [retry period](Self::retry_period).
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.lease.renew_deadline = deadline;
        self
    }

    /// Sets the interval between renewals by the leader, and between attempts of other replicas to
    /// acquire the lease. Defaults to 2 s. Attempts have a jitter of up to 1.2 times the period.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.lease.retry_period = period;
        self
    }

    /// Enables sharding: all replicas work concurrently, each on its own share of the objects. Same
    /// as `--shards`. If you use [`leader_client`](Self::leader_client), call this method first.
    ///
    /// Objects are assigned to replicas by UID. A controller only caches and reconciles the objects
    /// of its replica, and the children owned by them. When a replica is started or stopped, only
    /// its own share is reassigned. The previous owner finishes its reconciles first, so an object
    /// is never reconciled by two replicas concurrently. After a crash, the other replicas wait for
    /// the [lease](Self::lease_duration) to expire before they take over.
    ///
    /// Anything that requires all objects has all of them on each replica. This includes
    /// [`Controller::reads`], caches of the manager, kinds with a mapping function, and controllers
    /// that run [on every replica](crate::Controller::on_every_replica). [Tasks](crate::Task) only
    /// run on one of the replicas.
    ///
    /// ```no_run
    /// # use rbuilder::{Manager, Sharding};
    /// # fn with(manager: Manager) -> Manager {
    /// manager.sharded(Sharding::auto())
    /// # }
    /// ```
    ///
    /// [`Controller::reads`]: crate::Controller::reads
    pub fn sharded(mut self, sharding: Sharding) -> Self {
        self.args.shards = Some(sharding);
        self.fence = new_fence(&self.id, &self.args);
        self
    }

    /// Sets the time without any data (events or bookmarks) after which a watch is considered
    /// stale. Defaults to 5 min. Less than 3 min is not recommended, because a single lost
    /// connection might already exceed it.
    ///
    /// When a watch becomes stale, this is logged together with its last error, and again once it
    /// receives data. The process usually stays ready, because it can still do the rest of its
    /// work. The check `caches` of `/readyz` only fails in two cases:
    ///
    /// - A stale watch is [`required`](crate::Watch::required).
    /// - All watches are stale, and there are no webhooks. With webhooks, the process has to stay
    ///   ready since the API server needs them right after an outage.
    ///
    /// If there are conversion webhooks, the check doesn't exist at all, see
    /// [`readyz_check`](Self::readyz_check).
    pub fn cache_stale_after(mut self, limit: Duration) -> Self {
        self.stale_after = limit;
        self
    }

    /// Sets the memory budget of each controller for remembering what it has applied, which is used
    /// to skip an [apply](crate::Ctx::apply) that would not change anything. Defaults to 64 MiB.
    /// With zero, every apply is sent.
    ///
    /// Each object takes about 300 bytes. Without a cache of whole objects of the kind, it takes
    /// another 100 to 300 bytes to store how the JSON of the object differs from the first object
    /// of the same kind. When the limit is reached, the oldest applies are forgotten, so they're
    /// sent again the next time.
    pub fn applied_memory(mut self, bytes: usize) -> Self {
        self.caches.applied_bytes = bytes;
        self
    }

    /// Sets the page size for listing objects. Defaults to 500. With zero, a single response
    /// contains all objects.
    ///
    /// Has no effect with [`ListSemantic::Any`], because API servers do not use pages when they
    /// respond from memory.
    pub fn list_page_size(mut self, objects: u32) -> Self {
        self.caches.lists.page_size = (objects > 0).then_some(objects);
        self
    }

    /// Sets how recent the caches' lists must be. Defaults to the most recent state, which the API
    /// server has to read from etcd or confirm with etcd. With [`ListSemantic::Any`], it may
    /// respond from memory, and the result may be older than what another API server has already
    /// returned.
    pub fn list_semantic(mut self, semantic: ListSemantic) -> Self {
        self.caches.lists.semantic = semantic;
        self
    }

    /// Sets how caches get their initial objects. Defaults to paged lists.
    ///
    /// With [`StreamingList`](InitialListStrategy::StreamingList), objects are sent as events of a
    /// watch, which takes less memory on the API server. This requires the feature gate
    /// `WatchList`, and a version of etcd with progress notifications on request (3.4.25, 3.5.8 or
    /// later). If one of these is missing, the caches log the reason and fall back to paged lists:
    /// immediately if the API server rejects the request, or after 30 s without receiving an object
    /// if the list never completes.
    pub fn initial_list_strategy(mut self, strategy: InitialListStrategy) -> Self {
        self.caches.lists.strategy = strategy;
        self
    }

    /// Keeps `metadata.managedFields` of cached objects. They are dropped by default because they
    /// often make up more than half of an object.
    pub fn keep_managed_fields(mut self) -> Self {
        self.caches.trim.managed_fields = false;
        self
    }

    /// Keeps the annotation `kubectl.kubernetes.io/last-applied-configuration` of cached objects.
    /// It is dropped by default because it contains a copy of the object.
    ///
    /// You need this if a controller replaces entire objects that it has read from a cache.
    /// Otherwise it would remove the annotation, which `kubectl apply` depends on.
    pub fn keep_last_applied(mut self) -> Self {
        self.caches.trim.last_applied = false;
        self
    }

    /// Sets the name and version of the operator for the `User-Agent` header, which appears in
    /// audit logs. Defaults to the name of the executable and the version `unknown`. Has no effect
    /// on clients passed to [`with_client`](Self::with_client).
    ///
    /// ```no_run
    /// # use rbuilder::Manager;
    /// # fn with(manager: Manager) -> Manager {
    /// manager.user_agent(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    /// # }
    /// ```
    ///
    /// If a write does not specify a field manager, the API server uses this name.
    pub fn user_agent(self, name: impl AsRef<str>, version: impl AsRef<str>) -> Self {
        let product = format!("{}/{}", name.as_ref(), version.as_ref());
        self.client_settings.user_agent.set(&product);
        self
    }

    /// Limits the requests of the manager's client to `per_second`, with bursts of up to `burst`.
    /// If `burst` is 0, it is twice the rate. Same as `--kube-api-qps` and `--kube-api-burst`.
    ///
    /// There's no limit by default, because API servers limit their clients anyway. Watches and
    /// leader election are never limited, and neither are clients passed to
    /// [`with_client`](Self::with_client).
    pub fn request_rate(self, per_second: u32, burst: u32) -> Self {
        let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let flow_control = &self.client_settings.flow_control;
        flow_control.set(number(per_second), number(burst));
        self
    }

    /// Sets the maximum number of connections for each of the servers (probes, metrics, webhooks).
    /// Defaults to 512. The minimum is one.
    ///
    /// At the limit, the server closes the connection whose client has kept it waiting the longest.
    /// This may be an idle connection, or one that is still sending a request or its body. If a
    /// request is being processed on every connection, new connections have to wait.
    pub fn max_connections(mut self, max: usize) -> Self {
        self.max_connections = max;
        self
    }

    /// Adds a [`tower::Layer`] around the manager's client, e.g. to add headers, or to record or
    /// reject requests.
    ///
    /// All requests of controllers, caches, webhooks, events and tasks go through the layer, but
    /// not those for leader election. It is the outermost layer, i.e. it's called once per request
    /// and wraps traces, retries, rate limiting, metrics and timeouts. The `User-Agent` is also set
    /// inside of it. Only the check for the lease is further out. If you add more than one layer,
    /// the last one is called first.
    ///
    /// Clients returned earlier by [`client`](Self::client) or
    /// [`leader_client`](Self::leader_client) are not affected. If you need a layer within the
    /// retries, or for leader election, build your own client with kube's
    /// [`ClientBuilder`](kube::client::ClientBuilder) and pass it to
    /// [`with_client`](Self::with_client).
    ///
    /// ```no_run
    /// # use http::{HeaderValue, Request};
    /// # use rbuilder::Manager;
    /// # use tower::util::MapRequestLayer;
    /// # fn with(manager: Manager) -> Manager {
    /// manager.client_layer(MapRequestLayer::new(|mut request: Request<kube::client::Body>| {
    ///     let headers = request.headers_mut();
    ///     headers.insert("impersonate-user", HeaderValue::from_static("system:serviceaccount:shop:tenant"));
    ///     request
    /// }))
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if called from outside of a tokio runtime, just like
    /// [`Client::new`](kube::Client::new).
    pub fn client_layer<L, B>(mut self, layer: L) -> Self
    where
        L: Layer<ClientService>,
        L::Service: Service<http::Request<Body>, Response = http::Response<B>, Error: Into<BoxError>, Future: Send>
            + Send
            + 'static,
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.client = add_layer(&self.client, &layer);
        self
    }

    /// Sets the total memory that webhook reviews may use, in bytes. Defaults to half of the memory
    /// limit of the container (or of the machine, if there is none), but at most 1 GiB.
    ///
    /// A third of this is used for request bodies, and the rest for decoding and processing them.
    /// When no memory is left, reviews have to wait, and are rejected with status 503 after eight
    /// seconds. A single review that needs more than the total is rejected with status 413.
    pub fn webhook_memory(mut self, bytes: usize) -> Self {
        self.webhook_memory = Some(bytes);
        self
    }
}
