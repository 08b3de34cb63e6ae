//! Fleets that are too large for one machine: the ring, the shards and the queues as they are, with
//! models of the API server and of reconciles, on a paused clock.
//!
//! Each replica has a task that runs rounds of its ring, a task that lists new ranges, and workers
//! that take keys from its queue. An object is a number, so that ten million of them need no memory:
//! its number is its range plus a multiple of the number of ranges. [`costs`] are measured by
//! `cargo xtask bench-operator --replicas`, and `cargo xtask simulate-scale` prints the tables of
//! docs/scaling.md.
//!
//! | modeled | how |
//! |---|---|
//! | Leases and claims | as stored by the API server, see [`Store`](super::ring::model::Store); requests take no time |
//! | a list of ranges | pages of 500 objects, one after the other |
//! | a watch | an event reaches the replica that watches its range at once; with a client-side filter, it costs CPU in all replicas |
//! | a reconcile | waits for its requests, and takes CPU, of which a replica has one core |
//! | a replica that is killed | disappears; its objects wait until others own its ranges |

mod costs;
mod fleet;
mod member;
mod scenarios;
mod tables;
