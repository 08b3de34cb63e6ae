//! Flags of `diff`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ClusterFlags, Output, SourceFlags};

/// Flags of `diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffFlags {
    /// State to compare with: a git revision, a file or directory with manifests, `-` for the standard input, or `cluster`
    /// [default: the commit at which this branch left the main branch]
    #[arg(value_name = "BASE")]
    pub base: Option<String>,
    /// Files and directories with the new manifests [default: what `manifests` generates]
    #[arg(long = "to", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Find the fields that objects lose between the versions of a CRD, instead of comparing with an older state
    #[arg(long, conflicts_with = "base")]
    pub versions: bool,
    /// Lowest level of a change at which the exit code is 1
    #[arg(long, value_enum, default_value = "breaking", value_name = "LEVEL")]
    pub fail_on: FailLevel,
    /// Succeed if there is nothing to compare, e.g. because the older state has no manifests yet
    #[arg(long)]
    pub allow_empty: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub output: DiffFormat,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub cluster: ClusterFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub source: SourceFlags,
}

/// A level at which `diff` fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailLevel {
    /// Something that worked fails
    Breaking,
    /// Something behaves differently
    Risky,
    /// Never
    Never,
}

/// An output format of `diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// Human-readable
    Text,
    /// A JSON document on standard output
    Json,
    /// Markdown for a comment on a pull request
    Markdown,
}

impl DiffFlags {
    /// Returns the format of messages.
    pub fn messages(&self) -> Output {
        match self.output {
            DiffFormat::Text | DiffFormat::Markdown => Output::Text,
            DiffFormat::Json => Output::Json,
        }
    }
}
