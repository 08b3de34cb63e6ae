// SPDX-License-Identifier: Apache-2.0

//! Library of memcached-operator: API types, controllers and webhooks.

pub mod api;
pub mod controller;
