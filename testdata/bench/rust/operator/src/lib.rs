// SPDX-License-Identifier: Apache-2.0

//! The operator that `cargo xtask bench-operator` measures. Its twin in Go is testdata/bench/go.

pub mod api;
pub mod controller;
pub mod latencies;
