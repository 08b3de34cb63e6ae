//! Tests for controllers and their manager. Each test covers a single guarantee, and runs on both
//! the fake API server and a real one. The latter is ignored unless `KUBEBUILDER_ASSETS` is set.

mod apply_sets;
mod cache_health;
mod caches;
mod clusters;
mod dynamic;
mod extremes;
mod mapping;
mod namesakes;
mod own_writes;
mod owning;
mod reconciling;
mod requests;
mod support;
mod tasks;
mod terminating;
mod triggers;
mod undecodable;
mod unselected;
mod writing;
