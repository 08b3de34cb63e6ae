//! A Kubernetes API server for tests: etcd and kube-apiserver as child processes of the test.
//!
//! ```no_run
//! use std::time::Duration;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::Api;
//! use rbuilder::envtest::{Environment, eventually};
//!
//! #[rbuilder::envtest::test]
//! async fn a_config_map_appears(env: Environment) {
//!     env.install_crds("config/crd/bases").await.unwrap();
//!     let namespace = env.namespace("appears").await.unwrap();
//!     let maps: Api<ConfigMap> = Api::namespaced(env.client(), &namespace);
//!     // … start the operator, then:
//!     eventually(Duration::from_secs(10), || async { maps.get("settings").await }).await;
//! }
//! ```
//!
//! # The binaries
//! `KUBEBUILDER_ASSETS` names the folder of `etcd` and `kube-apiserver`, as `rbuilder envtest install` prints it;
//! `TEST_ASSET_ETCD` and `TEST_ASSET_KUBE_APISERVER` name a single binary and win. Without variables, an environment uses
//! [`Builder::assets`], then what `rbuilder envtest install` or `setup-envtest` has installed of the Kubernetes minor that
//! k8s-openapi is compiled for, then `/usr/local/kubebuilder/bin`.
//!
//! Tests marked with [`#[rbuilder::envtest::test]`](test) are ignored when they are built without these variables, even
//! if binaries are installed: cargo notices a change of a variable and builds the tests again, but not an installation.
//!
//! # Other variables
//! - `KUBEBUILDER_CONTROLPLANE_START_TIMEOUT`, `KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT`: timeouts of a start (default
//!   60 s) and a stop (default 20 s), as Go writes durations: `90s`, `1m30s`.
//! - `KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true`: the servers write to the test's own output.
//!
//! # An existing cluster
//! With `USE_EXISTING_CLUSTER=true`, or [`Builder::existing_cluster`], nothing is started: tests run on the cluster of
//! `KUBECONFIG`, `~/.kube/config` or, in a pod, of its service account, and need the permissions to create what they
//! install. What they install stays there until [`Environment::clean_up`], or until [`Environment::stop`] of an
//! environment built with [`Builder::cleaning_up`]. For webhooks, the cluster must be able to reach this machine: see
//! [`Builder::webhook_host`].
//!
//! # Limitations
//! Unless [`Builder::controllers`] and [`Builder::nodes`] ask for more, only the API server runs: no controllers and no
//! kubelet. Deployments get no pods, nothing is garbage collected
//! through owner references, and a deleted namespace stays `Terminating`; a test writes such statuses itself.
//!
//! # Cleanup after a crash
//! The servers end with the test process, however it ends: a watchdog process waits on a pipe that only the test
//! process holds open. What a killed watchdog leaves behind is removed by the next start.

mod crds;
mod error;
mod existing;
mod installed;
mod outage;
mod own;
mod user;
mod webhooks;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Config, config::Kubeconfig};
use tokio::sync::OnceCell;

pub use crate::{Outcome, eventually};
pub use error::Error;
/// Marks an async function as a test that talks to a real API server.
///
/// The function takes nothing, or the [`Environment`] that all tests of the process share:
///
/// ```no_run
/// use rbuilder::envtest::Environment;
///
/// #[rbuilder::envtest::test]
/// async fn the_server_answers(env: Environment) {
///     env.client().apiserver_version().await.unwrap();
/// }
/// ```
///
/// The test runs on a multi-threaded tokio runtime. When neither `KUBEBUILDER_ASSETS`, nor both of `TEST_ASSET_ETCD`
/// and `TEST_ASSET_KUBE_APISERVER`, nor `USE_EXISTING_CLUSTER=true` is set at compile time, the test is built as
/// ignored, with the reason shown beside its name, so that a run without the binaries never counts it as passed.
/// Setting the variable rebuilds it.
///
/// `#[rbuilder::envtest::test(controllers)]` is for a test that starts an environment with [`Builder::controllers`] or
/// [`Builder::nodes`]. It is also ignored when the folder of `KUBEBUILDER_ASSETS` lacks the programs for these.
pub use rbuilder_derive::envtest_test as test;

pub use rbuilder_control_plane::{ReservedPort, Server};
pub use user::User;
pub use webhooks::{WebhookArgs, WebhookServer};

use existing::Existing;
use installed::Installed;
use own::OwnCluster;
use rbuilder_control_plane::Settings;

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The field manager of objects that tests install.
const FIELD_MANAGER: &str = "rbuilder-envtest";

/// A running API server with its etcd, or an existing cluster. Clones share it; dropping the last one kills the servers
/// that were started.
#[derive(Clone, Debug)]
pub struct Environment {
    cluster: Arc<Cluster>,
    installed: Arc<Installed>,
    cleans_up: bool,
    /// The host name by which the API server reaches this machine.
    webhook_host: Arc<str>,
    shared: bool,
}

