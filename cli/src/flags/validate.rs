//! Flags of `validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Output, SourceFlags};

/// Flags of `validate`.
#[derive(Clone, Debug, Args)]
pub struct ValidateFlags {
    /// Files with objects, and directories of such files; `-` is the standard input [default: config/samples]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Files and directories with CustomResourceDefinitions, in addition to those of the project
    #[arg(long, value_name = "FILE")]
    pub crds: Vec<PathBuf>,
    /// Files and directories with the objects before an update: the objects are judged as updates of those with the same name
    #[arg(long, value_name = "FILE")]
    pub old: Vec<PathBuf>,
    /// Print the objects as the API server would store them, with defaults
    #[arg(long, conflicts_with = "output")]
    pub show_defaults: bool,
    /// Correct each mistake in the files for which the help says exactly what to write
    #[arg(long)]
    pub fix: bool,
    /// Show the corrections of `--fix` without writing any file
    #[arg(long, requires = "fix")]
    pub dry_run: bool,
    /// What to do about unknown fields
    #[arg(long, value_enum, default_value = "strict", value_name = "LEVEL")]
    pub field_validation: FieldLevel,
    /// Succeed if there is nothing to judge, e.g. because the project has no samples yet
    #[arg(long)]
    pub allow_empty: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: ValidateFormat,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub source: SourceFlags,
}

/// What to do about unknown fields, as in `kubectl apply --validate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FieldLevel {
    /// Refuse the object
    Strict,
    /// Print a warning
    Warn,
    /// Ignore them
    Ignore,
}

/// An output format of `validate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ValidateFormat {
    /// Human-readable
    Text,
    /// A JSON document on standard output
    Json,
    /// A SARIF log on standard output, for code scanning
    Sarif,
}

impl ValidateFlags {
    /// Returns the format of messages.
    pub fn messages(&self) -> Output {
        match self.output {
            ValidateFormat::Text => Output::Text,
            ValidateFormat::Json | ValidateFormat::Sarif => Output::Json,
        }
    }
}
