//! Flags of `delete`.

use clap::{Args, Subcommand};

use super::PlanFlags;

/// A subcommand of `delete`.
#[derive(Debug, Subcommand)]
pub enum Delete {
    /// Delete an API: types, controllers, sample, roles and CRD
    Api(DeleteApiFlags),
    /// Delete a controller and keep the API types
    Controller(DeleteControllerFlags),
    /// Delete the webhooks of a kind: all of them, or those that `--defaulting`, `--validation` and `--conversion` select
    Webhook(DeleteWebhookFlags),
}

/// Flags of every subcommand of `delete`.
#[derive(Clone, Debug, Args)]
pub struct DeleteKindFlags {
    /// API group, as passed to `create`
    #[arg(long, default_value = "", hide_default_value = true)]
    pub group: String,
    /// Domain of the API group [default: that of the project, if it has the kind]
    #[arg(long = "domain", value_name = "DOMAIN")]
    pub api_domain: Option<String>,
    /// API version, such as `v1alpha1`
    #[arg(long)]
    pub version: String,
    /// Kind in upper camel case, such as `Memcached`
    #[arg(long)]
    pub kind: String,
    /// Delete files that were changed since they were scaffolded
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub plan: PlanFlags,
}

/// Flags of `delete api`.
#[derive(Clone, Debug, Args)]
pub struct DeleteApiFlags {
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub kind: DeleteKindFlags,
}

/// Flags of `delete controller`.
#[derive(Clone, Debug, Args)]
pub struct DeleteControllerFlags {
    /// Name of the controller [default: the kind in lower case, or the only one of the kind]
    #[arg(long, value_name = "NAME")]
    pub controller_name: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub kind: DeleteKindFlags,
}

/// Flags of `delete webhook`: without one of the first three, all webhooks are deleted.
#[derive(Clone, Debug, Args)]
pub struct DeleteWebhookFlags {
    /// Delete the defaulting webhook
    #[arg(long)]
    pub defaulting: bool,
    /// Delete the validating webhook
    #[arg(long, alias = "programmatic-validation")]
    pub validation: bool,
    /// Delete the conversion webhook, or only the versions in `--spoke`
    #[arg(long)]
    pub conversion: bool,
    /// Comma-separated list of the spoke versions to delete from the conversion [default: all]
    #[arg(long, value_delimiter = ',', value_name = "VERSIONS", requires = "conversion")]
    pub spoke: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub kind: DeleteKindFlags,
}
