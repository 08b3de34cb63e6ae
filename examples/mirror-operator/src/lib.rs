// SPDX-License-Identifier: Apache-2.0

//! Library of mirror-operator: API types, controllers and webhooks.

pub mod api;
pub mod controller;
