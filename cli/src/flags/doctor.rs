//! Flags of `doctor`.

use clap::Args;

use super::Output;

/// Flags of `doctor`.
#[derive(Clone, Copy, Debug, Args)]
pub struct DoctorFlags {
    /// Output format
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: Output,
}
