//! Writes the API to measure in Rust.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use rbuilder_catalogue::versions;

use super::{Shape, shapes};

/// Writes a package with the given number of kinds, each of which has
/// [`FIELDS`](super::FIELDS) fields. Returns the size of the source in bytes.
pub(super) fn write_kinds(folder: &Path, kinds: usize) -> Result<usize> {
    fs_err::create_dir_all(folder.join("src"))?;
    fs_err::write(
        folder.join("Cargo.toml"),
        "[package]\nname = \"bench\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    )?;
    let mut bytes = 0;
    let mut modules = String::from("//! A project of the size that was asked for.\n");
    for kind in 0..kinds {
        writeln!(modules, "pub mod kind{kind};")?;
        let source = kind_source(kind);
        bytes += source.len();
        fs_err::write(folder.join(format!("src/kind{kind}.rs")), source)?;
    }
    fs_err::write(folder.join("src/lib.rs"), &modules)?;
    Ok(bytes + modules.len())
}

fn kind_source(kind: usize) -> String {
    let field = |(number, (rust_type, marker, ..)): (usize, Shape)| {
        format!(
            "    /// Field {number} says one more thing about the object, in a sentence of usual length.\n    \
             #[crd({marker})]\n    pub field_number_{number}: {rust_type},\n"
        )
    };
    let fields: String = shapes().enumerate().map(field).collect();
    include_str!("kind.rs.in")
        .replacen("FIELDS", &fields, 1)
        .replace('@', &kind.to_string())
}

/// Writes a package with just one kind, which is the CronJob from the kubebuilder book. It contains
/// a Job template and therefore a Pod template.
pub(super) fn write_cron_job(folder: &Path) -> Result<()> {
    fs_err::create_dir_all(folder.join("src"))?;
    fs_err::write(folder.join("Cargo.toml"), cron_job_manifest())?;
    fs_err::write(folder.join("src/lib.rs"), CRON_JOB)?;
    Ok(())
}

/// Returns the Cargo.toml of the CronJob package.
fn cron_job_manifest() -> String {
    let feature = versions::k8s_openapi_feature(versions::KUBERNETES);
    format!(
        r#"[package]
name = "bench"
version = "0.1.0"
edition = "2024"

[dependencies]
k8s-openapi = {{ version = "{}", features = ["{feature}"] }}
"#,
        versions::K8S_OPENAPI
    )
}

const CRON_JOB: &str = include_str!("cronjob.rs.in");
