//! `cargo xtask health`: records what GitOps tools think about the health of objects.
//!
//! The objects are in crates/testing/tests/health.jsonl, and are all of the same kind. We run
//! kstatus and the Argo CD script of one of the examples on them (see tools/health) and record the
//! results. This is used to test our own implementation of kstatus in the test kit, see
//! `crates/testing/src/kstatus.rs`. To add a case, just add a line with any result. It will be
//! replaced when the task runs.

use anyhow::Result;

use crate::committed::update_file;
use crate::repo;
use crate::sh::Cmd;

const RECORDED: &str = "crates/testing/tests/health.jsonl";
/// We can use any of the scripts, since they're the same for all kinds.
const SCRIPT: &str = "examples/memcached-operator/config/argocd/memcached_health.yaml";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail if the verdicts differ from the recorded ones
    #[arg(long)]
    check: bool,
}

/// Evaluates all objects. The results are either written or compared with the existing ones.
pub(crate) fn record_verdicts(args: &Args) -> Result<()> {
    let root = repo::root();
    let new = Cmd::new("go run .")
        .arg(root.join(RECORDED))
        .arg(root.join(SCRIPT))
        .dir(&root.join("tools/health"))
        .read()?;
    update_file(RECORDED, new.as_bytes(), args.check, "health")
}
