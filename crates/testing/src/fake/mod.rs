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
//! [`ApiServer::client`] returns an ordinary [`kube::Client`], which works with reconcile
//! functions, controllers and a whole `rbuilder::Manager`. The stable built-in kinds of Kubernetes
//! are always served. Use [`ApiServer::crd`] to serve the kinds of the operator.
//!
//! # Supported
//!
//! - names, resource versions and conflicts, generations
//! - JSON, merge and strategic merge patches, and server-side apply with managed fields
//! - finalizers, propagation policies, grace periods of Pods, preconditions and dry runs
//! - evictions that honour disruption budgets
//! - admission plugins: quotas, limit ranges, priorities and tolerations of Pods, the protection of
//!   volumes in use
//! - label and field selectors, pagination
//! - watches from any resource version, with bookmarks
//! - shard selectors ([`sharding`](rbuilder_apiserver::ApiServer::sharding)), which only few clusters have today
//! - lists and watches of metadata only
//! - custom resource validation identical to kube-apiserver, including its messages: unknown and
//!   repeated fields (`fieldValidation`, with `Warning` headers), pruning, defaults, bounds,
//!   patterns, formats, list keys, CEL rules, transition rules and ratcheting, with a separate
//!   schema for each version
//! - the subresources `status` and `scale`
//! - roles ([`ApiServer::role_from`]): requests that they do not permit are forbidden, and so are
//!   roles and bindings that grant rights which the operator lacks
//! - tokens of service accounts, and their reviews
//! - admission webhooks of the operator, called in the process ([`ApiServer::install_webhooks`]): rules,
//!   selectors, match conditions, match policies, failure policies, timeouts, dry runs, reinvocation
//! - conversion between versions, by the operator's webhook in the process or with the strategy `None`:
//!   objects are stored in the storage version, and read and written in all served versions
//! - discovery
//!
//! The same test suite runs against this server and against kube-apiserver.
//!
//! # Not supported
//!
//! - For built-in kinds, metadata and schemas are checked, and the rules in code that operators often
//!   break: immutable fields (selectors, Jobs, claims, Pods, role references, `immutable: true`),
//!   selectors that do not match their template, and containers without an image. Other rules in code
//!   are missing, and only the most common defaults are set. Services have IPv4 addresses only. CRDs
//!   are not validated.
//! - Mutating webhooks are not called for the subresource `scale`, and no webhooks are called for
//!   evictions or for writes by the garbage collector. Match conditions have no `authorizer`.
//!   Admission policies are not evaluated.
//! - As with `envtest`, no controllers run: Deployments do not create Pods, quotas without a status
//!   limit nothing, and deleted namespaces, claims and Pods on nodes remain `Terminating`.
//!   [`ApiServer::collecting_garbage`] ends deletions.
//! - Logs, `exec` and port forwarding are not served.
//!
//! # Time
//!
//! The server only uses tokio's clock. In tests with `#[tokio::test(start_paused = true)]`, hours
//! pass instantly: [`tokio::time::sleep`] in the test first fires all timers that are due earlier,
//! in order, and the clock does not advance while a task is ready to run.

// The server itself is the crate `rbuilder-apiserver`, which doesn't know kube. These modules wrap
// its types for tests that do.

mod fault;
mod request;
mod server;

pub use fault::Fault;
pub use rbuilder_apiserver::{Permission, ResponseBody, StoredObject, Verb, WebhookHandler};
pub use request::Request;
pub use server::{ApiServer, Webhooks};
