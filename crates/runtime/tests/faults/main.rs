//! Tests an operator during failures of the network or the API server. Afterwards, all objects must
//! be in the desired state, no object may have been reconciled concurrently, and the process may
//! only have exited if there was no other way. The tests are ignored unless `KUBEBUILDER_ASSETS` is
//! set.

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
