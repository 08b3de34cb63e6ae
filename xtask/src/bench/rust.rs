//! Writes the API to measure in Rust.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use rbuilder_catalogue::versions;

use super::FIELDS;

/// Writes a package with the given number of kinds, each of which has [`FIELDS`] fields. Returns
/// the size of the source in bytes.
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
        let source = kind_source(kind)?;
        bytes += source.len();
        fs_err::write(folder.join(format!("src/kind{kind}.rs")), source)?;
    }
    fs_err::write(folder.join("src/lib.rs"), &modules)?;
    Ok(bytes + modules.len())
}

/// Fields which are typical for APIs, e.g. scalars with bounds, lists, maps, enums, nested structs
/// and optional fields.
const SHAPES: &[(&str, &str)] = &[
    ("validation(min_length = 1, max_length = 253)", "String"),
    ("validation(minimum = 0, maximum = 100)", "i32"),
    ("optional", "Option<bool>"),
    ("validation(max_items = 16)", "Vec<String>"),
    ("optional", "Option<BTreeMap<String, String>>"),
    ("validation(pattern = \"^[a-z]+$\")", "String"),
    ("required", "Mode"),
    ("optional", "Option<Part>"),
    ("list_type = \"map\", list_map_keys = [\"name\"]", "Vec<Part>"),
    ("optional", "Option<i64>"),
];

fn kind_source(kind: usize) -> Result<String> {
    let mut text = format!(
        r#"//! Kind {kind}.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::{{CrdSchema, rbac}};
use serde::{{Deserialize, Serialize}};

/// A mode.
#[derive(CrdSchema, Clone, Debug, Serialize, Deserialize)]
pub enum Mode {{
    /// Nothing is deleted.
    Keep,
    /// Everything is deleted.
    Delete,
}}

/// A part of a kind.
#[derive(CrdSchema, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {{
    /// The part's name.
    pub name: String,
    /// How many of them.
    #[crd(validation(minimum = 1))]
    pub how_many: i32,
}}

/// What kind {kind} should be.
#[derive(CustomResource, CrdSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "bench.example.com", version = "v1", kind = "Kind{kind}", plural = "kind{kind}s", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct Kind{kind}Spec {{
"#
    );
    for field in 0..FIELDS {
        let (marker, type_) = SHAPES[field % SHAPES.len()];
        writeln!(
            text,
            "    /// Field {field} says one more thing about the object, in a sentence of usual length.\n    \
             #[crd({marker})]\n    pub field_number_{field}: {type_},"
        )?;
    }
    text.push_str("}\n\n");
    writeln!(
        text,
        "/// Brings the cluster to what the object asks for.\n\
         #[rbac(groups = \"bench.example.com\", resources = \"kind{kind}s\", verbs = \"get;list;watch;patch\")]\n\
         pub async fn reconcile() {{}}"
    )?;
    Ok(text)
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

const CRON_JOB: &str = r#"//! A cron job.

use k8s_openapi::api::batch::v1::JobTemplateSpec;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use rbuilder::{CrdSchema, rbac};
use serde::{Deserialize, Serialize};

/// CronJobSpec defines the desired state of CronJob.
#[derive(CustomResource, CrdSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v1",
    kind = "CronJob",
    plural = "cronjobs",
    namespaced,
    status = "CronJobStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.
    #[crd(validation(min_length = 0))]
    pub schedule: String,
    /// Optional deadline in seconds for starting the job if it misses scheduled time for any reason.
    /// Missed jobs executions will be counted as failed ones.
    #[crd(validation(minimum = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// Specifies how to treat concurrent executions of a Job.
    #[crd(default = "Allow")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// This flag tells the controller to suspend subsequent executions, it does
    /// not apply to already started executions. Defaults to false.
    pub suspend: Option<bool>,
    /// Specifies the job that will be created when executing a CronJob.
    pub job_template: JobTemplateSpec,
    /// The number of successful finished jobs to retain.
    #[crd(validation(minimum = 0))]
    pub successful_jobs_history_limit: Option<i32>,
    /// The number of failed finished jobs to retain.
    #[crd(validation(minimum = 0))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// ConcurrencyPolicy describes how the job will be handled.
/// Only one of the following concurrent policies may be specified.
#[derive(CrdSchema, Clone, Debug, Serialize, Deserialize)]
pub enum ConcurrencyPolicy {
    Allow,
    Forbid,
    Replace,
}

/// CronJobStatus defines the observed state of CronJob.
#[derive(CrdSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// A list of pointers to currently running jobs.
    #[crd(optional, list_type = "atomic", validation(min_items = 1, max_items = 10))]
    #[serde(default)]
    pub active: Vec<ObjectReference>,
    /// When was the last time the job was successfully scheduled.
    pub last_schedule_time: Option<Time>,
}

/// Brings the cluster to what the object asks for.
#[rbac(groups = "batch.tutorial.kubebuilder.io", resources = "cronjobs", verbs = "get;list;watch;create;update;patch;delete")]
#[rbac(groups = "batch.tutorial.kubebuilder.io", resources = "cronjobs/status", verbs = "get;update;patch")]
#[rbac(groups = "batch", resources = "jobs", verbs = "get;list;watch;create;update;patch;delete")]
pub async fn reconcile() {}
"#;
