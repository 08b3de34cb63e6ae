// SPDX-License-Identifier: Apache-2.0

//! The kinds of memcached-operator and the controllers that serve them.

pub mod api;
pub mod controller;
