//! Flags of `explain` and `reference`.

use clap::{Args, ValueEnum};

use super::Output;

/// Flags of `explain`.
#[derive(Clone, Debug, Args)]
pub struct ExplainFlags {
    /// Code, such as `RB0201`, or the words of a message [default: list all codes]
    #[arg(value_name = "CODE")]
    pub words: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: Output,
}

/// A page of the guide that is generated from the tables of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReferencePage {
    /// Commands and their flags
    Commands,
    /// Codes of messages
    Codes,
}
