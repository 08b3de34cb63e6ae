//! Tests of the API that controllers use. They run with both `rbuilder::fake` and kube-apiserver,
//! to ensure that both behave in the same way.

#[path = "../servers/mod.rs"]
mod servers;
mod support;

mod applies;
mod builtin_defaults;
mod builtin_rules;
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
mod sequences;
mod services;
mod subresources;
mod watches;
mod webhooks;
mod writes;
