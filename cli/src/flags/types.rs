//! Flags of `types`.

use std::path::PathBuf;

use clap::Args;
use rbuilder_generator::Minor;

use super::PlanFlags;
use super::manifests::parse_kubernetes_version;

/// Flags of `types`.
#[derive(Clone, Debug, Args)]
pub struct TypesFlags {
    /// Files with CustomResourceDefinitions, and directories of such files; `-` is the standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Directory to write the types to, relative to the project directory
    #[arg(long, value_name = "DIR", default_value = "src/api")]
    pub into: PathBuf,
    /// Print the types to standard output instead of writing them
    #[arg(long, conflicts_with = "dry_run")]
    pub stdout: bool,
    /// Kubernetes version of the k8s-openapi types, such as 1.35 [default: that of the project]
    #[arg(long, value_name = "VERSION", value_parser = parse_kubernetes_version)]
    pub kubernetes: Option<Minor>,
    /// Define types that several files have in common once, in a module `shared` above them [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", hide_default_value = true, value_name = "BOOL", action = clap::ArgAction::Set)]
    pub share: bool,
    /// Overwrite files that already exist
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}
