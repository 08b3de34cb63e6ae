//! `cargo xtask formats`: the API server's verdicts on strings for formats, recorded.
//!
//! schema/tests/formats.jsonl holds strings for every format; this task asks the API server's own code, built from
//! tools/formats, about each and commits the verdicts. `schema/tests/formats.rs` holds the schema crate to them, and
//! needs no Go for that. A new case is a line with any verdict.

use anyhow::{Result, bail};

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
    let old = fs_err::read_to_string(&path)?;
    let new = Cmd::new("go run .")
        .arg(&path)
        .dir(&repo::root().join("tools/formats"))
        .read()?;
    if old == new {
        println!("{RECORDED} is up to date");
        return Ok(());
    }
    if args.check {
        let differences = new.lines().zip(old.lines()).filter(|(new, old)| new != old);
        differences.for_each(|(new, _)| println!("{new}"));
        bail!("{RECORDED} is stale; run `cargo xtask formats` and read the diff");
    }
    fs_err::write(&path, new)?;
    println!("{RECORDED} was brought up to date");
    Ok(())
}
