//! A Kubernetes API server inside the test process, without binaries or sockets.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{Api, api::PostParams};
//! use rbuilder::fake::ApiServer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = ApiServer::new();
//! let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("settings".to_owned());
//! maps.create(&PostParams::default(), &map).await.unwrap();
//!
//! let refused = maps.create(&PostParams::default(), &map).await.unwrap_err();
//! assert!(refused.to_string().contains("configmaps \"settings\" already exists"));
//! assert_eq!(server.requests().len(), 2);
//! # }
//! ```
//!
//! [`ApiServer::client`] is an ordinary [`kube::Client`]; a reconcile function, a controller and a whole
//! `rbuilder::Manager` run on it. Kubernetes' own stable kinds are served from the start; [`ApiServer::crd`] adds those
//! of the operator.
//!
//! # Supported
//! Names, resource versions and conflicts; generations; the status subresource; JSON, merge and strategic merge patches
//! and server-side apply with managed fields; finalizers, preconditions, dry runs; label and field selectors, pages;
//! watches with bookmarks, from any version; lists and watches of metadata; defaults, pruning and the bounds of
//! schemas; subresources `status` and `scale`; discovery. One suite of tests runs against it and kube-apiserver.
//!
//! # Not supported
//! - CEL rules, patterns and formats of schemas are not checked, nor the validation that kube-apiserver has in code for
//!   its own kinds; of their defaults only the most common ones are set. CRDs themselves are not validated.
//! - Admission and conversion webhooks are not called. Versions with the conversion strategy `None` are converted.
//! - There is no authorization: every client may do everything.
//! - There are no controllers, as with `envtest`: Deployments get no pods, a deleted namespace stays `Terminating`, and
//!   an object without its owner stays, unless [`ApiServer::collecting_garbage`] is called.
//! - Logs, `exec` and port forwarding are not served.
//!
//! # Time
//! Only tokio's clock is used. In a test with `#[tokio::test(start_paused = true)]` hours pass at once:
//! [`tokio::time::sleep`] in the test fires every timer that is due earlier, in order, and the clock does not move
//! while a task is ready to run.

mod apply;
mod builtin;
mod collect;
mod crds;
mod delete;
mod discovery;
mod failure;
mod fault;
mod fields;
mod kinds;
mod managers;
mod names;
mod patch;
mod read;
mod request;
mod routes;
mod scale;
mod selectors;
mod server;
mod shape;
mod store;
mod strategic;
mod validate;
mod view;
mod watch;
mod write;

pub use fault::Fault;
pub use request::{Request, Verb};
pub use server::ApiServer;

use server::Shared;
