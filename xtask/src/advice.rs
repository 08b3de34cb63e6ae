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

use crate::repo;
use crate::sh::Cmd;

/// A release of kube, the dependencies that go with it, and the files in
/// `crates/generator/tests/advice/` that we should compile with it.
struct Release {
    kube: &'static str,
    /// The matching release of k8s-openapi, and one of its features.
    k8s_openapi: (&'static str, &'static str),
    schemars: &'static str,
    files: &'static [&'static str],
}

/// All releases that changed schemars or the attributes of kube's derive macro, plus the one before
/// the current release.
const RELEASES: &[Release] = &[
    Release {
        kube: "0.91",
        k8s_openapi: ("0.22", "v1_30"),
        schemars: "0.8",
        files: &["after_schemars_08.rs", "merged.rs"],
    },
    Release {
        kube: "0.98",
        k8s_openapi: ("0.24", "v1_30"),
        schemars: "0.8",
        files: &["after_schemars_08.rs", "stored.rs", "approved.rs"],
    },
    Release {
        kube: "1.1",
        k8s_openapi: ("0.25", "v1_30"),
        schemars: "0.8",
        files: &["after_schemars_08.rs", "stored.rs", "rule.rs", "approved.rs"],
    },
    Release {
        kube: "2.0",
        k8s_openapi: ("0.26", "v1_30"),
        schemars: "1",
        files: &["after.rs", "go_markers.rs", "stored.rs", "rule.rs", "approved.rs"],
    },
    Release {
        kube: "4.0",
        k8s_openapi: ("0.28", "v1_32"),
        schemars: "1",
        files: &["after.rs", "go_markers.rs", "stored.rs", "rule.rs", "approved.rs"],
    },
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The release of kube, as in 0.98; all of them if none is named
    #[arg(long)]
    kube: Option<String>,
}

pub(crate) fn compile_advice(args: &Args) -> Result<()> {
    let known: Vec<&str> = RELEASES.iter().map(|release| release.kube).collect();
    let asked = |release: &&Release| args.kube.as_deref().is_none_or(|kube| kube == release.kube);
    ensure!(
        RELEASES.iter().any(|release| asked(&release)),
        "expected a release among {}",
        known.join(", ")
    );
    for release in RELEASES.iter().filter(asked) {
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
    let (k8s_openapi, feature) = release.k8s_openapi;
    fs_err::write(
        folder.join("Cargo.toml"),
        format!(
            "[package]\n\
             name = \"advice\"\n\
             edition = \"2021\"\n\
             \n\
             [dependencies]\n\
             kube = {{ version = \"~{}\", default-features = false, features = [\"derive\"] }}\n\
             k8s-openapi = {{ version = \"{k8s_openapi}\", features = [\"{feature}\", \"schemars\"] }}\n\
             schemars = \"{}\"\n\
             serde = {{ version = \"1\", features = [\"derive\"] }}\n\
             serde_json = \"1\"\n\
             \n\
             [workspace]\n",
            release.kube, release.schemars
        ),
    )?;
    fs_err::create_dir(folder.join("src"))?;
    let mut root = String::new();
    for file in release.files {
        let text = fs_err::read_to_string(repo::root().join("crates/generator/tests/advice").join(file))?;
        fs_err::write(folder.join("src").join(file), text)?;
        root += &format!("pub mod {};\n", file.trim_end_matches(".rs"));
    }
    fs_err::write(folder.join("src/lib.rs"), root)?;
    Ok(())
}
