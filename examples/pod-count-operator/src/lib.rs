// SPDX-License-Identifier: Apache-2.0

//! The kinds of pod-count-operator and the controllers that serve them.

pub mod api;
pub mod controller;
