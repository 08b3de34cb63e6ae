//! A Kubernetes API server for tests: etcd and kube-apiserver as child processes of the test.
//!
//! ```no_run
//! use std::time::Duration;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::Api;
//! use rbuilder::envtest::{Environment, eventually};
//!
//! #[rbuilder::envtest::test]
//! async fn config_map_is_created(env: Environment) {
//!     env.install_crds("config/crd/bases").await.unwrap();
//!     let namespace = env.namespace("created").await.unwrap();
//!     let maps: Api<ConfigMap> = Api::namespaced(env.client(), &namespace);
//!     // … start the operator, then:
//!     eventually(Duration::from_secs(10), || async { maps.get("settings").await }).await;
//! }
//! ```
//!
//! # Binaries
//!
//! `KUBEBUILDER_ASSETS` is the directory with `etcd` and `kube-apiserver`, as printed by
//! `rbuilder envtest install`. `TEST_ASSET_ETCD` and `TEST_ASSET_KUBE_APISERVER` are paths to the
//! individual binaries and take precedence. If none of these variables is set, the following are
//! tried: [`Builder::assets`], the newest release installed by `rbuilder envtest install` or
//! `setup-envtest` for the Kubernetes minor version of k8s-openapi, and
//! `/usr/local/kubebuilder/bin`.
//!
//! Tests with the attribute [`#[rbuilder::envtest::test]`](test) are ignored if compiled without
//! these variables, even if binaries are installed: cargo recompiles tests when a variable changes,
//! but not when binaries are installed.
//!
//! # Other variables
//!
//! - `KUBEBUILDER_CONTROLPLANE_START_TIMEOUT`, `KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT`: start and
//!   stop timeouts in Go's notation, such as `90s` or `1m30s`. Default to 60 s and 20 s.
//! - `KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true`: the servers write to the test's standard
//!   output.
//!
//! # Existing clusters
//!
//! With `USE_EXISTING_CLUSTER=true` or [`Builder::existing_cluster`], no servers are started. Tests
//! use the cluster of `KUBECONFIG`, `~/.kube/config` or the Pod's service account, and need
//! permission to create the objects that they install. These objects stay in the cluster until
//! [`Environment::clean_up`] or, if the environment was built with [`Builder::cleaning_up`], until
//! [`Environment::stop`]. Webhooks require that the cluster can reach this machine; see
//! [`Builder::webhook_host`].
//!
//! # Limitations
//!
//! By default, only the API server runs, without controllers or kubelets: Deployments don't create
//! Pods, owner references don't cause garbage collection, and deleted namespaces stay
//! `Terminating`. Tests have to write the corresponding statuses themselves, or use
//! [`Builder::controllers`] and [`Builder::nodes`].
//!
//! # Cleanup after a crash
//!
//! The servers are killed when the test process ends, even if it crashes: a watchdog process waits
//! on a pipe that only the test process holds open. If the watchdog was killed as well, the next
//! start cleans up.

mod crds;
mod error;
mod existing;
mod installed;
mod outage;
mod own;
mod roles;
mod user;
mod webhooks;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Config, config::Kubeconfig};
use serde_json::Value;
use tokio::sync::OnceCell;

pub use crate::{Outcome, eventually};
pub use error::Error;
/// Marks an async function as a test that needs an API server.
///
/// The function takes no argument, or the [`Environment`] that all tests of the process share:
///
/// ```no_run
/// use rbuilder::envtest::Environment;
///
/// #[rbuilder::envtest::test]
/// async fn server_responds(env: Environment) {
///     env.client().apiserver_version().await.unwrap();
/// }
/// ```
///
/// The test runs on a multi-threaded tokio runtime. It is ignored unless `KUBEBUILDER_ASSETS`, both
/// `TEST_ASSET_ETCD` and `TEST_ASSET_KUBE_APISERVER`, or `USE_EXISTING_CLUSTER=true` are set at
/// compile time. The test runner prints the reason next to the test's name, so a run without
/// binaries never counts as a pass. Changing a variable recompiles the test.
///
/// Use `#[rbuilder::envtest::test(controllers)]` for tests that start an environment with
/// [`Builder::controllers`] or [`Builder::nodes`]. These are also ignored if the required programs
/// are missing from `KUBEBUILDER_ASSETS`.
pub use rbuilder_derive::envtest_test as test;

pub use rbuilder_control_plane::{ReservedPort, Server};
pub use user::User;
pub use webhooks::{WebhookArgs, WebhookServer};

use existing::Existing;
use installed::Installed;
use own::OwnCluster;
use rbuilder_control_plane::Settings;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

const FIELD_MANAGER: &str = "rbuilder-envtest";

/// A running API server with its etcd, or an existing cluster. Clones share the servers, which are
/// killed when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Environment {
    cluster: Arc<Cluster>,
    installed: Arc<Installed>,
    cleans_up: bool,
    webhook_host: Arc<str>,
    shared: bool,
}

#[derive(Debug)]
enum Cluster {
    Own(Box<OwnCluster>),
    Existing(Box<Existing>),
}

