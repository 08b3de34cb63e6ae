//! `cargo xtask oracle`: records the manifests that controller-gen generates. The oracle has the
//! same APIs in two languages, and we need the half in Go for this.
//!
//! The Go packages are in testdata/oracle/go, and the Rust packages in testdata/oracle/rust. Each
//! run of controller-gen has a folder in testdata/oracle/recorded with its output.
//! `crates/generator/tests/oracle.rs` compares this with the output of rbuilder, and does not need
//! Go.

use anyhow::{Result, ensure};

use crate::committed::{Check, Files, read_tree, update_tree};
use crate::sh::Cmd;
use crate::{repo, tools};

/// Runs of controller-gen: the name of the folder in recorded/, the generator with its options, and
/// the paths of the Go packages. Keep in sync with `crates/generator/tests/oracle.rs`, which has the
/// same runs with the options of rbuilder.
#[rustfmt::skip]
const RUNS: &[(&str, &str, &str)] = &[
    ("crd", "crd:allowDangerousTypes=true,ignoreUnexportedFields=true", "./api/..."),
    ("crd_short", "crd:maxDescLen=50", "./api/docs/..."),
    ("crd_metadata", "crd:generateEmbeddedObjectMeta=true", "./api/kubernetes/..."),
    ("rbac", "rbac:roleName=manager-role", "./rbac/..."),
    ("webhook", "webhook", "./webhook/..."),
    ("webhook_named", "webhook", "./named/..."),
];

const RECORDED: &str = "testdata/oracle/recorded";

/// Runs controller-gen on all of the APIs. The output is either written or compared with the
/// existing one.
pub(crate) fn record_manifests(args: &Check) -> Result<()> {
    let binary = tools::ensure_tool("controller-gen")?;
    let mut new = Files::new();
    for (name, generator, paths) in RUNS {
        let folder = tempfile::Builder::new().prefix("rbuilder-oracle-").tempdir()?;
        let kind = generator.split(':').next().unwrap_or_default();
        Cmd::program(&binary)
            .arg(generator)
            .arg(format!("paths={paths}"))
            .arg(format!("output:{kind}:dir={}", folder.path().display()))
            .dir(&repo::root().join("testdata/oracle/go"))
            .run()?;
        let files = read_tree(folder.path())?;
        ensure!(!files.is_empty(), "controller-gen made nothing of the run {name}");
        new.extend(
            files
                .into_iter()
                .map(|(path, text)| (format!("{name}/{path}"), text)),
        );
    }
    let is_current = update_tree(RECORDED, &new, args.check)?;
    ensure!(
        is_current,
        "{RECORDED} is stale; run `cargo xtask oracle` and read the diff"
    );
    Ok(())
}
