//! Settings of a manager: times, caches, its client and its servers.

use std::time::Duration;

use hyper::body::Bytes;
use kube::client::Body;
use kube::runtime::watcher::{InitialListStrategy, ListSemantic};
use tower::{Layer, Service};

use super::Manager;
use crate::client::{ClientService, add_layer};
use crate::error::BoxError;

impl Manager {
    /// Sets how long running reconciles may take to finish after shutdown was requested. Defaults to 30 s.
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how long the caches may take to sync before the manager fails. Defaults to 2 min.
    ///
    /// Until then a watch that fails, for example because of a missing CRD or permission, is retried.
    pub fn cache_sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Sets how long other replicas wait after the last renewal before they take the lease. Defaults to 15 s; stored in
    /// the lease in whole seconds.
    ///
    /// It is the time without a leader after the leader was killed. It must be longer than the
    /// [renew deadline](Self::renew_deadline).
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease.duration = duration;
        self
    }

    /// Sets how long the leader retries renewing its lease before it stops with an error. Defaults to 10 s.
    ///
    /// It is the longest outage of the API server that a leader survives. It must be longer than 1.2 times the
    /// [retry period](Self::retry_period).
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.lease.renew_deadline = deadline;
        self
    }

    /// Sets the time between two renewals by the leader, and between two attempts of other replicas to acquire the lease
    /// (plus a random part of up to 1.2 times the period). Defaults to 2 s.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.lease.retry_period = period;
        self
    }

    /// Sets the time after which a watch without any data from the API server, events and bookmarks alike, is stale.
    /// Defaults to 5 min.
    ///
    /// A stale watch is logged with its last error, and again once it receives data. The process stays ready, because it
    /// can do the rest of its work: the `caches` check of `/readyz` fails only for a watch that is
    /// [`required`](crate::Watch::required), and in a process without webhooks while all watches are stale. If the API
    /// server was gone, it needs the webhooks at once when it is back.
    ///
    /// A shorter time than 3 min would be reached by a single lost connection. With conversion webhooks there is no
    /// `caches` check; see [`readyz_check`](Self::readyz_check).
    pub fn cache_stale_after(mut self, limit: Duration) -> Self {
        self.stale_after = limit;
        self
    }

    /// Sets how much memory each controller takes to remember what it has applied, so that an
    /// [apply](crate::Ctx::apply) that changes nothing is not sent. Defaults to 64 MiB; with zero, each is sent.
    ///
    /// An object takes about 300 bytes. Unless whole objects of its kind are cached, what its JSON does not have in common
    /// with the first one of its kind comes to that, mostly 100 to 300 bytes. The oldest are
    /// forgotten, and sent once more.
    pub fn applied_memory(mut self, bytes: usize) -> Self {
        self.caches.applied_bytes = bytes;
        self
    }

    /// Sets the number of objects in a page when the caches list a kind. Defaults to 500; zero lists all in one response.
    ///
    /// Ignored with [`ListSemantic::Any`] by API servers that answer such lists from memory.
    pub fn list_page_size(mut self, objects: u32) -> Self {
        self.caches.lists.page_size = (objects > 0).then_some(objects);
        self
    }

    /// Sets how recent the lists of the caches must be. Defaults to the most recent state, which the API server reads from
    /// etcd or confirms with it; [`ListSemantic::Any`] takes what it has in memory, which may be older than what another
    /// API server has shown before.
    pub fn list_semantic(mut self, semantic: ListSemantic) -> Self {
        self.caches.lists.semantic = semantic;
        self
    }

    /// Sets how the caches get their first objects. Defaults to lists in pages;
    /// [`StreamingList`](InitialListStrategy::StreamingList) receives them as events of the watch, which takes less memory
    /// on the API server. It needs the API server's feature gate `WatchList`, and an etcd that reports its progress on
    /// request (3.4.25, 3.5.8 or later). Without either, the caches log the cause and list in pages: at once where the API
    /// server refuses, and after 30 s without an object where the list does not end.
    pub fn initial_list_strategy(mut self, strategy: InitialListStrategy) -> Self {
        self.caches.lists.strategy = strategy;
        self
    }

    /// Keeps `metadata.managedFields` of cached objects. By default it is dropped, because it often takes up more than
    /// half of an object.
    pub fn keep_managed_fields(mut self) -> Self {
        self.caches.trim.managed_fields = false;
        self
    }

    /// Keeps the annotation `kubectl.kubernetes.io/last-applied-configuration` of cached objects. By default it is
    /// dropped, because it holds a copy of the object. A controller that replaces whole objects read from a cache needs
    /// it: replacing an object without the annotation removes it for `kubectl apply`.
    pub fn keep_last_applied(mut self) -> Self {
        self.caches.trim.last_applied = false;
        self
    }

    /// Sets the name and version of the operator in the User-Agent, which audit logs show.
    /// Defaults to the name of the executable and the version `unknown`. Clients given with
    /// [`with_client`](Self::with_client) are not affected.
    ///
    /// ```no_run
    /// # use rbuilder::Manager;
    /// # fn with(manager: Manager) -> Manager {
    /// manager.user_agent(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    /// # }
    /// ```
    ///
    /// The API server takes the name for the field manager of writes that name none.
    pub fn user_agent(self, name: impl AsRef<str>, version: impl AsRef<str>) -> Self {
        let product = format!("{}/{}", name.as_ref(), version.as_ref());
        self.client_settings.user_agent.set(&product);
        self
    }

    /// Limits the requests of the manager's client to `per_second`, with bursts of up to `burst`, or twice the rate if that
    /// is 0. `--kube-api-qps` and `--kube-api-burst` do the same. Unlimited by default: API servers limit clients
    /// themselves. Clients given with [`with_client`](Self::with_client) are not affected.
    ///
    /// Watches and leader election are not limited.
    pub fn request_rate(self, per_second: u32, burst: u32) -> Self {
        let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let flow_control = &self.client_settings.flow_control;
        flow_control.set(number(per_second), number(burst));
        self
    }

    /// Sets the number of connections that each of the servers for probes, metrics and webhooks keeps open, at least one.
    /// Defaults to 512.
    ///
    /// A further connection replaces the one whose client has kept the server waiting for longest: idle, or sending a request
    /// or its body. While requests are being answered on all connections, it waits.
    pub fn max_connections(mut self, max: usize) -> Self {
        self.max_connections = max;
        self
    }

    /// Sends the requests of the manager's client through a tower layer: to add headers, to record or to reject requests.
    ///
    /// All requests of controllers, caches, webhooks, events and tasks pass it, but not those of leader election. It is
    /// called once for each request, outside of the client's traces, retries, rate limit, metrics and timeouts, and so
    /// before the User-Agent is set. Writes without the lease are refused before they reach it. Of several layers, the
    /// one added last is called first.
    ///
    /// Clients that [`client`](Self::client) and [`leader_client`](Self::leader_client) have returned before do not have
    /// the layer. For layers inside of retries, or for those of leader election as well, build a client with kube's
    /// [`ClientBuilder`](kube::client::ClientBuilder) and pass it to [`with_client`](Self::with_client).
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
    /// Outside of a tokio runtime, as [`Client::new`](kube::Client::new).
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

    /// Sets the memory that the reviews of all webhooks together may hold, in bytes. Defaults to half of the memory limit of the
    /// container (its cgroup, or else the machine), at most 1 GiB.
    ///
    /// A third is for bodies, and the rest for decoding and answering them. Reviews wait in order while it is in use, and
    /// are rejected with status 503 after eight seconds. A review that needs more than all of it is rejected with status 413.
    pub fn webhook_memory(mut self, bytes: usize) -> Self {
        self.webhook_memory = Some(bytes);
        self
    }
}
