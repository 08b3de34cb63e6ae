//! The API that controllers use, tested on `rbuilder::fake` and on kube-apiserver. The fake server
//! must behave like the real one.

#[path = "../servers/mod.rs"]
mod servers;
mod support;

mod applies;
mod conversions;
mod deletions;
mod discovery;
mod fake_only;
mod judged;
mod kinds;
mod lists;
mod patches;
mod paused;
mod roles;
mod schemas;
mod subresources;
mod watches;
mod webhooks;
mod writes;
