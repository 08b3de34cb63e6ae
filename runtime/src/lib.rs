//! The library that Kubernetes operators in Rust run on.
//!
//! A [`Manager`] runs [`Controller`]s: values made of a reconcile function and a state. A reconcile gets the
//! object from a cache, and a [`Ctx`] with what it usually does to the cluster; an [`Action`] or an [`Error`]
//! it returns decides when it runs again. kube's own types stay in sight: everything here can be left for
//! [`kube`] at any point.
//!
//! # A whole operator
//! It keeps one ConfigMap per `Greeting` as the object asks for, and says so in a condition:
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
//! /// What is wanted. `rbuilder manifests` makes the CRD of it.
//! #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
//! #[kube(group = "example.com", version = "v1alpha1", kind = "Greeting", namespaced, status = "GreetingStatus")]
//! struct GreetingSpec {
//!     /// Who is greeted.
//!     #[kube(validation(min_length = 1, max_length = 63), default = "world")]
//!     whom: String,
//! }
//!
//! /// What was found.
//! #[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
//! struct GreetingStatus {
//!     #[serde(default)]
//!     #[kube(list_type = "map", list_map_keys = ["type"])]
//!     conditions: Vec<Condition>,
//! }
//!
//! /// What reconciles need beside the object: clients, settings.
//! struct State {
//!     word: String,
//! }
//!
//! /// Called when a `Greeting` or its ConfigMap has changed. `rbuilder manifests` makes the role of its markers.
//! #[rbac(groups = "example.com", resources = "greetings", verbs = "get;list;watch")]
//! #[rbac(groups = "example.com", resources = "greetings/status", verbs = "get;patch")]
//! #[rbac(groups = "", resources = "configmaps", verbs = "get;list;watch;create;patch")]
//! async fn reconcile(greeting: Arc<Greeting>, ctx: Ctx<State>) -> Result {
//!     if greeting.spec.whom.contains('\n') {
//!         // Trying again cannot help; a change of the object can.
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
//!     /// The word of greeting.
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
//! `rbuilder init` and `rbuilder create api` write such a project, with the manifests to deploy it.
//!
//! # Where things are
//! | to | look at |
//! |---|---|
//! | describe a kind | [`CrdSchema`], and its permissions: [`rbac`] |
//! | reconcile it | [`Controller`], [`Ctx`], [`Action`]; [`Error`] for what goes wrong; [`ObjectRef`] for objects that are gone |
//! | hear of changes | [`Watch`], [`Selection`], [`predicate`]; [`trigger`] for what happens outside the cluster |
//! | read without asking | [`Ctx::cached`], [`Cached`], [`Controller::index`] |
//! | say how it is | [`conditions`]; events: [`Ctx::normal`], [`Ctx::warning`] |
//! | be asked before it is stored | [`Webhook`], [`Denied`]; the marker [`webhook`](macro@webhook) |
//! | run it | [`Manager`], [`ManagerArgs`] with kubebuilder's flags, [`ManagerError`] for why it ended |
//! | run something beside it | [`Task`], [`Controller::on_every_replica`] |
//! | count | [`metrics`]: what is counted, and metrics of the operator's own |
//! | test it | behind features of their names: `testing` for a manager beside a test, and for checks that need no cluster; `fake` for an API server inside of the test; `envtest` for etcd and kube-apiserver |
//!
//! # What happens when
//! - A reconcile fails or panics: it is logged as one line, counted, and tried again after 5 ms, then 10 ms, up
//!   to 1000 s, until it succeeds. Other objects do not wait for it.
//! - SIGTERM or SIGINT: no reconcile starts any more, those that run have 30 s, the lease is given up, the
//!   process ends with status 0. A second signal ends it at once, with status 1.
//! - The lease is lost, a server or a watch ends: all stop, and [`Manager::start`] returns an error that names
//!   the part. `main` should return it, so that the process ends with status 1 and is started again.

mod action;
mod args;
mod cache;
mod client;
pub mod conditions;
mod controller;
mod ctx;
mod error;
mod events;
mod leader_election;
mod logging;
mod manager;
pub mod metrics;
mod object;
mod phase;
pub mod predicate;
#[allow(missing_docs)] // for the derive, not for people
#[doc(hidden)]
pub mod private;
mod probes;
mod queue;
mod server;
mod shutdown;
mod signals;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
pub mod trigger;
pub mod webhook;

/// What the code that [`CrdSchema`] writes calls.
#[doc(hidden)]
pub use private as __private;

/// Implements [`schemars::JsonSchema`] for an API type, as a structural schema that the API server accepts.
///
/// It stands in the place of `schemars::JsonSchema` among the derives of a kind and of every type in it. Names
/// and presence are serde's; what a value may be, markers say:
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
/// A marker that is unknown, misplaced or contradicts the type is a compile error at its place; `rbuilder
/// manifests` says the same in the same words. What only the finished schema can show (a type that contains
/// itself, a field that is too narrow for its default) panics when the schema is asked for.
pub use rbuilder_derive::CrdSchema;

/// Says which permissions the code it stands on needs; `rbuilder manifests` makes the roles of it.
///
/// ```
/// #[rbuilder::rbac(groups = "apps", resources = "deployments", verbs = "get;list;watch;create;patch")]
/// #[rbuilder::rbac(groups = "", resources = ["events"], verbs = ["create", "patch"])]
/// async fn reconcile() {}
/// ```
///
/// The item stays as it is. A rule that the API server would refuse, or that allows nothing, is a compile error.
pub use rbuilder_derive::rbac;

/// Says where and about what the API server calls the function it stands on; `rbuilder manifests` makes the webhook
/// configurations of it.
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
/// Group, version, resource, path and name follow from the first parameter that is a kind: the struct that kube makes
/// of a spec, or one of Kubernetes' own, behind references, `Arc`, `Box`, `Option` or in an `AdmissionRequest`. So the
/// first function above is called at `/mutate--v1-pod`, as controller-runtime has it, and is listed as `mpod-v1.kb.io`.
/// Each of them can be given as an argument instead.
///
/// The function stays as it is. An argument that the API server would refuse is a compile error.
pub use rbuilder_derive::webhook;

pub use action::Action;
pub use args::{LogFormat, ManagerArgs};
pub use cache::{Cached, Change, Selection};
pub use controller::{ByMap, ByOwner, Controller, Maps, MapsLate, Watch};
pub use ctx::{Ctx, Watching, Written, set_controller_reference};
pub use error::{BoxError, Error, ManagerError, OwnershipError, Result};
pub use manager::Manager;
pub use object::{DynamicKind, Object, Scope, Watchable};
pub use shutdown::Shutdown;
pub use task::Task;
pub use webhook::{Denied, Webhook};

pub use kube::runtime::reflector::ObjectRef;
#[cfg(feature = "envtest")]
pub use rbuilder_testing::envtest;
#[cfg(feature = "fake")]
pub use rbuilder_testing::fake;

/// The samples of the guide, compiled with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../docs/controllers.md")]
struct Guide;

/// Those of the guide to tests, which need what is behind features.
#[cfg(all(doctest, feature = "envtest", feature = "fake"))]
#[doc = include_str!("../../docs/testing.md")]
struct TestingGuide;
