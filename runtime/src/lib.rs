//! The library that Kubernetes operators in Rust run on.
//!
//! A [`Manager`] runs [`Controller`]s: values made of a reconcile function and a state. A reconcile gets the
//! object from a cache, and a [`Ctx`] with what it usually does to the cluster; an [`Action`] or an [`Error`]
//! it returns decides when it runs again. kube's own types stay in sight: everything here can be left for
//! [`kube`] at any point.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use clap::Parser;
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result};
//!
//! struct State {
//!     image: String,
//! }
//!
//! async fn reconcile(web: Arc<ConfigMap>, ctx: Ctx<State>) -> Result {
//!     ctx.apply_owned(&*web, deployment(&web, &ctx.image)).await?;
//!     Ok(Action::await_change())
//! }
//! # fn deployment(_: &ConfigMap, _: &str) -> Deployment { Deployment::default() }
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     manager: ManagerArgs,
//!     #[arg(long, env)]
//!     image: String,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let args = Args::parse();
//!     Manager::new("da1d9c86.example.com", args.manager)
//!         .await?
//!         .controller(Controller::new(reconcile, State { image: args.image }).owns::<Deployment>())
//!         .start()
//!         .await
//! }
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`conditions`] | the conditions in a status |
//! | [`metrics`] | what is counted, and metrics of the operator's own |
//! | `envtest` (feature of that name) | etcd and kube-apiserver for tests |

#[cfg(feature = "envtest")]
pub mod envtest;

mod action;
mod args;
mod cache;
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
mod probes;
mod queue;
mod server;
mod shutdown;
mod signals;
pub mod testing;
mod tls;

/// What the code that [`CrdSchema`] writes calls.
#[doc(hidden)]
pub use rbuilder_schema::private as __private;

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

pub use action::Action;
pub use args::{LogFormat, ManagerArgs};
pub use controller::Controller;
pub use ctx::Ctx;
pub use error::{BoxError, Error, ManagerError, OwnershipError, Result};
pub use manager::Manager;
pub use object::{Object, Scope};

pub use kube::runtime::reflector::ObjectRef;
