//! Flags of `edit`.

use clap::Args;

use super::{License, MergeFlags, PlanFlags};

/// Flags of `edit`.
#[derive(Clone, Debug, Args)]
pub struct EditFlags {
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub settings: SettingFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub merge: MergeFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

/// The settings of a project that can be changed.
#[derive(Clone, Debug, Default, Args)]
#[group(required = true, multiple = true)]
pub struct SettingFlags {
    /// Restrict the manager to its own namespace, or with `=false` let it watch all namespaces
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub namespaced: Option<bool>,
    /// Owner in the copyright header of each source file; empty for none
    #[arg(long)]
    pub owner: Option<String>,
    /// License of the project
    #[arg(long, value_enum)]
    pub license: Option<License>,
    /// Kubernetes minor that the project is built and tested for
    #[arg(long, value_name = "MINOR", value_parser = parse_minor)]
    pub kubernetes: Option<String>,
}

/// Checks that k8s-openapi has a minor.
fn parse_minor(text: &str) -> Result<String, String> {
    use rbuilder_generator::Minor;
    match Minor::from_version(text) {
        Some(minor) => Ok(minor.to_string()),
        None => Err(format!(
            "expected a minor from {} to {}",
            Minor::EARLIEST,
            Minor::LATEST
        )),
    }
}
