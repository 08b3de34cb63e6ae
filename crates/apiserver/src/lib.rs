//! A Kubernetes API server in one process, without etcd.
//!
//! ```
//! use http_body_util::{BodyExt, Full};
//! use hyper::body::Bytes;
//! use rbuilder_apiserver::ApiServer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = ApiServer::new();
//! let create = http::Request::post("/api/v1/namespaces/default/configmaps")
//!     .header("content-type", "application/json")
//!     .body(Full::<Bytes>::from(r#"{ "metadata": { "name": "settings" }, "data": { "color": "blue" } }"#))
//!     .unwrap();
//! let response = server.call(create, true).await.unwrap();
//! assert_eq!(response.status(), 201);
//!
//! let read = http::Request::get("/api/v1/namespaces/default/configmaps/settings");
//! let response = server.call(read.body(Full::<Bytes>::default()).unwrap(), true).await.unwrap();
//! let body = response.into_body().collect().await.unwrap().to_bytes();
//! assert!(String::from_utf8_lossy(&body).contains(r#""color":"blue""#));
//! # }
//! ```
//!
//! Requests and responses are types of the crate `http`, and objects are JSON. This crate depends
//! neither on kube nor on k8s-openapi: `rbuilder::fake` is the face of this server for tests that
//! use them, and lists what is supported.
//!
//! The server only uses tokio's clock, so simulations and tests with a paused clock are
//! reproducible.

// The server consists of a state and functions on it. A request is parsed (`request`,
// `http_messages`), its kind is looked up (`kinds`, `builtin`), and it is handled under a single
// lock (`routes`, `read`, `write`, `patch`, `delete`, `pods`, `identity`). Writes are admitted by
// plugins (`plugins`, `escalation`), and decoded and validated by
// `rbuilder-judge` (`verdicts`; `typed` for applied configurations). Webhooks are called between
// two attempts to handle a request (`webhooks`). Objects are converted when they are read or stored
// (`versions`). Changes are appended to a log, which serves watches and lists of older versions
// (`store`, `watch`). Simulations reuse the results of repeated writes (`results`). Ownership of
// fields is split into field sets (`fields`), manager entries (`managers`, `changes`) and the merge
// (`apply`). Only watches use tasks and timers, so a paused clock advances only when all watches
// are idle.

mod apply;
mod builtin;
mod changes;
mod collect;
mod crds;
mod delete;
mod discovery;
mod escalation;
mod failure;
mod fault;
mod fields;
mod http_messages;
mod identity;
mod inspect;
mod kinds;
mod managers;
#[cfg(feature = "serve")]
mod media_types;
mod openapi;
mod parameters;
mod past;
mod patch;
mod plugins;
mod pods;
mod prune;
mod read;
mod request;
mod results;
mod roles;
mod routes;
mod scale;
mod selectors;
#[cfg(feature = "serve")]
mod serve;
mod server;
mod services;
mod shards;
mod store;
mod strategic;
mod typed;
mod verdicts;
mod versions;
mod view;
mod warnings;
mod watch;
mod webhooks;
mod write;

pub use fault::Fault;
pub use http_messages::{BoxError, ResponseBody};
pub use inspect::StoredObject;
pub use kinds::KindNames;
pub use rbuilder_catalogue::Minor;
pub use request::{Request, Verb};
pub use roles::{OWN_NAMESPACE, Permission};
#[cfg(feature = "serve")]
pub use serve::{Listen, ServedApi};
pub use server::ApiServer;
pub use webhooks::WebhookHandler;

use server::Shared;
