// SPDX-License-Identifier: Apache-2.0

//! API types and controllers of cronjob-operator.

pub mod api;
pub mod clock;
pub mod controller;
pub mod schedule;
pub mod webhook;
