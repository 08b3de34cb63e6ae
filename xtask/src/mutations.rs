//! `cargo xtask mutations`: records kube-apiserver's responses to the mutation corpus.
//!
//! `crates/generator/tests/mutations` contains small projects with one mistake each, and others that only
//! look wrong. This task runs `crates/runtime/tests/mutations`, which applies the manifests of each
//! project to a real API server, and records the responses. `crates/generator/tests/mutations.rs` compares
//! rbuilder with them and does not need a server.

use anyhow::{Context, Result};

use crate::sh::Cmd;
use crate::{assets, repo};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail and print the differences if the responses differ from the recorded ones
    #[arg(long)]
    check: bool,
}

/// Sends all cases to the server, and writes or compares the responses.
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