/// Options for starting an [`Environment`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    assets: Option<PathBuf>,
    crds: Vec<PathBuf>,
    etcd_args: Vec<String>,
    apiserver_args: Vec<String>,
    controllers: bool,
    nodes: usize,
    existing_cluster: Option<bool>,
    cleans_up: bool,
    webhook_host: Option<String>,
}

impl Builder {
    /// Sets the directory with `etcd` and `kube-apiserver`. The environment variables take
    /// precedence.
    #[must_use]
    pub fn assets(mut self, folder: impl Into<PathBuf>) -> Self {
        self.assets = Some(folder.into());
        self
    }

    /// Adds a file or directory of CRDs to install, see [`Environment::install_crds`].
    #[must_use]
    pub fn crds(mut self, path: impl Into<PathBuf>) -> Self {
        self.crds.push(path.into());
        self
    }

    /// Adds an etcd argument, e.g. `--quota-backend-bytes=8589934592`. Overrides default arguments.
    #[must_use]
    pub fn etcd_arg(mut self, argument: impl Into<String>) -> Self {
        self.etcd_args.push(argument.into());
        self
    }

    /// Adds a kube-apiserver argument, e.g. `--feature-gates=WatchList=true`. Overrides default
    /// arguments.
    #[must_use]
    pub fn apiserver_arg(mut self, argument: impl Into<String>) -> Self {
        self.apiserver_args.push(argument.into());
        self
    }

    /// Also starts kube-controller-manager: Deployments create ReplicaSets and Pods, Jobs and
    /// CronJobs run, dependents are garbage-collected, and deleted namespaces terminate. Without
    /// [`Builder::nodes`], Pods stay `Pending`.
    ///
    /// kube-controller-manager must be in the same directory as kube-apiserver; the archives with
    /// [the binaries](crate::envtest) don't contain it.
    #[must_use]
    pub fn controllers(mut self) -> Self {
        self.controllers = true;
        self
    }

    /// Also starts kube-controller-manager, kube-scheduler and kwok, and creates simulated nodes
    /// (`node-0` and so on). Pods on these nodes become ready immediately without running anything.
    /// Pods of Jobs succeed immediately.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self
    }

    /// Sets whether to use an existing cluster instead of starting servers. Overrides
    /// `USE_EXISTING_CLUSTER`.
    #[must_use]
    pub fn existing_cluster(mut self, existing: bool) -> Self {
        self.existing_cluster = Some(existing);
        self
    }

    /// Makes [`Environment::stop`] call [`Environment::clean_up`].
    #[must_use]
    pub fn cleaning_up(mut self) -> Self {
        self.cleans_up = true;
        self
    }

    /// Sets the host name or address under which the API server reaches this machine, for
    /// [`Environment::install_webhooks`]. Defaults to `127.0.0.1`, which works for servers started
    /// by the test. Existing clusters usually need a different one, e.g. `host.docker.internal` or
    /// a bridge address.
    #[must_use]
    pub fn webhook_host(mut self, host: impl Into<String>) -> Self {
        self.webhook_host = Some(host.into());
        self
    }

    /// Starts etcd and kube-apiserver on free ports of 127.0.0.1, waits for the API server to
    /// become ready, and installs the CRDs. With an existing cluster, just connects and installs
    /// the CRDs.
    ///
    /// # Errors
    ///
    /// Returns an error if a binary is missing or exits early, if the API server isn't ready within
    /// the start timeout, if there's no existing cluster or it doesn't respond, or if a CRD can't
    /// be installed. The error includes the tail of the server's log. All processes have been
    /// killed by then.
    pub async fn start(self) -> Result<Environment, Error> {
        let cluster = if self.existing_cluster.unwrap_or_else(existing::is_asked_for) {
            Cluster::Existing(Box::new(Existing::find().await?))
        } else {
            let settings = Settings {
                etcd_args: self.etcd_args,
                apiserver_args: self.apiserver_args,
                controllers: self.controllers,
                nodes: self.nodes,
                ..Settings::from_env()?
            };
            Cluster::Own(Box::new(
                OwnCluster::start(self.assets.as_deref(), settings).await?,
            ))
        };
        let environment = Environment {
            cluster: Arc::new(cluster),
            installed: Arc::default(),
            cleans_up: self.cleans_up,
            webhook_host: self.webhook_host.as_deref().unwrap_or("127.0.0.1").into(),
            shared: false,
        };
        for path in &self.crds {
            environment.install_crds(path).await?;
        }
        Ok(environment)
    }
}

impl Environment {
    /// Returns a builder. Call [`Builder::start`] to start the environment.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the environment shared by all tests of this process. The first call starts it, and
    /// it runs until the process ends.
    ///
    /// Use [`Environment::namespace`] to isolate tests. CRDs are shared by all tests.
    ///
    /// # Errors
    ///
    /// Same as [`Builder::start`]. A failed start isn't retried; later calls immediately return the
    /// same error.
    pub async fn shared() -> Result<Environment, Error> {
        static SHARED: OnceCell<Result<Environment, Error>> = OnceCell::const_new();
        let started = SHARED.get_or_init(|| async {
            let environment = Environment::builder().start().await?;
            Ok(Environment {
                shared: true,
                ..environment
            })
        });
        started.await.clone()
    }

