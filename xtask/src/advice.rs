//! `cargo xtask advice`: checks the advice printed by the generator. Code that follows the advice
//! must compile with the releases of kube for which it is printed.
//!
//! The types in `crates/generator/tests/advice/` are the result of following each piece of advice.
//! There are tests for the current release already: `crates/generator/tests/advice.rs` checks that
//! the advice is printed for programs with these releases and that the generator is happy with the
//! result, and `crates/runtime/tests/advice.rs` compiles the types. The first time an older release
//! is checked, this takes at least half a minute of CPU time, mostly for k8s-openapi.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::repo;
use crate::sh::Cmd;

/// A row of advice.yaml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    kube: String,
    k8s_openapi: (String, String),
    schemars: String,
    files: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The release of kube, as in 0.98; all of them if none is named
    #[arg(long)]
    kube: Option<String>,
}

pub(crate) fn compile_advice(args: &Args) -> Result<()> {
    let mut releases: Vec<Release> = serde_saphyr::from_str(include_str!("advice.yaml"))?;
    let known: Vec<String> = releases.iter().map(|release| release.kube.clone()).collect();
    releases.retain(|release| args.kube.as_ref().is_none_or(|kube| *kube == release.kube));
    ensure!(
        !releases.is_empty(),
        "expected a release among {}",
        known.join(", ")
    );
    for release in &releases {
        let folder = tempfile::Builder::new().prefix("rbuilder-advice-").tempdir()?;
        write_package(release, folder.path())?;
        Cmd::new("cargo check --quiet")
            .dir(folder.path())
            // This must not be set, since it would contradict the feature.
            .without(repo::KUBERNETES)
            // We use our own target folder here. Otherwise other builds would have to wait for this
            // one. There is just one folder for all releases, because they have macros and serde in
            // common.
            .env("CARGO_TARGET_DIR", repo::target_folder().join("advice"))
            .run()?;
        println!("the advice compiles with kube {}", release.kube);
    }
    Ok(())
}

fn write_package(release: &Release, folder: &Path) -> Result<()> {
    let (k8s_openapi, feature) = &release.k8s_openapi;
    let manifest = include_str!("advice.toml.in")
        .replace("<kube>", &release.kube)
        .replace("<k8s-openapi>", k8s_openapi)
        .replace("<feature>", feature)
        .replace("<schemars>", &release.schemars);
    fs_err::write(folder.join("Cargo.toml"), manifest)?;
    fs_err::create_dir(folder.join("src"))?;
    let mut root = String::new();
    for file in &release.files {
        let text = fs_err::read_to_string(repo::root().join("crates/generator/tests/advice").join(file))?;
        fs_err::write(folder.join("src").join(file), text)?;
        root += &format!("pub mod {};\n", file.trim_end_matches(".rs"));
    }
    fs_err::write(folder.join("src/lib.rs"), root)?;
    Ok(())
}
