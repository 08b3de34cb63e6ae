//! Controllers and their manager against a real API server: each guarantee is one test. Ignored, by name,
//! where `KUBEBUILDER_ASSETS` does not say where the servers are.

mod caches;
mod owning;
mod reconciling;
mod support;
mod tasks;
mod triggers;
mod writing;
