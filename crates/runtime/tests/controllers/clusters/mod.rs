//! Tests with additional clusters.

mod credentials;
mod fleet;
mod mirroring;
mod support;
