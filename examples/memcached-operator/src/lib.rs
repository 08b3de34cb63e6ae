// SPDX-License-Identifier: Apache-2.0

//! API types and controllers of memcached-operator.

pub mod api;
pub mod controller;
