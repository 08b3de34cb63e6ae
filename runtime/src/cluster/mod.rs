//! Other clusters beside the manager's own: their clients, caches and credentials.
//!
//! A manager has one cluster of its own: there its controllers' objects are, and its lease. A [`Cluster`] is another one,
//! which controllers watch and write to. Nothing waits for it and nothing stops when it is lost, because the operator still
//! has its work in the own cluster and in all others:
//!
//! ```text
//! Source ─text─▶ kubeconfig ─Config─▶ Client ─▶ Connection ─▶ Caches, contexts, the operator's code
//!   ▲                                              │ state
//!   └────── read again: each minute, after 401 ────┴─▶ failed keys are retried once the cluster is back
//! ```
//!
//! | module | responsibility |
//! |---|---|
//! | `config` | what the operator says about a cluster, and reading it |
//! | `kubeconfig` | which keys of a kubeconfig may be followed |
//! | `connection` | one client for changing credentials, and the state of the cluster |
//! | `handle` | `Cluster`: what all users of a cluster share |
//! | `run` | the tasks of a cluster: its watches, its credentials |
//! | `set` | `Clusters`: all clusters of a manager, which come and go |

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
