// SPDX-License-Identifier: Apache-2.0

//! API types and controllers of deploy-image-operator.

pub mod api;
pub mod controller;
pub mod webhook;
