//! A library for writing Kubernetes operators in Rust.
//!
//! A [`Manager`] runs [`Controller`]s, which consist of a reconcile function and some shared state.
//! The reconcile function is called with an object from a cache and a [`Ctx`], which provides
//! common operations on the cluster. It returns an [`Action`] or an [`Error`], which determines
//! when the object is reconciled again. The library is built on [`kube`] and exposes its types, so
//! you can use kube directly wherever you need to.
//!
//! # A complete operator
//!
//! The following operator maintains a ConfigMap for each `Greeting`, and reports the result as a
//! condition:
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//!
//! use clap::Parser;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{CustomResource, ResourceExt};
//! use rbuilder::conditions::{self, Condition};
//! use rbuilder::{Action, Controller, CrdSchema, Ctx, Error, Manager, ManagerArgs, Result, rbac};
//! use serde::{Deserialize, Serialize};
//!
//! /// GreetingSpec defines the desired state of Greeting.
//! #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
//! #[kube(group = "example.com", version = "v1alpha1", kind = "Greeting", namespaced, status = "GreetingStatus")]
//! struct GreetingSpec {
//!     /// whom is the name to greet.
//!     #[kube(validation(min_length = 1, max_length = 63), default = "world")]
//!     whom: String,
//! }
//!
//! /// GreetingStatus defines the observed state of Greeting.
//! #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
//! struct GreetingStatus {
//!     /// conditions represent the current state of the Greeting resource.
//!     #[serde(default)]
//!     #[kube(list_type = "map", list_map_keys = ["type"])]
//!     conditions: Vec<Condition>,
//! }
//!
//! /// State shared by all reconciles: settings, clients of other services.
//! struct State {
//!     word: String,
//! }
//!
//! /// Reconciles a Greeting when it or its ConfigMap changes. `rbuilder manifests` generates the role from the markers.
//! #[rbac(groups = "example.com", resources = "greetings", verbs = "get;list;watch")]
//! #[rbac(groups = "example.com", resources = "greetings/status", verbs = "get;patch")]
//! #[rbac(groups = "", resources = "configmaps", verbs = "get;list;watch;create;patch")]
//! async fn reconcile(greeting: Arc<Greeting>, ctx: Ctx<State>) -> Result {
//!     if greeting.spec.whom.contains('\n') {
//!         // Retrying cannot help until the object changes.
//!         return Err(Error::terminal("`whom` must be one line"));
//!     }
//!     let mut map = ConfigMap::default();
//!     map.metadata.name = Some(greeting.name_any());
//!     let text = format!("{}, {}!", ctx.word, greeting.spec.whom);
//!     map.data = Some(BTreeMap::from([("text".to_owned(), text)]));
//!     ctx.apply_owned(&*greeting, map).await?;
//!
//!     let mut status = greeting.status.clone().unwrap_or_default();
//!     let ready = conditions::new("Ready", true, "Written").observed(&*greeting);
//!     conditions::set(&mut status.conditions, ready);
//!     ctx.apply_status(&*greeting, status).await?;
//!     Ok(Action::await_change())
//! }
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     manager: ManagerArgs,
//!     /// Greeting to use.
//!     #[arg(long, env, default_value = "Hello")]
//!     word: String,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let args = Args::parse();
//!     Manager::new("da1d9c86.example.com", args.manager)
//!         .await?
//!         .controller(Controller::new(reconcile, State { word: args.word }).owns::<ConfigMap>())
//!         .start()
//!         .await
//! }
//! ```
//!
//! `rbuilder init` and `rbuilder create api` create such a project, including the manifests to
//! deploy it.
//!
//! # Overview
//!
//! | task | items |
//! |---|---|
//! | define a kind | [`CrdSchema`], and its permissions: [`rbac`] |
//! | reconcile objects | [`Controller`], [`Ctx`], [`Action`]; [`Error`]; [`ObjectRef`] for deleted objects |
//! | watch other objects | [`Watch`], [`Selection`], [`predicate`]; [`trigger`] for events from outside the cluster; [`Request`] with priority and delay |
//! | work with kinds known only at run time | [`DynamicKind`], [`Controller::dynamic`], [`Manager::discover`], [`Ctx::set_watches`] |
//! | read from the cache | [`Ctx::cached`], [`Cached`], [`Controller::index`] |
//! | watch and write to other clusters | [`ClusterConfig`], [`Manager::cluster`], [`Ctx::in_cluster`]; fleets: [`Clusters`] |
//! | delay what has failed | [`Controller::backoff`], [`rate_limiter`] |
//! | report status | [`conditions`]; events: [`Ctx::normal`], [`Ctx::warning`], from tasks and webhooks [`EventRecorder`] |
//! | validate, default and convert objects | [`Webhook`], [`Denied`]; the marker [`webhook`](macro@webhook) |
//! | run the operator | [`Manager`], [`ManagerArgs`] with kubebuilder's flags, [`ManagerError`] |
//! | run other tasks in the same process | [`Task`], [`Controller::on_every_replica`] |
//! | expose metrics | [`metrics`]: built-in metrics, and metrics of the operator's own |
//! | test the operator | behind features of the same names: `testing` for running a manager in a test and for checks without a cluster; `fake` for an API server in the test process; `envtest` for etcd and kube-apiserver; `simulation` for histories of faults |
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `args` | yes | clap's `Args` for [`ManagerArgs`]; without it, set its fields in code |
//! | `logging` | yes | the log that [`Manager::new`] sets up, with tracing-subscriber; without it, install a subscriber of your own |
//! | `http2` | no | HTTP/2 on the webhook and metrics servers |
//! | `opentelemetry` | no | traces of reconciles, their requests and webhooks, for the tracer provider that the operator installs |
//! | `profiling` | no | CPU profiles at `/debug/pprof/profile` of the metrics server, with `--enable-debug-endpoints`; on Linux and macOS |
//! | `testing`, `fake`, `envtest`, `simulation` | no | the test kit, for `[dev-dependencies]` |
//!
//! # Failures and shutdown
//!
//! - If a reconcile fails or panics, the error is logged as a single line and counted. The object
//!   is requeued with exponential [backoff](Controller::backoff) until it succeeds, without
//!   delaying any other objects.
//! - On SIGTERM or SIGINT, no new reconciles are started. Running reconciles have 30 s to finish,
//!   then the lease is released and the process exits with status 0. On a second signal, it exits
//!   immediately with status 1.
//! - If the lease is lost, or if a server or a watch stops unexpectedly, everything is stopped and
//!   [`Manager::start`] returns an error with the name of the component. Return this error from
//!   `main`, so that the process exits with status 1 and is restarted.
//! - Once the lease is lost, all writes of the leader's controllers are rejected. If a reconcile
//!   blocks its thread and the process is still running one second later, it exits with status 1.

