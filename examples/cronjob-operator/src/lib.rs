// SPDX-License-Identifier: Apache-2.0

//! The kinds of cronjob-operator, the controllers that serve them, and the webhooks that judge them.

pub mod api;
pub mod clock;
pub mod controller;
pub mod schedule;
pub mod webhook;
