//! Flags of `adopt`.

use clap::Args;

use super::PlanFlags;

/// Flags of `adopt`.
#[derive(Clone, Debug, Args)]
pub struct AdoptFlags {
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}
