//! The library that Kubernetes operators in Rust run on.
