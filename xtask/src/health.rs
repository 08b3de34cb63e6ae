//! `cargo xtask health`: records the health of objects as determined by GitOps tools.
//!
//! crates/testing/tests/health.jsonl contains objects of a kind. This task evaluates them with
//! kstatus and with an example's Argo CD script, both built from tools/health, and records the
//! results. The test kit (`crates/testing/src/kstatus.rs`) is tested against the results of
//! kstatus. To add a case, add a line with arbitrary results.

use anyhow::Result;

use crate::committed::update_file;
use crate::repo;
use crate::sh::Cmd;

const RECORDED: &str = "crates/testing/tests/health.jsonl";
/// The scripts for all kinds are equal.
const SCRIPT: &str = "examples/memcached-operator/config/argocd/memcached_health.yaml";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if the verdicts differ from the recorded ones
    #[arg(long)]
    check: bool,
}

/// Evaluates all objects, and writes or compares the verdicts.
pub(crate) fn record_verdicts(args: &Args) -> Result<()> {
    let root = repo::root();
    let new = Cmd::new("go run .")
        .arg(root.join(RECORDED))
        .arg(root.join(SCRIPT))
        .dir(&root.join("tools/health"))
        .read()?;
    update_file(RECORDED, new.as_bytes(), args.check, "health")
}
