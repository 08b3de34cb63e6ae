//! `cargo xtask simulate-scale`: prints the tables of docs/scaling.md about fleets that are too large for
//! one machine.
//!
//! The simulation is a test module of the library, because it runs the library's rings and queues,
//! which are private. See the header of `crates/runtime/src/shards/scale/mod.rs`.

use anyhow::Result;

use crate::repo;
use crate::sh::Cmd;

/// The test that prints the tables.
const TABLES: &str = "shards::scale::tables::tables_are_complete";

/// Runs the simulation. It takes a few minutes after the build.
pub(crate) fn print_tables() -> Result<()> {
    Cmd::new("cargo test --release --package rbuilder-runtime --lib -- --exact --nocapture")
        .arg(TABLES)
        .dir(repo::root())
        .env("RBUILDER_SCALE_TABLES", "1")
        // Building with link-time optimization takes longer than it saves.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .run()
}
