//! `cargo xtask formats`: the API server's verdicts on strings for formats, recorded.
//!
//! schema/tests/formats.jsonl holds strings for every format; this task asks the API server's own code, built from
//! tools/formats, about each and commits the verdicts. `schema/tests/formats.rs` holds the schema crate to them, and
//! needs no Go for that. A new case is a line with any verdict.

use anyhow::Result;

use crate::committed::update_file;
use crate::repo;
use crate::sh::Cmd;

const RECORDED: &str = "schema/tests/formats.jsonl";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail when the API server's code says something else than is recorded
    #[arg(long)]
    check: bool,
}

/// Asks about every string; writes the verdicts or compares them.
pub(crate) fn record_verdicts(args: &Args) -> Result<()> {
    let path = repo::root().join(RECORDED);
    let new = Cmd::new("go run .")
        .arg(&path)
        .dir(&repo::root().join("tools/formats"))
        .read()?;
    update_file(RECORDED, new.as_bytes(), args.check, "formats")
}
