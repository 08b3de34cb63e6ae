//! `cargo xtask objects`: records kube-apiserver's responses to writes of custom resources.
//!
//! `crates/judge/tests/tables` contains schemas with objects and updates, and
//! `crates/runtime/tests/objects` generates more at random. This task runs
//! `crates/runtime/tests/objects`, which sends each object to a real API server as a dry run, and
//! records the responses in `crates/judge/tests/recorded.jsonl`. The tests of `rbuilder-judge`
//! compare their verdicts with the record and do not need a server.

use anyhow::{Context, Result};

use crate::sh::Cmd;
use crate::{assets, repo};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail, with the differences, when the API server answers something else today
    #[arg(long)]
    check: bool,
}

/// Sends all writes to the server, and writes or compares the responses.
pub(crate) fn record_answers(args: &Args) -> Result<()> {
    let mut command = Cmd::new("cargo test --workspace --test objects --")
        .args(["--exact", "the_server_answers_as_recorded"])
        .env("KUBEBUILDER_ASSETS", assets::ensure_assets()?)
        .dir(repo::root());
    if !args.check {
        command = command.env("SNAPSHOTS", "overwrite");
    }
    command
        .echo()
        .run()
        .context("the record of objects is not what the API server answers")?;
    if !args.check {
        println!("crates/judge/tests/recorded.jsonl was brought up to date");
    }
    Ok(())
}
