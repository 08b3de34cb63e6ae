//! `cargo xtask oracle`: records the manifests that controller-gen generates. The oracle has the
//! same APIs in two languages, and we need the half in Go for this.
//!
//! The Go packages are in testdata/oracle/go, and the Rust packages in testdata/oracle/rust. Each
//! run of controller-gen has a folder in testdata/oracle/recorded with its output.
//! `crates/generator/tests/oracle.rs` compares this with the output of rbuilder, and does not need
//! Go.

use anyhow::{Result, bail};

use crate::committed::{Files, read_tree, unified_diffs, write_tree};
use crate::sh::Cmd;
use crate::{repo, tools};

/// Describes how to run controller-gen. Keep in sync with `crates/generator/tests/oracle.rs`, which
/// has the same runs with the options of rbuilder.
struct Run {
    /// Name of the folder in recorded/.
    name: &'static str,
    /// Which generator to run, with its options.
    generator: &'static str,
    /// Paths of the Go packages.
    paths: &'static str,
}

const RUNS: &[Run] = &[
    Run {
        name: "crd",
        generator: "crd:allowDangerousTypes=true,ignoreUnexportedFields=true",
        paths: "./api/...",
    },
    Run {
        name: "crd_short",
        generator: "crd:maxDescLen=50",
        paths: "./api/docs/...",
    },
    Run {
        name: "crd_metadata",
        generator: "crd:generateEmbeddedObjectMeta=true",
        paths: "./api/kubernetes/...",
    },
    Run {
        name: "rbac",
        generator: "rbac:roleName=manager-role",
        paths: "./rbac/...",
    },
    Run {
        name: "webhook",
        generator: "webhook",
        paths: "./webhook/...",
    },
    Run {
        name: "webhook_named",
        generator: "webhook",
        paths: "./named/...",
    },
];

const RECORDED: &str = "testdata/oracle/recorded";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing; fail and print the differences if the output differs from the recorded one
    #[arg(long)]
    check: bool,
}

/// Runs controller-gen on all of the APIs. The output is either written or compared with the
/// existing one.
pub(crate) fn record_manifests(args: &Args) -> Result<()> {
    let binary = tools::ensure_tool(&tools::CONTROLLER_GEN)?;
    let mut new = Files::new();
    for run in RUNS {
        let folder = tempfile::Builder::new().prefix("rbuilder-oracle-").tempdir()?;
        let generator = run.generator.split(':').next().unwrap_or_default();
        Cmd::program(&binary)
            .arg(run.generator)
            .arg(format!("paths={}", run.paths))
            .arg(format!("output:{generator}:dir={}", folder.path().display()))
            .dir(&repo::root().join("testdata/oracle/go"))
            .run()?;
        let files = read_tree(folder.path())?;
        if files.is_empty() {
            bail!("controller-gen made nothing of the run {}", run.name);
        }
        new.extend(
            files
                .into_iter()
                .map(|(path, text)| (format!("{}/{path}", run.name), text)),
        );
    }
    let committed = repo::root().join(RECORDED);
    let old = read_tree(&committed)?;
    let differences = unified_diffs(&old, &new);
    if differences.is_empty() {
        println!("{RECORDED} is up to date");
    } else if args.check {
        print!("{differences}");
        bail!("{RECORDED} is stale; run `cargo xtask oracle` and read the diff");
    } else {
        write_tree(&committed, &old, &new)?;
        println!("{RECORDED} was brought up to date");
    }
    Ok(())
}
