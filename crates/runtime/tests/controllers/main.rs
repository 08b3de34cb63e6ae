//! Tests of controllers and their manager. There is one test per guarantee, which is run on the
//! fake API server and on a real one. The latter are ignored unless `KUBEBUILDER_ASSETS` is set.

mod apply_sets;
mod cache_health;
mod caches;
mod clusters;
mod dynamic;
mod extremes;
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
