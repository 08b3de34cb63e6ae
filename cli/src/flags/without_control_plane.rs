//! Flags of the commands that a build without the feature `control-plane` lacks.

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
    /// Returns the word of the command.
    pub fn name(&self) -> &'static str {
        "envtest"
    }

    /// Returns the output format, which is text.
    pub fn output(&self) -> Output {
        Output::Text
    }
}
