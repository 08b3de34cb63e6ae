//! Simulates fleets that are too large for a single machine. Uses the actual rings, shards and
//! queues together with models of the API server and of reconciles, and a paused clock.
//!
//! A replica consists of a task that runs the rounds of its ring, another one that lists new
//! ranges, and workers that take keys from its queue. Objects are plain numbers (their range plus a
//! multiple of the number of ranges), so even ten million of them don't need any memory. The
//! [`costs`] are measured by `cargo xtask bench-operator --replicas`. To print the tables for
//! docs/scaling.md, run `cargo xtask simulate-scale`.
//!
//! | modeled | how |
//! |---|---|
//! | Leases and claims | as stored by the API server, see [`Store`](super::ring::model::Store); requests take no time |
//! | a list of ranges | pages of 500 objects, sequentially |
//! | a watch | an event reaches the replica that watches its range at once; with a client-side filter, it costs CPU in all replicas |
//! | a reconcile | waits for its requests, and takes CPU, of which a replica has one core |
//! | a replica that is killed | disappears; its objects wait until others own its ranges |

mod costs;
mod fleet;
mod member;
mod scenarios;
mod tables;
