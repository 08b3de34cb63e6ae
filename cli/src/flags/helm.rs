//! Flags of `helm`.

use clap::Args;

use super::PlanFlags;

/// Flags of `helm`.
#[derive(Clone, Copy, Debug, Args)]
pub struct HelmFlags {
    /// Fail with the differences if the chart is not up to date, without writing any file
    #[arg(long, conflicts_with_all = ["dry_run", "force"])]
    pub check: bool,
    /// Fail without writing any file if a change of the chart conflicts with one of yours
    #[arg(long)]
    pub no_conflicts: bool,
    /// Generate the manifests first
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub manifests: bool,
    /// Overwrite files of the chart that rbuilder did not write, on its first run
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}