mod action;
mod args;
mod backoff;
mod cache;
mod causes;
mod client;
mod clock;
mod cluster;
pub mod conditions;
mod controller;
mod ctx;
mod deadline;
mod debug;
mod error;
mod events;
mod hash;
mod kinds;
mod leader_election;
mod list_watch;
mod log_limit;
#[cfg(feature = "logging")]
mod logging;
mod manager;
mod memory_limit;
pub mod metrics;
mod metrics_server;
mod object;
mod open_files;
mod phase;
pub mod predicate;
#[allow(missing_docs)] // used by the derive only
#[doc(hidden)]
pub mod private;
mod probes;
mod queue;
mod random;
pub mod rate_limiter;
mod request;
mod server;
mod shards;
mod shutdown;
mod signals;
#[cfg(feature = "simulation")]
pub mod simulation;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
mod text;
mod tls;
mod token_bucket;
mod traces;
pub mod trigger;
pub mod webhook;

/// Used by code that [`CrdSchema`] generates.
#[doc(hidden)]
pub use private as __private;

/// Implements [`schemars::JsonSchema`] for an API type, with a structural schema that the API
/// server accepts.
///
/// Derive it instead of `schemars::JsonSchema` for a kind's spec, and for all types that the spec
/// contains. The names of fields, and whether they're required, are determined by serde attributes.
/// Use markers to validate the values:
///
/// ```
/// use rbuilder::CrdSchema;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(CrdSchema, Serialize, Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Size {
///     /// Number of instances to run.
///     #[kube(validation(minimum = 1, maximum = 5), default = 1)]
///     pub max_replicas: i32,
/// }
/// ```
///
/// It's a compile error if a marker is unknown, in the wrong place, or contradicts the type.
/// `rbuilder manifests` reports the same errors.
///
/// Some errors can't be detected at compile time, such as recursive types, or a default that is not
/// a valid value of its field. In these cases, the generated code panics when the schema is built.
pub use rbuilder_derive::CrdSchema;

