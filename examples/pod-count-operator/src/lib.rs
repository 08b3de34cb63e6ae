// SPDX-License-Identifier: Apache-2.0

//! API types and controllers of pod-count-operator.

pub mod api;
pub mod controller;
