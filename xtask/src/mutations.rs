//! `cargo xtask mutations`: kube-apiserver's answers to the mutation corpus, recorded.
//!
//! `generator/tests/mutations` holds small projects with one mistake each, and others that only look wrong. This task
//! runs `runtime/tests/mutations`, which sends what each would make to a real API server, and commits the answers;
//! `generator/tests/mutations.rs` holds rbuilder to them, and needs no server for that.

use anyhow::{Context, Result};

use crate::sh::Cmd;
use crate::{assets, repo};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail, with the differences, when the API server says something else today
    #[arg(long)]
    check: bool,
}

/// Asks the server about every case; writes its answers or compares them.
pub(crate) fn record_answers(args: &Args) -> Result<()> {
    let mut command = Cmd::new("cargo test --package rbuilder-runtime --test mutations --")
        .args(["--exact", "the_server_says_what_is_recorded"])
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
        println!("generator/tests/mutations/recorded.jsonl was brought up to date");
    }
    Ok(())
}
