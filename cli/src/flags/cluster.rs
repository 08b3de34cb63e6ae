//! Flags of commands that connect to a cluster.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{parse_image, parse_seconds};
use crate::cluster::ClusterChoice;

/// Flags that select a cluster.
#[derive(Clone, Debug, Default, Args)]
pub struct ClusterFlags {
    /// Kubeconfig file [default: the one that kubectl uses]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterFlags {
    /// Returns the cluster that the flags select.
    pub(crate) fn choice(&self) -> ClusterChoice {
        ClusterChoice {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}

/// Flags of commands that generate manifests before they do their own work.
#[derive(Clone, Debug, Args)]
pub struct GenerationFlags {
    /// Generate manifests first
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub manifests: bool,
}

/// Flags of `install`.
#[derive(Clone, Debug, Args)]
pub struct InstallCrdsFlags {
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub generation: GenerationFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub cluster: ClusterFlags,
}

/// Flags of `uninstall`, and of `undeploy`.
#[derive(Clone, Debug, Args)]
pub struct RemovalFlags {
    /// Succeed if resources do not exist
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub ignore_not_found: bool,
    /// Seconds to wait for the finalizers of custom resources
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_seconds)]
    pub timeout: Duration,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub cluster: ClusterFlags,
}

/// Flags of `undeploy`.
#[derive(Clone, Debug, Args)]
pub struct UndeployFlags {
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub removal: RemovalFlags,
    /// Delete the namespace with everything in it, also if it was there before or contains objects of others
    #[arg(long)]
    pub delete_namespace: bool,
}

/// Flags of `deploy`.
#[derive(Clone, Debug, Args)]
pub struct DeployFlags {
    /// Image of the manager, in place of the image in config/manager
    #[arg(long, value_name = "IMAGE", value_parser = parse_image)]
    pub image: String,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub generation: GenerationFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub cluster: ClusterFlags,
}

/// Flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunFlags {
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub generation: GenerationFlags,
    #[command(flatten)]
    #[allow(missing_docs)] // its fields say it
    pub cluster: ClusterFlags,
    /// Arguments of the manager
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
}

/// Flags of `dev`.
#[derive(Clone, Debug, Args)]
pub struct DevFlags {
    /// Use the cluster of this context in the kubeconfig instead of starting a control plane
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Kubeconfig file that contains the context [default: the one that kubectl uses]
    #[arg(long, value_name = "FILE", requires = "context")]
    pub kubeconfig: Option<PathBuf>,
    /// Host name or address at which the cluster of `--context` reaches this machine, for webhooks
    #[arg(long, value_name = "HOST", requires = "context")]
    pub webhook_host: Option<String>,
    /// Port of the webhook server [default: a free one]
    #[arg(long, value_name = "PORT")]
    pub webhook_port: Option<u16>,
    /// Binary of the manager [default: manager, or the binary of an adopted package]
    #[arg(long, value_name = "NAME")]
    pub bin: Option<String>,
    /// Poll files every second instead of watching for file system events
    #[arg(long)]
    pub poll: bool,
    /// Arguments of the manager
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
}
