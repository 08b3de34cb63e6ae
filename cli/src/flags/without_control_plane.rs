//! Flags of commands that need the feature `control-plane`, for builds without it.

use std::ffi::OsString;

use clap::Args;

use super::Output;

/// The arguments of `envtest`, none of which this build reads.
#[derive(Debug, Args)]
pub struct Envtest {
    /// Arguments of the complete command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub arguments: Vec<OsString>,
}

impl Envtest {
    /// Returns the command as typed, for the JSON output.
    pub fn name(&self) -> &'static str {
        "envtest"
    }

    /// Returns the output format, which is text.
    pub fn output(&self) -> Output {
        Output::Text
    }
}
