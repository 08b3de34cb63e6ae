//! A Kubernetes control plane: etcd and kube-apiserver as child processes of this one; if asked for, with controllers, a
//! scheduler and nodes that are played.
//!
//! [`Assets`] finds the binaries, [`ControlPlane::start`] runs them on free ports of 127.0.0.1 with certificates made
//! for the occasion. The functions block, so an async caller runs them on a thread for that purpose. The crate knows
//! neither kube nor k8s-openapi: a command that only starts the servers need not compile them.
//!
//! Without the feature `servers`, which is on by default, there are only the [`Store`] of the binaries and the
//! [`Workspace`], and no TLS is compiled.
//!
//! # Cleanup after a crash
//! On Unix, the servers end with this process, however it ends: a watchdog process waits on a pipe that only this
//! process holds open. What a killed watchdog leaves behind is removed by the next start. Elsewhere they end when the
//! [`ControlPlane`] is dropped.

mod error;
mod release;
#[cfg(feature = "servers")]
mod servers;
mod store;
mod watchdog;
mod workspace;

pub use error::Error;
pub use release::{Platform, Release, Version, is_word, parse_number};
#[cfg(feature = "servers")]
pub use servers::{
    Assets, Cancel, ControlPlane, ReservedPort, Server, ServingCertificate, Settings, WebhookAddress,
    issue_serving_certificate,
};
pub use store::{Installed, PROGRAMS, Store, has_program, has_programs};
pub use workspace::Workspace;
