//! `cargo xtask formats`: records which strings are valid for each format, according to the API
//! server.
//!
//! The strings for all formats are in crates/schema/tests/formats.jsonl. We validate them with the
//! API server's own code (see tools/formats) and record the verdicts.
//! `crates/schema/tests/formats.rs` only compares this record with the schema crate, so it can run
//! without Go. To add a case, just add a line with any verdict. It will be replaced when the task
//! runs.

use anyhow::Result;

use crate::committed::update_file;
use crate::repo;
use crate::sh::Cmd;

const RECORDED: &str = "crates/schema/tests/formats.jsonl";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if the verdicts differ from the recorded ones
    #[arg(long)]
    check: bool,
}

/// Validates all strings. The verdicts are either written or compared with the existing ones.
pub(crate) fn record_verdicts(args: &Args) -> Result<()> {
    let path = repo::root().join(RECORDED);
    let new = Cmd::new("go run .")
        .arg(&path)
        .dir(&repo::root().join("tools/formats"))
        .read()?;
    update_file(RECORDED, new.as_bytes(), args.check, "formats")
}