/// Declares the permissions that the annotated item needs. `rbuilder manifests` generates roles
/// from them.
///
/// ```
/// #[rbuilder::rbac(groups = "apps", resources = "deployments", verbs = "get;list;watch;create;patch")]
/// #[rbuilder::rbac(groups = "", resources = ["events"], verbs = ["create", "patch"])]
/// async fn reconcile() {}
/// ```
///
/// The item is not modified. It's a compile error if the API server would reject a rule, or if a
/// rule does not grant anything.
pub use rbuilder_derive::rbac;

/// Declares that the annotated function is an admission webhook. `rbuilder manifests` generates
/// webhook configurations from it.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::core::admission::AdmissionRequest;
/// use rbuilder::webhook;
///
/// #[webhook(mutating, operations = "create", failure_policy = "ignore")]
/// fn default(pod: &mut Pod, request: &AdmissionRequest<Pod>) {}
///
/// #[webhook(
///     validating,
///     operations = "create;update;delete",
///     match_condition(name = "not-system", expression = "!object.metadata.name.startsWith('kube-')")
/// )]
/// async fn validate(new: &Pod, old: Option<&Pod>) {}
/// ```
///
/// By default, the group, version, resource, path and name are derived from the first parameter
/// whose type is a kind, i.e. a struct that kube derives from a spec, or a type from k8s-openapi.
/// It may be a reference, or be wrapped in an `Arc`, `Box`, `Option` or `AdmissionRequest`. All of
/// these can be overridden with arguments. For example, the first function has the path
/// `/mutate--v1-pod` (as in controller-runtime), and its name is `mpod-v1.kb.io`.
///
/// The function isn't modified. It is a compile error if the API server would reject an argument.
pub use rbuilder_derive::webhook;

pub use action::Action;
pub use args::{LogFormat, ManagerArgs};
pub use cache::{Cached, Change, Selection};
pub use client::ClientService;
pub use cluster::{Cluster, ClusterConfig, Clusters};
pub use controller::{
    ByChange, ByFunction, ByMap, ByOwner, ByTryMap, Controller, Maps, MapsLate, Unselected, Watch, Watches,
    Watching,
};
pub use ctx::{
    ActiveWatch, AppliedSet, ApplySet, Ctx, Written, set_controller_reference, set_owner_reference,
};
pub use error::{BoxError, Error, FieldManagerConflict, ManagerError, OwnedField, OwnershipError, Result};
pub use events::EventRecorder;
pub use manager::Manager;
pub use object::{AnyObject, DynamicKind, Object, Scope, Undecodable, Watchable, WithStatus};
pub use request::Request;
pub use shards::{InvalidSharding, ShardBy, Sharding};
pub use shutdown::Shutdown;
pub use task::Task;
pub use webhook::{Denied, Webhook};

pub use kube::runtime::reflector::ObjectRef;
// The releases whose types the functions of this library take and return.
#[cfg(feature = "envtest")]
#[doc(inline)]
pub use rbuilder_testing::envtest;
#[cfg(feature = "fake")]
#[doc(inline)]
pub use rbuilder_testing::fake;
pub use {k8s_openapi, kube};

/// Compiles the examples of the controller guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/controllers.md")]
struct Guide;

/// Compiles the examples of the guide for users of kube-rs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-kube-rs.md")]
struct FromKubeRsGuide;

/// Compiles the examples of the metrics guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/metrics.md")]
struct MetricsGuide;

/// Compiles the examples of the testing guide. They need some optional features.
#[cfg(all(doctest, feature = "envtest", feature = "fake"))]
#[doc = include_str!("../../../docs/testing.md")]
struct TestingGuide;

/// Runs the examples of the simulation guide.
#[cfg(all(doctest, feature = "simulation"))]
#[doc = include_str!("../../../docs/simulation.md")]
struct SimulationGuide;

/// Compiles the examples of the guide to additional clusters.
#[cfg(all(doctest, feature = "fake"))]
#[doc = include_str!("../../../docs/other-clusters.md")]
struct OtherClustersGuide;
