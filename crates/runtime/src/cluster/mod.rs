//! Other clusters besides the manager's own: their clients, caches and credentials.
//!
//! A manager has one cluster of its own, with its controllers' objects and its lease. A [`Cluster`]
//! is another one, which controllers watch and write to. Nothing waits for it and nothing stops
//! when it is lost, because the operator still has work to do in its own cluster and all others:
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
