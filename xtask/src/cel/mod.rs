//! `cargo xtask cel`: records what kube-apiserver says about CEL rules. This includes verdicts,
//! cost estimates, and the results of evaluating them.
//!
//! The rules are in crates/cel/tests/recorded.jsonl, and their schemas in
//! crates/cel/tests/schemas.json. We build the API server's own code (see tools/cel) to check each
//! rule, and record the verdicts. The tests of `rbuilder-cel` compare their own verdicts with the
//! record, so they can run without Go. If you want to add a case, all you need is a line with a
//! schema, a path and a rule. See [`evaluation`] for the evaluation of rules, and [`published`] for
//! rules of published CRDs.

mod batch;
mod evaluation;
mod published;
mod server;

use anyhow::Result;

pub(crate) use self::server::{Client, causes};

use crate::assets;
use crate::committed::{Check, update_file};
use crate::control_plane::ControlPlane;
use crate::records::record;

const SCHEMAS: &str = "crates/cel/tests/schemas.json";
const RECORDED: &str = "crates/cel/tests/recorded.jsonl";

/// Checks and evaluates all rules. The verdicts are either written, or compared with the existing
/// ones.
pub(crate) fn record_verdicts(args: &Check) -> Result<()> {
    record(RECORDED, &[SCHEMAS, RECORDED], "cel", args)?;
    let servers = ControlPlane::start_servers(&assets::ensure_assets()?)?;
    let client = Client::new(servers.kubeconfig())?;
    let evaluated = evaluation::record_evaluation(&client)?;
    update_file(evaluation::RECORDED, evaluated.as_bytes(), args.check, "cel")?;
    let published = published::record_published(&client)?;
    update_file(published::RECORDED, published.as_bytes(), args.check, "cel")
}
