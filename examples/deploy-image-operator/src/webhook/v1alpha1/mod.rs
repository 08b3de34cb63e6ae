// SPDX-License-Identifier: Apache-2.0

//! Webhooks of version v1alpha1 of the cache.example.com API group.

pub mod memcached;
