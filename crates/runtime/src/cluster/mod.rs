//! Support for additional clusters, with their own clients, caches and credentials.
//!
//! A manager has its own cluster, which contains the lease and the objects that its controllers
//! reconcile. A [`Cluster`] is any other cluster that controllers watch and write to. The manager
//! neither waits for it at startup nor stops when it becomes unreachable, because there's still
//! work to do in its own cluster and in the others:
//!
//! ```text
//! Source ─text─▶ kubeconfig ─Config─▶ Client ─▶ Connection ─▶ Caches, contexts, the operator's code
//!   ▲                                              │ state
//!   └────── read again: each minute, after 401 ────┴─▶ failed keys are retried once the cluster is back
//! ```
//!
//! | module | responsibility |
//! |---|---|
//! | `config` | the operator's configuration of a cluster, and how to read its source |
//! | `kubeconfig` | which keys of a kubeconfig are allowed |
//! | `connection` | one client for changing credentials, and the state of the cluster |
//! | `handle` | `Cluster`, the handle that all users of a cluster share |
//! | `run` | the tasks of a cluster: its watches and its credentials |
//! | `set` | `Clusters`, the set of a manager's clusters, which come and go |

mod config;
mod connection;
mod handle;
mod kubeconfig;
mod run;
mod set;

pub use config::ClusterConfig;
pub use handle::Cluster;
pub use set::Clusters;
pub(crate) use set::{ClusterPart, ClusterServices, ClusterStatus};
