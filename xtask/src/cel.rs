//! `cargo xtask cel`: kube-apiserver's verdicts on CEL rules and its cost estimates, recorded.
//!
//! cel/tests/recorded.jsonl holds rules for the schemas of cel/tests/schemas.json; this task asks the API server's own
//! code, built from tools/cel, about each and commits the verdicts. The tests of `rbuilder-cel` compare its verdicts,
//! and need no Go for that. A new case is a line with a schema, a path and a rule.

use anyhow::Result;

use crate::committed::update_file;
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
    let new = Cmd::new("go run .")
        .arg(repo::root().join(SCHEMAS))
        .arg(&path)
        .dir(&repo::root().join("tools/cel"))
        .read()?;
    update_file(RECORDED, new.as_bytes(), args.check, "cel")
}
