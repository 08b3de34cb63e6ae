//! The API of version v1alpha1.
mod memcached;
pub use memcached::*;
