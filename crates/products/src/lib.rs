//! Generates artifacts from an operator's manifests, and from the reports of its simulations.
//!
//! | module | result |
//! |---|---|
//! | [`chart`] | a Helm chart from `config/` |
//! | [`bundle`] | a bundle and a catalog for the Operator Lifecycle Manager |
//! | [`grafana`] | dashboards and alerts for the library's metrics |
//! | [`api_docs`] | a reference page of an API, from CRDs |
//! | [`kustomize`] | faults of `config/default`, built in memory |
//! | [`replicas`] | how the deployed manager's replicas work, for `rbuilder doctor` |
//! | [`simulation`] | a page about simulations, from their report files |
//!
//! Each is a function of manifests or reports and the settings in PROJECT. `bundle` and `chart`
//! share the code that resolves `config/`; the others are independent. This crate knows nothing
//! about flags, or about the commands that merge the results with the user's edits.

pub mod api_docs;
pub mod bundle;
pub mod chart;
pub mod grafana;
mod html;
pub mod kustomize;
pub mod replicas;
pub mod simulation;
