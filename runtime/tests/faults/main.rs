//! An operator while what is between it and the API server fails, or the API server itself: in the end everything is as
//! wanted, nothing was worked on twice at a time, and the process ended only where it should. Ignored, by name, where
//! `KUBEBUILDER_ASSETS` does not say where the servers are.

#![allow(clippy::disallowed_macros)] // seeds and figures, for whoever looks at a failure

mod chaos;
mod leadership;
mod lot;
mod network;
mod operator;
mod proxy;
mod scene;
mod servers;
