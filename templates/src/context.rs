//! The names a template may use.
//!
//! Every template sees `project`; templates of `create api` see `api` as well, those of `create webhook` also `webhook`,
//! and the one of a conversion `spoke`. A name that is not here is an
//! error when the template is rendered, so this file is the whole vocabulary. Values are plain: whatever
//! needs a decision (Cargo names, paths, labels) is decided once, by the command, and never by a template.

use serde::Serialize;

/// `project` in templates: what is true of the whole project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectContext {
    /// Name of the project, a DNS label: namespace `<name>-system`, name prefix `<name>-`, labels.
    pub name: String,
    /// The name where it is a whole YAML value: quoted when a reader would take it for a boolean or a null (`on`).
    pub name_yaml: String,
    /// Name of the Cargo package; the project's name unless Cargo refuses that.
    pub package: String,
    /// The package's library as Rust code names it: `memcached_operator`.
    pub crate_ident: String,
    /// Domain that API groups end in: `example.com`.
    pub domain: String,
    /// Copyright holder; empty when none was given.
    pub owner: String,
    /// `apache2`, `mit` or `none`.
    pub license: String,
    /// SPDX expression for `Cargo.toml`; empty for `none`.
    pub license_spdx: String,
    /// First lines of every Rust file: comment lines with a final empty line, or empty. Write
    /// `{{ project.rust_header }}` directly before the first character of the file.
    pub rust_header: String,
    /// Whether the manager watches one namespace and gets a Role, not a ClusterRole.
    pub namespaced: bool,
    /// Whether APIs live in `src/api/<group>/<version>/`.
    pub multigroup: bool,
    /// Name of the Lease for leader election: `1fc6f0d8.example.com`.
    pub leader_election_id: String,
    /// Where Cargo finds rbuilder, to stand in an inline table:
    /// `rbuilder = { {{ project.rbuilder_source }} }` gives `rbuilder = { path = "../../runtime" }` or
    /// `rbuilder = { version = "0.1.0" }`.
    pub rbuilder_source: String,
    /// Folder of the rbuilder checkout when the source is a path (an image build needs it beside the
    /// project), else empty.
    pub rbuilder_checkout: String,
    /// Version of the command that scaffolds: `0.1.0`.
    pub rbuilder_version: String,
    /// Least Rust version of scaffolded projects: `1.89`.
    pub rust_version: String,
    /// Requirement on kube: `5.0`.
    pub kube_version: String,
    /// Requirement on k8s-openapi: `0.29`.
    pub k8s_openapi_version: String,
    /// Kubernetes minor that projects are built and tested against: `1.36`.
    pub kubernetes_version: String,
    /// The feature of k8s-openapi for that minor: `v1_36`.
    pub k8s_openapi_feature: String,
}

/// `api` in templates: one kind in one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiContext {
    /// First part of the API group, as given: `cache`.
    pub group: String,
    /// The whole API group: `cache.example.com`.
    pub qualified_group: String,
    /// The whole API group as a YAML value: quoted when a reader would take it for a number (`1.5`).
    pub qualified_group_yaml: String,
    /// `v1alpha1`.
    pub version: String,
    /// `cache.example.com/v1alpha1`.
    pub api_version: String,
    /// `CronJob`.
    pub kind: String,
    /// The kind as a YAML value: quoted when a reader would take it for something else (`Null`).
    pub kind_yaml: String,
    /// The kind in lower case: `cronjob`; object names, RBAC file and role names.
    pub singular: String,
    /// `cronjobs`.
    pub plural: String,
    /// The plural as a YAML value: quoted when a reader would take it for something else (`yes`).
    pub plural_yaml: String,
    /// The kind as a Rust module, file and variable: `cron_job`.
    pub module: String,
    /// Rust path of the version's module: `api::v1alpha1`, or `api::cache::v1alpha1` with several groups.
    /// Prefix it with `crate::` or `{{ project.crate_ident }}::`.
    pub api_path: String,
    /// The path by which other modules import the kind: `api::v1::CronJob`, or `api::v1` for a kind whose name they need
    /// for something else. Prefix it as `api_path`.
    pub kind_path: String,
    /// The kind in the code of modules that have imported `kind_path`: `CronJob`, or `v1::Action`.
    pub kind_type: String,
    /// The path from which the version's module exports the kind's: `cron_job`, or `self::redis` where a crate has
    /// that name.
    pub reexport: String,
    /// Rust path of the controller's module: `controller::cron_job`, or `controller::cache::cron_job`.
    pub controller_path: String,
    /// Name of the integration test's file without `.rs`: `cron_job`; a further version or a second group has
    /// its own (`cron_job_v1beta1`, `batch_cron_job`).
    pub test_module: String,
    /// Prefix of the helper roles' names: `cronjob`, or `batch-cronjob` with several groups.
    pub role_prefix: String,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
    /// Whether this command writes the API types.
    pub resource: bool,
    /// Whether this command writes a controller.
    pub controller: bool,
    /// Whether this version is the one that is stored: true for the first version of a kind. Later versions
    /// need `storage = false` in `#[kube(…)]`.
    pub storage: bool,
    /// The generated CRD, relative to the project: `config/crd/bases/cache.example.com_cronjobs.yaml`.
    pub crd_file: String,
    /// The sample, relative to the project: `config/samples/cache_v1alpha1_cronjob.yaml`.
    pub sample_file: String,
    /// The name of the sample's object: `cronjob-sample`.
    pub sample_name: String,
    /// Arguments of `#[kube(…)]` that a further version shares with the one before it: `shortname = "cj"`.
    pub kube_arguments: Vec<String>,
    /// Whether the group is one of Kubernetes' own, whose kinds must say who approved them.
    pub needs_approval: bool,
}

/// `webhook` in templates: what the API server asks about a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WebhookContext {
    /// Whether there is a defaulter.
    pub defaulting: bool,
    /// Whether there is a validator.
    pub validation: bool,
    /// Whether there is either.
    pub admission: bool,
    /// The versions that are converted, beside the kind's own.
    pub spokes: Vec<SpokeContext>,
    /// What the webhooks do, for a heading: `defaulting, validation, conversion`.
    pub about: String,
    /// The expression that makes the `Webhook`, as rustfmt writes it: `Webhook::new().defaulter(default)`.
    pub chain: String,
    /// Rust path of the module: `webhook::v1::cron_job`, or `webhook::batch::v1::cron_job` with several groups.
    pub path: String,
    /// The folder of its file under `src/`: `webhook/v1`, or `webhook/batch/v1`.
    pub folder: String,
    /// Name of the integration test's file without `.rs`: `cron_job_v1_webhook`.
    pub test_module: String,
}

/// `spoke` in templates: a version of a kind that is converted through another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpokeContext {
    /// `v2`.
    pub version: String,
    /// Rust path of the version's module: `api::v2`.
    pub api_path: String,
    /// What the conversion imports, in the order of rustfmt: `crate::api::v1::CronJob as Hub`, `crate::api::v2::CronJob`.
    pub imports: Vec<String>,
    /// The hub's type in the conversion: `Hub`, or `v1::Action`.
    pub hub_type: String,
    /// This version's type in the conversion: `CronJob`, or `v2::Action`.
    pub kind_type: String,
    /// The sample of this version, relative to the project: `config/samples/batch_v2_cronjob.yaml`.
    pub sample_file: String,
}
