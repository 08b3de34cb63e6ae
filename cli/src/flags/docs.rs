//! Flags of `docs`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{PlanFlags, SourceFlags};

/// Flags of `docs`.
#[derive(Clone, Debug, Args)]
pub struct DocsFlags {
    /// Manifests to document, or directories of manifests, from any project; includes their roles and objects [default: the
    /// manifests generated from the source]
    #[arg(value_name = "FILE", conflicts_with_all = ["packages", "examples", "kinds", "skip_kinds", "features", "all_features", "no_default_features", "kubernetes"])]
    pub files: Vec<PathBuf>,
    /// Format of the page [default: from the extension of --file, or html]
    #[arg(long, value_enum)]
    pub format: Option<PageFormat>,
    /// File to write, relative to the project directory [default: `docs/api.html`, `docs/api.md` or `docs/api.schema.json`]
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<String>,
    /// Heading of the page [default: the name of the project]
    #[arg(long)]
    pub title: Option<String>,
    /// Check that the page is up to date; print a diff and fail if it is not, without writing any file
    #[arg(long, conflicts_with_all = ["dry_run", "stdout"])]
    pub check: bool,
    /// Print the page to standard output instead of writing it
    #[arg(long, conflicts_with_all = ["dry_run", "file", "output"])]
    pub stdout: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub source: SourceFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

/// A format of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// One HTML page that needs no other file
    Html,
    /// Markdown, for repositories and site generators
    Markdown,
    /// JSON Schema of manifests with these kinds, for editors
    JsonSchema,
}
