//! Flags of `manifests`.

use clap::{Args, ValueEnum};
use rbuilder_generator::{Minor, versions};

use super::PlanFlags;

/// Flags of `manifests`.
#[derive(Clone, Debug, Args)]
pub struct ManifestsFlags {
    /// Check that the manifests are up to date; print a diff and fail if they are not, without writing any file
    #[arg(long, conflicts_with_all = ["dry_run", "stdout"])]
    pub check: bool,
    /// Let `--check` succeed if the source has no kinds or markers, i.e. nothing to compare
    #[arg(long, requires = "check")]
    pub allow_empty: bool,
    /// Print the manifests to standard output instead of writing them
    #[arg(long, conflicts_with = "dry_run")]
    pub stdout: bool,
    /// Manifests to generate [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub only: Vec<Only>,
    /// Generate the manifests that have no errors, leave the others unchanged, and fail at the end [default: in projects
    /// without PROJECT]
    #[arg(long)]
    pub keep_going: bool,
    /// Correct each mistake in the source, the samples and PROJECT for which the help says exactly what to write
    #[arg(long, conflicts_with_all = ["check", "stdout"])]
    pub fix: bool,
    /// Code of warnings and notes to make errors, such as `RB0306`, or `warnings` for all warnings
    #[arg(long, value_delimiter = ',', value_name = "CODE")]
    pub deny: Vec<String>,
    /// Code of warnings and notes to leave out
    #[arg(long, value_delimiter = ',', value_name = "CODE")]
    pub allow: Vec<String>,
    /// Format of diagnostics
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

/// Flags that select the source.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Source")]
pub struct SourceFlags {
    /// Package to read [default: the package in the project directory, or all members of the workspace]
    #[arg(short, long = "package", value_name = "NAME")]
    pub packages: Vec<String>,
    /// Example to read instead of the library and the binaries
    #[arg(long = "example", value_name = "NAME")]
    pub examples: Vec<String>,
    /// Kinds to generate CRDs for: `Kind`, `Kind.group` or `*.group` [default: the kinds of the project]
    #[arg(long = "kind", value_delimiter = ',', value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Kinds to skip, as in `--kind`
    #[arg(long = "skip-kind", value_delimiter = ',', value_name = "KIND")]
    pub skip_kinds: Vec<String>,
    /// Cargo features to activate in addition to the default features
    #[arg(short = 'F', long, value_delimiter = ',', value_name = "FEATURE")]
    pub features: Vec<String>,
    /// Activate all Cargo features
    #[arg(long)]
    pub all_features: bool,
    /// Do not activate the default Cargo features
    #[arg(long)]
    pub no_default_features: bool,
    /// Kubernetes version of the k8s-openapi types, such as 1.35, if no Cargo feature selects it
    /// [default: `K8S_OPENAPI_ENABLED_VERSION` in the environment or in .cargo/config.toml]
    #[arg(long, value_name = "VERSION", value_parser = parse_kubernetes_version)]
    pub kubernetes: Option<Minor>,
}

/// Parses a supported Kubernetes version.
pub(super) fn parse_kubernetes_version(version: &str) -> Result<Minor, String> {
    Minor::from_version(version).ok_or_else(|| {
        format!(
            "expected a Kubernetes version from {} to {}, such as `{}`",
            Minor::EARLIEST,
            Minor::LATEST,
            versions::KUBERNETES
        )
    })
}

/// Parses the name of a role, which must be usable as a path segment.
fn role_name(name: &str) -> Result<String, String> {
    if name.is_empty() || matches!(name, "." | "..") || name.contains(['/', '%']) {
        return Err("must be a valid path segment: not empty, `.` or `..`, and without `/` and `%`".into());
    }
    Ok(name.to_owned())
}

/// Flags that control the content and the location of the manifests.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Manifests")]
pub struct TargetFlags {
    /// Output directory, relative to the project directory [default: config]
    #[arg(long, visible_alias = "output-dir", value_name = "DIR")]
    pub config_dir: Option<String>,
    /// Output directory for CRDs [default: `crd-dir` in Cargo.toml, or `crd/bases` in --config-dir]
    #[arg(long, value_name = "DIR")]
    pub crd_dir: Option<String>,
    /// Output directory for roles [default: `rbac` in --config-dir]
    #[arg(long, value_name = "DIR")]
    pub rbac_dir: Option<String>,
    /// Output directory for webhook configurations [default: `webhook` in --config-dir]
    #[arg(long, value_name = "DIR")]
    pub webhook_dir: Option<String>,
    /// Name of the manager's ClusterRole or Role
    #[arg(long, value_name = "NAME", default_value = "manager-role", value_parser = role_name)]
    pub role_name: String,
    /// Omit the `rbuilder.dev/version` annotation from CRDs; a comment marks them as generated instead
    #[arg(long)]
    pub no_version_annotation: bool,
    /// Maximum length of descriptions in bytes; longer ones are truncated, and 0 removes them
    #[arg(long, value_name = "BYTES")]
    pub max_description_length: Option<usize>,
    /// Generate schemas for the metadata of embedded objects, such as pod templates
    #[arg(long, visible_alias = "generate-embedded-object-meta")]
    pub embedded_object_meta: bool,
    /// Keep generated CRDs whose kinds no longer exist
    #[arg(long)]
    pub no_prune: bool,
    /// Also remove manifests whose definitions are in files that are not read or behind inactive `cfg`s, and CRDs of deleted kinds
    /// that git tracks
    #[arg(long, conflicts_with = "no_prune")]
    pub prune: bool,
}

/// A type of manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Only {
    /// CustomResourceDefinitions
    Crd,
    /// RBAC roles
    Rbac,
    /// Webhook configurations
    Webhook,
}

/// The format of diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MessageFormat {
    /// Human-readable, on standard error
    Human,
    /// JSON lines as rustc prints them, for editors; on standard output, or on standard error with `--stdout`
    Json,
    /// A SARIF log for code scanning; on standard output, or on standard error with `--stdout`
    Sarif,
}
