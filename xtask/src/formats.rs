//! `cargo xtask formats`: records the API server's verdicts on strings with a format.
//!
//! crates/schema/tests/formats.jsonl contains strings for all formats. This task validates each
//! string with the API server's own code, built from tools/formats, and records the verdicts.
//! `crates/schema/tests/formats.rs` compares the schema crate with the record and does not need Go.
//! To add a case, add a line with an arbitrary verdict.

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

/// Validates all strings, and writes or compares the verdicts.
pub(crate) fn record_verdicts(args: &Args) -> Result<()> {
    let path = repo::root().join(RECORDED);
    let new = Cmd::new("go run .")
        .arg(&path)
        .dir(&repo::root().join("tools/formats"))
        .read()?;
    update_file(RECORDED, new.as_bytes(), args.check, "formats")
}
