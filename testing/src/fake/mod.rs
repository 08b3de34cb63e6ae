//! A Kubernetes API inside of the test process: no binaries, no sockets, no waiting.
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
//! `rbuilder::Manager` run on it. Kubernetes' own stable kinds are served from the start; those of the operator
//! are added with [`ApiServer::crd`].
//!
//! # What it does as the real one
//! Names, versions of objects and conflicts; generations; the separation of status and the rest; JSON, merge and
//! strategic merge patches and server-side apply with managed fields; finalizers, preconditions, dry runs; label and
//! field selectors, pages; watches with bookmarks, from any version; lists and watches of metadata; defaults, pruning and
//! the bounds of schemas; subresources `status` and `scale`; discovery. One suite of tests runs against it and
//! kube-apiserver.
//!
//! # What it does not
//! - CEL rules, patterns and formats of schemas are not checked, nor the rules that kube-apiserver has in code for its
//!   own kinds; of their defaults only the most common ones are filled in. CRDs themselves are taken as they are.
//! - Webhooks are not called: neither admission, nor conversion. Versions with the conversion strategy `None` are.
//! - Everybody may do everything.
//! - There are no controllers, as with `envtest`: Deployments get no pods, a deleted namespace stays `Terminating`, and
//!   what has lost its owner stays, unless [`ApiServer::collecting_garbage`] is asked for.
//! - Logs, `exec` and port forwarding.
//!
//! # Time
//! Only tokio's clock is used. In a test with `#[tokio::test(start_paused = true)]` hours pass at once, in order:
//! [`tokio::time::sleep`] in the test lets every timer fire that is due before; and time stands still while
//! anything is left to do.

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
