//! An operator while the network or the API server fails. In the end, every object must be in the
//! desired state, none may have been reconciled concurrently, and the process may have exited only
//! if it had to. Listed as ignored unless `KUBEBUILDER_ASSETS` is set.

#![allow(clippy::disallowed_macros)] // prints seeds and counts

mod chaos;
mod expiry;
mod leadership;
mod lot;
mod network;
mod operator;
mod proxy;
mod scene;
mod servers;
mod tls;
