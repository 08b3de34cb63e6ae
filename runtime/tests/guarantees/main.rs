//! The runtime's guarantees, and the tests that prove them.

#[allow(dead_code)] // it has what other tests need, too
#[path = "../controllers/support.rs"]
mod support;

mod handlers;
mod late_watches;
mod leading;
mod panics;
mod starting;
