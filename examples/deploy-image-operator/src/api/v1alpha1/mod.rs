// SPDX-License-Identifier: Apache-2.0

//! Version v1alpha1 of cache.example.com.

mod memcached;

pub use memcached::*;
