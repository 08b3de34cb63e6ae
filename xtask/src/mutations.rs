//! `cargo xtask mutations`: records what kube-apiserver says about the mutation corpus.
//!
//! The corpus is in `crates/generator/tests/mutations`. It consists of small projects, most of
//! which have exactly one mistake. There are also some that just look wrong. This task only has to
//! run `crates/runtime/tests/mutations`, which applies the manifests of each project to a real API
//! server and records the responses. There's a test that compares them with rbuilder and doesn't
//! need a server, see `crates/generator/tests/mutations.rs`.

use anyhow::{Context, Result};

use crate::sh::Cmd;
use crate::{assets, repo};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail and print the differences if the responses differ from the recorded ones
    #[arg(long)]
    check: bool,
}

/// Sends all cases to the server. The responses are either written or compared with the existing
/// ones.
pub(crate) fn record_answers(args: &Args) -> Result<()> {
    let mut command = Cmd::new("cargo test --package rbuilder-runtime --test mutations --")
        .args(["--exact", "recorded_verdicts_match_the_server"])
        .env("KUBEBUILDER_ASSETS", assets::ensure_assets()?)
        .dir(repo::root());
    if !args.check {
        command = command.env("SNAPSHOTS", "overwrite");
    }
    command
        .echo()
        .run()
        .context("the record of the mutation corpus is not what the API server says")?;
    if !args.check {
        println!("crates/generator/tests/mutations/recorded.jsonl was brought up to date");
    }
    Ok(())
}
