//! An operator while the network or the API server fails: at the end every object is in the desired
//! state, none was reconciled twice at a time, and the process exited only when it should. Listed as ignored unless
//! `KUBEBUILDER_ASSETS` is set.

#![allow(clippy::disallowed_macros)] // seeds and figures, for whoever looks at a failure

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