/// The servers: started by the test, or an existing cluster.
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
    /// Sets the folder of `etcd` and `kube-apiserver` for when the environment variables are not set.
    #[must_use]
    pub fn assets(mut self, folder: impl Into<PathBuf>) -> Self {
        self.assets = Some(folder.into());
        self
    }

    /// Adds a file or folder of CRDs to install, as [`Environment::install_crds`] does.
    #[must_use]
    pub fn crds(mut self, path: impl Into<PathBuf>) -> Self {
        self.crds.push(path.into());
        self
    }

    /// Adds an argument for etcd, such as `--quota-backend-bytes=8589934592`. It overrides a default one.
    #[must_use]
    pub fn etcd_arg(mut self, argument: impl Into<String>) -> Self {
        self.etcd_args.push(argument.into());
        self
    }

    /// Adds an argument for kube-apiserver, such as `--feature-gates=WatchList=true`. It overrides a default one.
    #[must_use]
    pub fn apiserver_arg(mut self, argument: impl Into<String>) -> Self {
        self.apiserver_args.push(argument.into());
        self
    }

    /// Starts kube-controller-manager as well: Deployments get ReplicaSets and Pods, Jobs and CronJobs run, dependents are
    /// garbage collected, and deleted namespaces end. Pods remain `Pending` without [`Builder::nodes`].
    ///
    /// The program is searched beside kube-apiserver. The archives of [the binaries](crate::envtest) do not have it.
    #[must_use]
    pub fn controllers(mut self) -> Self {
        self.controllers = true;
        self
    }

    /// Starts kube-controller-manager, kube-scheduler and kwok as well, and creates nodes (`node-0` and so on) on which
    /// Pods become ready at once, without running anything. Pods of a Job succeed at once.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self
    }

    /// Uses an existing cluster instead of starting servers, or not, whatever `USE_EXISTING_CLUSTER` says.
    #[must_use]
    pub fn existing_cluster(mut self, existing: bool) -> Self {
        self.existing_cluster = Some(existing);
        self
    }

    /// Makes [`Environment::stop`] clean up as [`Environment::clean_up`] does.
    #[must_use]
    pub fn cleaning_up(mut self) -> Self {
        self.cleans_up = true;
        self
    }

    /// Sets the host name or address by which the API server reaches this machine, for
    /// [`Environment::install_webhooks`]. The default, `127.0.0.1`, fits servers that the test starts; an existing
    /// cluster usually needs another one (`host.docker.internal`, the address of a bridge).
    #[must_use]
    pub fn webhook_host(mut self, host: impl Into<String>) -> Self {
        self.webhook_host = Some(host.into());
        self
    }

    /// Starts etcd and kube-apiserver on free ports of 127.0.0.1, waits until the API is ready, and
    /// installs the CRDs. With an existing cluster, connects to it and installs the CRDs.
    ///
    /// # Errors
    /// When a binary is missing or exits early, when the API is not ready in time (the error contains the
    /// last lines of the server's log), when the existing cluster is not found or does not answer, or when a CRD cannot
    /// be installed. No process keeps running then.
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
    /// Returns options for an environment, which is started with [`Builder::start`].
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the control plane that all tests of this process share. The first call starts it, and it ends with the
    /// process.
    ///
    /// Tests isolate themselves with [`Environment::namespace`]. CRDs are shared by all of them.
    ///
    /// # Errors
    /// Those of [`Builder::start`]. A failed start is not retried: every later call returns the same error at once.
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

    /// Returns a new client with the permissions of `system:masters`; for an existing cluster, with those of its
    /// kubeconfig.
    ///
    /// Each call creates a client, since a client belongs to the tokio runtime it was created on and each test has its
    /// own runtime. The client does not retry, so that a test sees the server's response.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::try_from(self.config()).expect("the same configuration made a client when the server started")
    }

    /// Returns the configuration of [`Environment::client`].
    #[must_use]
    pub fn config(&self) -> Config {
        match &*self.cluster {
            Cluster::Own(own) => own.config().clone(),
            Cluster::Existing(existing) => existing.config().clone(),
        }
    }

    /// Returns a kubeconfig with the same access, for programs that the test starts.
    #[must_use]
    pub fn kubeconfig(&self) -> Kubeconfig {
        match &*self.cluster {
            Cluster::Own(own) => own.kubeconfig().clone(),
            Cluster::Existing(existing) => existing.kubeconfig().clone(),
        }
    }

    /// Returns the path of a file with [`Environment::kubeconfig`], for `--kubeconfig` and `KUBECONFIG`. The file is
    /// deleted with the environment.
    #[must_use]
    pub fn kubeconfig_path(&self) -> &Path {
        match &*self.cluster {
            Cluster::Own(own) => own.kubeconfig_path(),
            Cluster::Existing(existing) => existing.kubeconfig_path(),
        }
    }

    /// Installs the CRDs in a file, or in the `.yaml`, `.yml` and `.json` files of a folder, by server-side
    /// apply, and waits until the API server serves them. Documents of other kinds are ignored, and installing a CRD
    /// twice changes nothing.
    ///
    /// # Errors
    /// When the path cannot be read or contains no CRD, when a document is not YAML, when the API server
    /// refuses a CRD, or when it does not serve one within 30 seconds.
    pub async fn install_crds(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        crds::install_crds(&self.client(), path.as_ref(), &self.installed).await
    }

    /// Creates a namespace with a generated name, `<prefix>-<suffix>`, and returns the name.
    ///
    /// # Errors
    /// When the API server refuses the name, for example because the prefix is not a DNS label.
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

    /// Deletes the CRDs, webhook configurations and namespaces that this environment and its clones have created.
    /// Deleting a CRD deletes its objects. It is meant for clusters that outlive the tests.
    ///
    /// It does not wait for finalizers.
    ///
    /// # Errors
    /// When the API server refuses a deletion; the other objects are deleted.
    pub async fn clean_up(&self) -> Result<(), Error> {
        self.installed.remove(&self.client()).await
    }

    /// Stops the servers, also for clones of this environment, and removes their files. An existing cluster keeps
    /// running.
    ///
    /// # Errors
    /// When the servers do not exit within the stop timeout, when an object cannot be cleaned up, and for
    /// [`Environment::shared`], which other tests use.
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

/// Runs the body of a test on a multi-threaded runtime. [`test`](macro@test) generates the call.
#[doc(hidden)]
pub fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a tokio runtime can be made").block_on(body)
}
