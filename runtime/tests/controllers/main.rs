//! Controllers and their manager: each guarantee is one test, on the fake API server and on the real one. The latter
//! is ignored, by name, where `KUBEBUILDER_ASSETS` does not say where the servers are.

mod caches;
mod owning;
mod reconciling;
mod requests;
mod support;
mod tasks;
mod triggers;
mod writing;
