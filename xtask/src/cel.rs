//! `cargo xtask cel`: kube-apiserver's verdicts on CEL rules and its cost estimates, recorded.
//!
//! cel/tests/recorded.jsonl holds rules for the schemas of cel/tests/schemas.json; this task asks the API server's own
//! code, built from tools/cel, about each and commits the verdicts. The tests of `rbuilder-cel` compare its verdicts,
//! and need no Go for that. A new case is a line with a schema, a path and a rule.

use anyhow::{Result, bail};

use crate::repo;
use crate::sh::Cmd;

const SCHEMAS: &str = "cel/tests/schemas.json";
const RECORDED: &str = "cel/tests/recorded.jsonl";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail when the API server's code says something else than is recorded
    #[arg(long)]
    check: bool,
}

/// Asks about every rule; writes the verdicts or compares them.
pub(crate) fn record_verdicts(args: &Args) -> Result<()> {
    let path = repo::root().join(RECORDED);
    let old = fs_err::read_to_string(&path)?;
    let new = Cmd::new("go run .")
        .arg(repo::root().join(SCHEMAS))
        .arg(&path)
        .dir(&repo::root().join("tools/cel"))
        .read()?;
    if old == new {
        println!("{RECORDED} is up to date");
        return Ok(());
    }
    if args.check {
        let differences = new.lines().zip(old.lines()).filter(|(new, old)| new != old);
        differences.for_each(|(new, _)| println!("{new}"));
        bail!("{RECORDED} is stale; run `cargo xtask cel` and read the diff");
    }
    fs_err::write(&path, new)?;
    println!("{RECORDED} was brought up to date");
    Ok(())
}
