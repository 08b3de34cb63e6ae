//! Flags of `manifests`.

use clap::{Args, ValueEnum};
use rbuilder_generator::Minor;

use super::PlanFlags;

/// Flags of `manifests`.
#[derive(Clone, Debug, Args)]
pub struct ManifestsFlags {
    /// Write nothing; fail and show the difference when a manifest is not as it would be written
    #[arg(long, conflicts_with_all = ["dry_run", "stdout"])]
    pub check: bool,
    /// Print the manifests and write nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub stdout: bool,
    /// What to generate [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub only: Vec<Only>,
    /// How mistakes in the source are told
    #[arg(
        long,
        value_enum,
        default_value = "human",
        value_name = "FORMAT",
        conflicts_with = "output"
    )]
    pub message_format: MessageFormat,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub source: SourceFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub target: TargetFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

/// What the manifests are made from.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Source")]
pub struct SourceFlags {
    /// Package to read [default: the one here, or every member of the workspace here]
    #[arg(short, long = "package", value_name = "NAME")]
    pub packages: Vec<String>,
    /// Example to read in place of the library and the binaries
    #[arg(long = "example", value_name = "NAME")]
    pub examples: Vec<String>,
    /// Kind whose CRD to write: `Kind`, `Kind.group` or `*.group` [default: the project's own]
    #[arg(long = "kind", value_delimiter = ',', value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Kind whose CRD not to write
    #[arg(long = "skip-kind", value_delimiter = ',', value_name = "KIND")]
    pub skip_kinds: Vec<String>,
    /// Cargo features that count as on, beside the default ones
    #[arg(short = 'F', long, value_delimiter = ',', value_name = "FEATURE")]
    pub features: Vec<String>,
    /// Let every Cargo feature count as on
    #[arg(long)]
    pub all_features: bool,
    /// Let the default Cargo features count as off
    #[arg(long)]
    pub no_default_features: bool,
    /// Kubernetes whose types k8s-openapi has, where none of its features is chosen: 1.36
    /// [default: what `K8S_OPENAPI_ENABLED_VERSION` says, in the environment or in .cargo/config.toml]
    #[arg(long, value_name = "VERSION", value_parser = kubernetes)]
    pub kubernetes: Option<Minor>,
}

/// A Kubernetes that rbuilder knows.
fn kubernetes(version: &str) -> Result<Minor, String> {
    Minor::from_version(version).ok_or_else(|| {
        let all: Vec<String> = Minor::all().map(|minor| minor.to_string()).collect();
        format!("rbuilder knows Kubernetes {}", all.join(", "))
    })
}

/// The name of a role, which the API server takes as a part of a path.
fn role_name(name: &str) -> Result<String, String> {
    if name.is_empty() || matches!(name, "." | "..") || name.contains(['/', '%']) {
        return Err("a role's name is of letters, digits, `-`, `.` and `:`".into());
    }
    Ok(name.to_owned())
}

/// What the manifests are like, and where they go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Manifests")]
pub struct TargetFlags {
    /// Folder for the manifests, within the project
    #[arg(
        long,
        visible_alias = "output-dir",
        value_name = "FOLDER",
        default_value = "config"
    )]
    pub config_dir: String,
    /// Folder for CRDs; `crd/bases` in the folder of --config-dir without it
    #[arg(long, value_name = "FOLDER")]
    pub crd_dir: Option<String>,
    /// Folder for roles; `rbac` in the folder of --config-dir without it
    #[arg(long, value_name = "FOLDER")]
    pub rbac_dir: Option<String>,
    /// Folder for webhook configurations; `webhook` in the folder of --config-dir without it
    #[arg(long, value_name = "FOLDER")]
    pub webhook_dir: Option<String>,
    /// Name of the manager's ClusterRole
    #[arg(long, value_name = "NAME", default_value = "manager-role", value_parser = role_name)]
    pub role_name: String,
    /// Leave out the annotation that says which rbuilder wrote a CRD; a comment then says that one did
    #[arg(long)]
    pub no_version_annotation: bool,
    /// Cut descriptions at so many bytes, after a sentence or a word; 0 drops them
    #[arg(long, value_name = "BYTES")]
    pub max_description_length: Option<usize>,
    /// Keep labels, annotations and names in the metadata of objects inside objects, such as pod templates
    #[arg(long, visible_alias = "generate-embedded-object-meta")]
    pub embedded_object_meta: bool,
    /// Keep CRDs that an earlier run wrote and no kind stands for any more
    #[arg(long)]
    pub no_prune: bool,
    /// Drop from the manifests also what still stands in the source, in a file or behind a `cfg` that is not read
    #[arg(long, conflicts_with = "no_prune")]
    pub prune: bool,
}

/// A sort of manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Only {
    /// CustomResourceDefinitions
    Crd,
    /// Roles
    Rbac,
    /// Webhook configurations
    Webhook,
}

/// How mistakes in the source are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// For people, on standard error
    Human,
    /// For editors: one JSON object a line, as rustc writes them; on standard output, or on standard error
    /// beside `--stdout`
    Json,
}
