//! Runs a Kubernetes control plane: etcd and kube-apiserver as child processes and, optionally, the
//! controllers, a scheduler and simulated nodes.
//!
//! [`Assets`] finds the binaries. [`ControlPlane::start`] runs them on free ports of 127.0.0.1 with
//! newly generated certificates. All functions block, so async callers should use a blocking
//! thread. This crate doesn't depend on kube or k8s-openapi, so that commands which just start the
//! servers don't have to compile these.
//!
//! Without the default feature `servers`, this crate only contains the [`Store`] of binaries and
//! the [`Workspace`], and doesn't compile TLS. The feature `downloads` adds downloading the
//! binaries, as `rbuilder envtest` does.
//!
//! # Cleanup after a crash
//!
//! On Unix, the servers are killed when this process ends, even if it crashes: a watchdog process
//! waits on a pipe that only this process holds open. If the watchdog was killed as well, the next
//! start cleans up. On other systems, the servers run until the [`ControlPlane`] is dropped.

#[cfg(feature = "downloads")]
pub mod downloads;
mod error;
mod private;
mod release;
#[cfg(feature = "servers")]
mod servers;
mod store;
mod watchdog;
mod workspace;

pub use error::Error;
pub use private::{private_folder, write_private};
pub use release::{Platform, Release, Version, is_word, parse_number};
#[cfg(feature = "servers")]
pub use servers::{
    Assets, Cancel, ControlPlane, ReservedPort, Server, ServingCertificate, Settings, WebhookAddress,
    issue_serving_certificate,
};
pub use store::{Installed, PROGRAMS, Store, has_program, has_programs};
pub use workspace::Workspace;
