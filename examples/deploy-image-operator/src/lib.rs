// SPDX-License-Identifier: Apache-2.0

//! The kinds of deploy-image-operator, the controllers that serve them, and the webhooks.

pub mod api;
pub mod controller;
pub mod webhook;
