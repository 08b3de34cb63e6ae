//! The API that controllers stand on, asked of two servers: `rbuilder::fake` and kube-apiserver. What holds for the
//! real one is the expectation; the fake one has to meet it.

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
