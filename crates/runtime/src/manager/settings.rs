//! Settings of a manager: timeouts, caches, its client and its servers.

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
    /// Sets how long running reconciles may take to finish after a shutdown request. Defaults to 30
    /// s.
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how long the caches may take to sync before the manager fails. Defaults to 2 min.
    ///
    /// Until then, a watch that fails, for example because of a missing CRD or permission, is
    /// retried.
    pub fn cache_sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Sets how long other replicas wait after the last renewal before they take the lease. Defaults to 15 s; stored in
    /// the lease in whole seconds.
    ///
    /// This is how long there is no leader after a leader was killed. Must be longer than the
    /// [renew deadline](Self::renew_deadline).
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease.duration = duration;
        self
    }

    /// Sets how long the leader retries renewing its lease before it stops with an error. Defaults to 10 s.
    ///
    /// This is the longest outage of the API server that a leader survives. Must be longer than 1.2
    /// times the [retry period](Self::retry_period).
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.lease.renew_deadline = deadline;
        self
    }

    /// Sets the time between renewals by the leader, and between attempts of other replicas to
    /// acquire the lease (which add a random part of up to 1.2 times the period). Defaults to 2 s.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.lease.retry_period = period;
        self
    }

    /// Lets all replicas work, each on its own part of the objects. Equivalent to `--shards`. Call it
    /// before [`leader_client`](Self::leader_client).
    ///
    /// The replicas divide the UIDs of all objects among them. A controller only caches and
    /// reconciles the objects of this replica, and the children whose owners they are. When a
    /// replica starts or stops, only its share moves: the previous owner first finishes the
    /// reconciles that run, so no two replicas ever reconcile the same object. After a crash, others
    /// take over once the [lease](Self::lease_duration) has expired.
    ///
    /// What needs all objects has all of them in each replica: [`Controller::reads`], caches of the
    /// manager, kinds with a mapping function, and controllers [on every
    /// replica](crate::Controller::on_every_replica). [Tasks](crate::Task) run in one replica.
    ///
    /// [`Controller::reads`]: crate::Controller::reads
    ///
    /// ```no_run
    /// # use rbuilder::{Manager, Sharding};
    /// # fn with(manager: Manager) -> Manager {
    /// manager.sharded(Sharding::auto())
    /// # }
    /// ```
    pub fn sharded(mut self, sharding: Sharding) -> Self {
        self.args.shards = Some(sharding);
        self.fence = new_fence(&self.id, &self.args);
        self
    }

    /// Sets how long a watch may receive no data from the API server (events or bookmarks) before
    /// it counts as stale. Defaults to 5 min.
    ///
    /// A stale watch is logged with its last error, and again once it receives data. The process
    /// stays ready, because it can do the rest of its work. The `caches` check of `/readyz` only
    /// fails for a watch that is [`required`](crate::Watch::required) or, in a process without
    /// webhooks, while all watches are stale. A process with webhooks must stay ready because the
    /// API server needs them as soon as it is back after an outage.
    ///
    /// A time below 3 min could be reached by a single lost connection. With conversion webhooks,
    /// there is no `caches` check; see [`readyz_check`](Self::readyz_check).
    pub fn cache_stale_after(mut self, limit: Duration) -> Self {
        self.stale_after = limit;
        self
    }

    /// Sets how much memory each controller may use to remember what it has applied, so that an
    /// [apply](crate::Ctx::apply) that changes nothing is not sent. Defaults to 64 MiB. With zero,
    /// every apply is sent.
    ///
    /// An object takes about 300 bytes. Unless whole objects of its kind are cached, it takes
    /// another 100 to 300 bytes for the part of its JSON that differs from the first object of its
    /// kind. When the memory is used up, the oldest applies are forgotten, and the next time they
    /// are sent once more.
    pub fn applied_memory(mut self, bytes: usize) -> Self {
        self.caches.applied_bytes = bytes;
        self
    }

    /// Sets the page size when the caches list a kind. Defaults to 500 objects; zero lists all in
    /// one response.
    ///
    /// Has no effect with [`ListSemantic::Any`]: API servers answer such lists from memory, in one response.
    pub fn list_page_size(mut self, objects: u32) -> Self {
        self.caches.lists.page_size = (objects > 0).then_some(objects);
        self
    }

    /// Sets how recent the lists of the caches must be. Defaults to the most recent state, which
    /// the API server reads from etcd or confirms with it. [`ListSemantic::Any`] accepts what the
    /// API server has in memory, which may be older than what another API server has already shown.
    pub fn list_semantic(mut self, semantic: ListSemantic) -> Self {
        self.caches.lists.semantic = semantic;
        self
    }

    /// Sets how the caches get their initial objects. Defaults to paginated lists.
    /// [`StreamingList`](InitialListStrategy::StreamingList) receives them as watch events, which
    /// takes less memory on the API server. It requires the API server's feature gate `WatchList`,
    /// and an etcd that reports its progress on request (3.4.25, 3.5.8 or later). Without either,
    /// the caches log the cause and fall back to paginated lists: immediately if the API server
    /// rejects the request, and after 30 s without an object if the list does not complete.
    pub fn initial_list_strategy(mut self, strategy: InitialListStrategy) -> Self {
        self.caches.lists.strategy = strategy;
        self
    }

    /// Keeps `metadata.managedFields` of cached objects. By default, it is dropped, because it
    /// often takes up more than half of an object.
    pub fn keep_managed_fields(mut self) -> Self {
        self.caches.trim.managed_fields = false;
        self
    }

    /// Keeps the annotation `kubectl.kubernetes.io/last-applied-configuration` of cached objects.
    /// By default, it is dropped, because it contains a copy of the object. A controller that
    /// replaces whole objects read from a cache needs it: without the annotation, the replacement
    /// would remove it, and `kubectl apply` would miss it.
    pub fn keep_last_applied(mut self) -> Self {
        self.caches.trim.last_applied = false;
        self
    }

    /// Sets the name and version of the operator in the User-Agent, which appears in audit logs.
    /// Defaults to the name of the executable and the version `unknown`. Does not affect clients
    /// passed to [`with_client`](Self::with_client).
    ///
    /// ```no_run
    /// # use rbuilder::Manager;
    /// # fn with(manager: Manager) -> Manager {
    /// manager.user_agent(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    /// # }
    /// ```
    ///
    /// The API server uses the name as the field manager of writes that specify none.
    pub fn user_agent(self, name: impl AsRef<str>, version: impl AsRef<str>) -> Self {
        let product = format!("{}/{}", name.as_ref(), version.as_ref());
        self.client_settings.user_agent.set(&product);
        self
    }

    /// Limits the requests of the manager's client to `per_second`, with bursts of up to `burst`,
    /// or twice the rate if that is 0. Equivalent to `--kube-api-qps` and `--kube-api-burst`.
    /// Unlimited by default, because API servers limit clients themselves. Does not affect clients
    /// passed to [`with_client`](Self::with_client).
    ///
    /// Watches and leader election are not limited.
    pub fn request_rate(self, per_second: u32, burst: u32) -> Self {
        let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let flow_control = &self.client_settings.flow_control;
        flow_control.set(number(per_second), number(burst));
        self
    }

    /// Sets the maximum number of open connections for each of the servers for probes, metrics and
    /// webhooks, at least one. Defaults to 512.
    ///
    /// When the limit is reached, a new connection replaces the one whose client has kept the
    /// server waiting the longest, either idle or while sending a request or its body. If all
    /// connections have requests being answered, the new one waits.
    pub fn max_connections(mut self, max: usize) -> Self {
        self.max_connections = max;
        self
    }

    /// Sends the requests of the manager's client through a tower layer: to add headers, to record or to reject requests.
    ///
    /// All requests of controllers, caches, webhooks, events and tasks pass through it, but not
    /// those of leader election. It is called once for each request, outside of the client's
    /// traces, retries, rate limit, metrics and timeouts, and therefore before the User-Agent is
    /// set. Writes without the lease are refused before they reach it. If there are several layers,
    /// the last one added is called first.
    ///
    /// Clients that [`client`](Self::client) and [`leader_client`](Self::leader_client) returned
    /// earlier do not have the layer. For layers inside of the retries, or for leader election,
    /// build a client with kube's [`ClientBuilder`](kube::client::ClientBuilder) and pass it to
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
    /// Panics outside of a tokio runtime, like [`Client::new`](kube::Client::new).
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

    /// Sets how much memory in bytes the reviews of all webhooks together may hold. Defaults to
    /// half of the memory limit of the container (its cgroup, or else the machine), up to 1 GiB.
    ///
    /// A third is for bodies, and the rest for decoding and answering them. While the memory is in
    /// use, reviews wait in order, and are rejected with status 503 after eight seconds. A review
    /// that needs more than the total is rejected with status 413.
    pub fn webhook_memory(mut self, bytes: usize) -> Self {
        self.webhook_memory = Some(bytes);
        self
    }
}
