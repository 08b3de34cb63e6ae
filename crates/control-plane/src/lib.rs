//! Runs a Kubernetes control plane: etcd and kube-apiserver as child processes. On request, it also
//! runs the controllers, a scheduler and simulated nodes.
//!
//! [`Assets`] finds the binaries. [`ControlPlane::start`] runs them on free ports of 127.0.0.1 with
//! newly generated certificates. All functions block, so async callers should use a blocking
//! thread. The crate does not depend on kube or k8s-openapi, so commands that only start the
//! servers do not compile them.
//!
//! Without the default feature `servers`, the crate only contains the [`Store`] of the binaries and
//! the [`Workspace`], and does not compile TLS. With the feature `downloads`, it also downloads the
//! binaries as `rbuilder envtest` does.
//!
//! # Cleanup after a crash
//! On Unix, the servers are killed when this process ends, even by a crash: a watchdog process
//! waits on a pipe that only this process holds open. If the watchdog was killed too, the next
//! start cleans up. On other systems, the servers run until the [`ControlPlane`] is dropped.

#[cfg(feature = "downloads")]
pub mod downloads;
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
