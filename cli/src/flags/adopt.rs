//! Flags of `adopt`.

use clap::Args;

use super::PlanFlags;

/// Flags of `adopt`.
#[derive(Clone, Debug, Args)]
pub struct AdoptFlags {
    /// Print `#[rbac(…)]` markers for the permissions that the calls of kube in the source need,
    /// compare them with the role that is written by hand, and write nothing
    #[arg(long)]
    pub role: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}