    /// Returns a new client with the permissions of `system:masters` or, for an existing cluster,
    /// of its kubeconfig.
    ///
    /// Every call creates a new client, because clients are bound to a tokio runtime and each test
    /// has its own. The client doesn't retry, so that tests see the server's actual response.
    ///
    /// # Panics
    ///
    /// Panics if called outside a tokio runtime.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::try_from(self.config()).expect("the same configuration made a client when the server started")
    }

    /// The configuration used by [`Environment::client`].
    #[must_use]
    pub fn config(&self) -> Config {
        match &*self.cluster {
            Cluster::Own(own) => own.config().clone(),
            Cluster::Existing(existing) => existing.config().clone(),
        }
    }

    /// A kubeconfig with the same access, for child processes of the test.
    #[must_use]
    pub fn kubeconfig(&self) -> Kubeconfig {
        match &*self.cluster {
            Cluster::Own(own) => own.kubeconfig().clone(),
            Cluster::Existing(existing) => existing.kubeconfig().clone(),
        }
    }

    /// Path to a file with the [`Environment::kubeconfig`], for `--kubeconfig` and `KUBECONFIG`.
    /// The file is deleted together with the environment.
    #[must_use]
    pub fn kubeconfig_path(&self) -> &Path {
        match &*self.cluster {
            Cluster::Own(own) => own.kubeconfig_path(),
            Cluster::Existing(existing) => existing.kubeconfig_path(),
        }
    }

    /// Installs CRDs with server-side apply, from a file or from the `.yaml`, `.yml` and `.json`
    /// files in a directory, and waits for the API server to serve them. Documents of other kinds
    /// are ignored. Reinstalling a CRD is a no-op.
    ///
    /// # Errors
    ///
    /// Returns an error if the path can't be read or contains no CRD, if a document isn't valid
    /// YAML, if the API server rejects a CRD, or if a CRD isn't served within 30 seconds.
    pub async fn install_crds(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        crds::install_crds(&self.client(), path.as_ref(), &self.installed).await
    }

    /// Like [`install_crds`](Self::install_crds), but for CRDs in memory. Used by simulations.
    ///
    /// # Errors
    ///
    /// Returns an error if the API server rejects a CRD, or doesn't serve it within 30 seconds.
    #[doc(hidden)]
    pub async fn install_crd_values(&self, crds: impl IntoIterator<Item = Value>) -> Result<(), Error> {
        crds::install_values(&self.client(), crds, &self.installed).await
    }

    /// Creates a namespace with a generated name, `<prefix>-<suffix>`, and returns its name.
    ///
    /// # Errors
    ///
    /// Returns an error if the API server rejects the name, e.g. because the prefix isn't a DNS
    /// label.
    pub async fn namespace(&self, prefix: &str) -> Result<String, Error> {
        let metadata = ObjectMeta {
            generate_name: Some(format!("{prefix}-")),
            ..ObjectMeta::default()
        };
        let namespace = Namespace {
            metadata,
            ..Namespace::default()
        };
        let made = Api::<Namespace>::all(self.client())
            .create(&PostParams::default(), &namespace)
            .await;
        let made =
            made.map_err(|err| Error::request(format!("cannot create namespace `{prefix}-…`"), &err))?;
        let name = made.metadata.name.unwrap_or_default();
        self.installed.note::<Namespace>(&name);
        Ok(name)
    }

    /// Deletes all CRDs, webhook configurations and namespaces created by this environment and its
    /// clones. Deleting a CRD also deletes its objects. Use this for clusters that outlive the
    /// tests.
    ///
    /// Doesn't wait for finalizers.
    ///
    /// # Errors
    ///
    /// Returns an error if the API server rejects a deletion. The remaining objects are deleted
    /// nevertheless.
    pub async fn clean_up(&self) -> Result<(), Error> {
        self.installed.remove(&self.client()).await
    }

    /// Stops the servers, also for clones of this environment, and removes their files. Existing
    /// clusters keep running.
    ///
    /// # Errors
    ///
    /// Returns an error if the servers don't exit within the stop timeout, if the cleanup fails, or
    /// if this is [`Environment::shared`], which other tests use.
    pub async fn stop(self) -> Result<(), Error> {
        if self.shared {
            return Err(Error::new(
                "the shared environment cannot be stopped: it serves all tests and ends with the process",
            ));
        }
        let cleaned = if self.cleans_up {
            self.clean_up().await
        } else {
            Ok(())
        };
        match &*self.cluster {
            Cluster::Own(own) => own.stop().await?,
            Cluster::Existing(_) => {}
        }
        cleaned
    }
}

#[doc(hidden)]
pub fn run<T>(body: impl Future<Output = T>) -> T {
    // Called by code that `#[rbuilder::envtest::test]` generates.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a tokio runtime can be made").block_on(body)
}
