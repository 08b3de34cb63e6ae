// SPDX-License-Identifier: Apache-2.0

//! The operator that `cargo xtask bench-operator` measures. testdata/bench/go is the same operator
//! in Go.

pub mod api;
pub mod controller;
pub mod latencies;
