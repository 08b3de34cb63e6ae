//! `cargo xtask cel`: records kube-apiserver's verdicts on CEL rules, its cost estimates, and the
//! results of evaluating rules.
//!
//! crates/cel/tests/recorded.jsonl contains rules for the schemas in crates/cel/tests/schemas.json.
//! This task checks each rule with the API server's own code, built from tools/cel, and records the
//! verdicts. The tests of `rbuilder-cel` compare their verdicts with the record and do not need Go.
//! To add a case, add a line with a schema, a path and a rule. For evaluation see [`evaluation`].

mod evaluation;
mod server;

use anyhow::Result;

use crate::committed::update_file;
use crate::repo;
use crate::sh::Cmd;

const SCHEMAS: &str = "crates/cel/tests/schemas.json";
const RECORDED: &str = "crates/cel/tests/recorded.jsonl";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if the verdicts differ from the recorded ones
    #[arg(long)]
    check: bool,
}

/// Evaluates all rules, and writes or compares the verdicts.
pub(crate) fn record_verdicts(args: &Args) -> Result<()> {
    let path = repo::root().join(RECORDED);
    let new = Cmd::new("go run .")
        .arg(repo::root().join(SCHEMAS))
        .arg(&path)
        .dir(&repo::root().join("tools/cel"))
        .read()?;
    update_file(RECORDED, new.as_bytes(), args.check, "cel")?;
    let evaluated = evaluation::record_evaluation()?;
    update_file(evaluation::RECORDED, evaluated.as_bytes(), args.check, "cel")
}
