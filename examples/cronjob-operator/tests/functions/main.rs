// SPDX-License-Identifier: Apache-2.0

//! Tests of functions that need no cluster.

mod conversion;
mod history;
mod schedule;
mod webhook;
