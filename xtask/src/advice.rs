//! `cargo xtask advice`: what the generator advises compiles with the releases of kube that programs have.
//!
//! `generator/tests/advice/` has types after each piece of advice was followed; `generator/tests/advice.rs` shows that the
//! advice is given to programs with these releases, and that what it leads to is read. `runtime/tests/advice.rs` compiles the
//! types for today's kube. Each older release takes half a minute of CPU or more the first time, which is k8s-openapi's.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::repo;
use crate::sh::Cmd;

/// A release of kube with the packages that its programs have, and the files of `generator/tests/advice/` that hold for it.
struct Release {
    kube: &'static str,
    /// The release of k8s-openapi that it works with, and a feature of that.
    k8s_openapi: (&'static str, &'static str),
    schemars: &'static str,
    files: &'static [&'static str],
}

/// The releases in which schemars or the attributes of kube's derive changed, and the one before today's.
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

/// Compiles the types that the advice leads to with each release.
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
            // That of the workspace is another than the feature says.
            .without(repo::KUBERNETES)
            // Of its own, so that no build of projects waits for it; one for all, which have macros and serde in common.
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
        let text = fs_err::read_to_string(repo::root().join("generator/tests/advice").join(file))?;
        fs_err::write(folder.join("src").join(file), text)?;
        root += &format!("pub mod {};\n", file.trim_end_matches(".rs"));
    }
    fs_err::write(folder.join("src/lib.rs"), root)?;
    Ok(())
}
