//! Flags of commands that generate a chart, a bundle or dashboards, and merge them with existing
//! files.

use clap::Args;

use super::PlanFlags;

/// Flags of a command that makes a product of the manifests.
#[derive(Clone, Copy, Debug, Args)]
pub struct ProductFlags {
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub merge: ProductMergeFlags,
    /// Generate the manifests first
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub manifests: bool,
}

/// Flags of a command that merges what it makes with the files that are there.
#[derive(Clone, Copy, Debug, Args)]
pub struct ProductMergeFlags {
    /// Check that the files are up to date; print a diff and fail if they are not, without writing any file
    #[arg(long, conflicts_with_all = ["dry_run", "force"])]
    pub check: bool,
    /// Fail without writing any file if a generated change conflicts with your changes
    #[arg(long)]
    pub no_conflicts: bool,
    /// Overwrite files that rbuilder did not write, and restore deleted ones
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}
