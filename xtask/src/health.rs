//! `cargo xtask health`: the verdicts of GitOps tools on the health of objects, recorded.
//!
//! testing/tests/health.jsonl holds objects of a kind; this task runs kstatus and the Argo CD script of an
//! example, both built from tools/health, and records the verdicts. The test kit (`testing/src/kstatus.rs`) is held to
//! those of kstatus. A new case is a line with any verdicts.

use anyhow::Result;

use crate::committed::update_file;
use crate::repo;
use crate::sh::Cmd;

const RECORDED: &str = "testing/tests/health.jsonl";
/// The scripts of all kinds are the same.
const SCRIPT: &str = "examples/memcached-operator/config/argocd/memcached_health.yaml";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail when the tools say something else than is recorded
    #[arg(long)]
    check: bool,
}

/// Asks about every object; writes the verdicts or compares them.
pub(crate) fn record_verdicts(args: &Args) -> Result<()> {
    let root = repo::root();
    let new = Cmd::new("go run .")
        .arg(root.join(RECORDED))
        .arg(root.join(SCRIPT))
        .dir(&root.join("tools/health"))
        .read()?;
    update_file(RECORDED, new.as_bytes(), args.check, "health")
}
