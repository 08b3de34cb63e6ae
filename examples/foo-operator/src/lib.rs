// SPDX-License-Identifier: Apache-2.0

//! The kinds of foo-operator and the controllers that serve them.

pub mod api;
pub mod controller;
