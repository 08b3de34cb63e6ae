// SPDX-License-Identifier: Apache-2.0

//! Library of cronjob-operator: API types, controllers and webhooks.

pub mod api;
pub mod clock;
pub mod controller;
pub mod schedule;
pub mod webhook;
