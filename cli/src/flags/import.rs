//! Flags of `import`.

use std::path::PathBuf;

use clap::Args;

use super::{InitLibraryFlags, License, PlanFlags};

/// Flags of `import`.
#[derive(Clone, Debug, Args)]
pub struct ImportFlags {
    /// Directory of the kubebuilder project, with its PROJECT file; nothing in it is changed
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Name of the project, a DNS label of at most 28 characters [default: the same as the kubebuilder project]
    #[arg(long, value_name = "NAME")]
    pub project_name: Option<String>,
    /// Owner to add to the copyright header of each source file
    #[arg(long)]
    pub owner: Option<String>,
    /// License of the project [default: detected from the file LICENSE in the current directory, or apache2]
    #[arg(long, value_enum)]
    pub license: Option<License>,
    /// Overwrite files that already exist
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub library: InitLibraryFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}
