//! Flags of `update`, and flags that all merging commands share.

use clap::Args;

use super::PlanFlags;

/// Flags of `update`.
#[derive(Clone, Debug, Args)]
pub struct UpdateFlags {
    /// Deleted scaffolded file, or directory of such files, to restore, as a path in the project; may be repeated
    #[arg(long, value_name = "PATH")]
    pub restore: Vec<String>,
    /// Scaffolded file to take for up to date as it is, as a path in the project; may be repeated
    #[arg(long, value_name = "PATH")]
    pub accept: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub merge: MergeFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

/// Flags of commands that merge a change of the scaffold into the project.
#[derive(Clone, Copy, Debug, Args)]
pub struct MergeFlags {
    /// Fail without writing any file if a change of the scaffold conflicts with your changes
    #[arg(long)]
    pub no_conflicts: bool,
    /// Generate manifests after a merge without conflicts
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub manifests: bool,
}
