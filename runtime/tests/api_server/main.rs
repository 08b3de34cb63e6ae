//! The API used by controllers, tested on two servers: `rbuilder::fake` and kube-apiserver. The behaviour of the
//! real one is the expectation for the fake one.

#[path = "../servers/mod.rs"]
mod servers;
mod support;

mod applies;
mod deletions;
mod discovery;
mod fake_only;
mod kinds;
mod lists;
mod patches;
mod paused;
mod schemas;
mod subresources;
mod watches;
mod writes;
