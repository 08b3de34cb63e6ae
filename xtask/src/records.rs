//! Records the verdicts of other programs. Tests compare them with our own, so they don't need these
//! programs. To add a case, just add it with any verdict: it will be replaced when the task runs.
//!
//! - `cargo xtask formats`: which strings are valid for each format, according to the API server's
//!   own code (see tools/formats).
//! - `cargo xtask yaml`: what kubectl's YAML reader makes of scalars (see tools/yaml).
//! - `cargo xtask health`: what kstatus and the Argo CD script of one of the examples think about
//!   the health of objects (see tools/health).
//! - `cargo xtask mutations`: what kube-apiserver says about the small projects in
//!   `crates/generator/tests/mutations`, most of which have exactly one mistake.
//! - `cargo xtask objects`: what kube-apiserver says when custom resources are written (as a dry
//!   run), both from tables in `crates/judge/tests/tables` and at random.
//!
//! The last two are sent by tests in crates/runtime. See `crate::builtin` for objects of built-in kinds.

use anyhow::{Context as _, Result};

use crate::committed::{Check, update_file};
use crate::sh::Cmd;
use crate::{assets, repo};

const FORMATS: &str = "crates/schema/tests/formats.jsonl";
const SCALARS: &str = "crates/yaml/tests/scalars.jsonl";
const HEALTH: &str = "crates/testing/tests/health.jsonl";
/// We can use any of the scripts, since they're the same for all kinds.
const SCRIPT: &str = "examples/memcached-operator/config/argocd/memcached_health.yaml";

pub(crate) fn record_formats(args: &Check) -> Result<()> {
    record(FORMATS, &[FORMATS], "formats", args)
}

pub(crate) fn record_scalars(args: &Check) -> Result<()> {
    record(SCALARS, &[SCALARS], "yaml", args)
}

pub(crate) fn record_health(args: &Check) -> Result<()> {
    record(HEALTH, &[HEALTH, SCRIPT], "health", args)
}

/// Runs a program in tools/ with the paths of files, and records what it prints.
pub(crate) fn record(recorded: &str, files: &[&str], task: &str, args: &Check) -> Result<()> {
    let root = repo::root();
    let program = Cmd::new("go run .").args(files.iter().map(|file| root.join(file)));
    let new = program.dir(&root.join("tools").join(task)).read()?;
    update_file(recorded, new.as_bytes(), args.check, task)
}

pub(crate) fn record_mutations(args: &Check) -> Result<()> {
    let test = "cargo test --package rbuilder-runtime --test mutations -- --exact recorded_verdicts_match_the_server";
    run_test(test, args).context("the record of the mutation corpus is not what the API server says")
}

pub(crate) fn record_objects(args: &Check) -> Result<()> {
    let test = "cargo test --workspace --test objects -- --exact the_server_answers_as_recorded";
    run_test(test, args).context("the record of objects is not what the API server answers")
}

/// Runs a test which compares the responses of the API server with a record, or updates the record.
fn run_test(line: &str, args: &Check) -> Result<()> {
    let test = Cmd::new(line).dir(repo::root()).echo();
    let test = test.env("KUBEBUILDER_ASSETS", assets::ensure_assets()?);
    match args.check {
        true => test.run(),
        false => test.env("SNAPSHOTS", "overwrite").run(),
    }
}
