//! Flags of `edit`.

use clap::{Args, ValueEnum};
use rbuilder_generator::Minor;

use super::manifests::parse_kubernetes_version;
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
    /// Restrict the manager to its own namespace; `=false` lets it watch all namespaces
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub namespaced: Option<bool>,
    /// Lay out APIs by group, to support multiple API groups: moves files and rewrites their paths
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub multigroup: Option<bool>,
    /// Name of the project: renames the package, the namespace and the prefix of all deployed objects
    #[arg(long, value_name = "NAME")]
    pub project_name: Option<String>,
    /// Domain of the API groups that are created from now on; existing kinds keep theirs
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<String>,
    /// Owner in the copyright header of each source file; empty for none
    #[arg(long)]
    pub owner: Option<String>,
    /// License of the project
    #[arg(long, value_enum)]
    pub license: Option<License>,
    /// Kubernetes minor version that the project is built and tested for
    #[arg(long, value_name = "VERSION", value_parser = parse_kubernetes_version)]
    pub kubernetes: Option<Minor>,
    /// Features of the deployment to enable, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FEATURES")]
    pub enable: Vec<Feature>,
    /// Features of the deployment to disable, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FEATURES")]
    pub disable: Vec<Feature>,
}

impl SettingFlags {
    /// Returns `true` if a flag changes what is scaffolded.
    pub fn change_scaffold(&self) -> bool {
        self.namespaced.is_some()
            || self.multigroup.is_some()
            || self.project_name.is_some()
            || self.domain.is_some()
            || self.owner.is_some()
            || self.license.is_some()
            || self.kubernetes.is_some()
    }

    /// Returns `true` if a flag enables or disables a feature of the deployment.
    pub fn name_features(&self) -> bool {
        !(self.enable.is_empty() && self.disable.is_empty())
    }
}

/// A feature of the deployment in `config/default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Feature {
    /// Metrics over HTTPS, with the permissions to read them
    Metrics,
    /// A ServiceMonitor, for the Prometheus Operator
    Prometheus,
    /// A certificate for metrics from cert-manager, which the ServiceMonitor verifies
    MetricsCertificate,
    /// NetworkPolicies for the ports of the manager
    NetworkPolicy,
    /// Certificates of webhooks from cert-manager, not from the manager
    CertManager,
    /// The webhooks
    Webhooks,
    /// Shards: all replicas work, each on its own part of the objects
    Sharding,
}

impl Feature {
    /// Returns the name used in flags.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Metrics => "metrics",
            Feature::Prometheus => "prometheus",
            Feature::MetricsCertificate => "metrics-certificate",
            Feature::NetworkPolicy => "network-policy",
            Feature::CertManager => "cert-manager",
            Feature::Webhooks => "webhooks",
            Feature::Sharding => "sharding",
        }
    }
}
