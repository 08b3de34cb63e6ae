//! `cargo xtask simulate-scale`: simulates fleets that are too large for one machine, and prints
//! the tables for docs/scaling.md.
//!
//! The simulation needs the rings and queues of the library, which are private. For this reason, the
//! tests of the library include it as a module. `crates/runtime/tests/scale/mod.rs` describes it.

use anyhow::Result;

use crate::repo;
use crate::sh::Cmd;

/// Name of the test which prints the tables.
const TABLES: &str = "shards::scale::tables::tables_are_complete";

/// Runs the simulation, which takes a few minutes (not including the build).
pub(crate) fn print_tables() -> Result<()> {
    Cmd::new("cargo test --release --package rbuilder-runtime --lib -- --exact --nocapture")
        .arg(TABLES)
        .dir(repo::root())
        .env("RBUILDER_SCALE_TABLES", "1")
        // Link-time optimization would make the simulation faster, but the build would take even
        // longer.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .run()
}
