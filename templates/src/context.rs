//! The contexts of templates.
//!
//! Every template has `project`; templates of `create api` also have `api`, those of `create webhook` also `webhook`,
//! and the one of a conversion `spoke`. Any other name is an error when the template is rendered. Values are computed
//! by the command: a template makes no decisions about Cargo names, paths or labels.
//!
//! The templates of older releases are rendered with these contexts too, so no field is ever removed or renamed.

use serde::Serialize;

use crate::TemplateSet;

/// `project` in templates: the settings of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectContext {
    /// The templates to render: those of this version, or of an older release.
    #[serde(skip)]
    pub templates: &'static TemplateSet,
    /// Name of the project, a DNS label: namespace `<name>-system`, name prefix `<name>-`, labels.
    pub name: String,
    /// The name as a YAML value: quoted if a parser would read it as a boolean or null (`on`).
    pub name_yaml: String,
    /// Name of the Cargo package: the project's name unless Cargo rejects it.
    pub package: String,
    /// Name of the package's library in Rust code: `memcached_operator`.
    pub crate_ident: String,
    /// Domain of the API groups: `example.com`.
    pub domain: String,
    /// Copyright holder; may be empty.
    pub owner: String,
    /// `apache2`, `mit` or `none`.
    pub license: String,
    /// SPDX expression for `Cargo.toml`; empty for `none`.
    pub license_spdx: String,
    /// Header of every Rust file: comment lines followed by an empty line, or empty. Write `{{ project.rust_header }}`
    /// directly before the first character of the file.
    pub rust_header: String,
    /// True if the project is in the folder of a workspace that does not list it, and so must be a workspace itself.
    pub workspace: bool,
    /// Path of the project in the Cargo workspace that it is a member of: `crates/shop`; empty if it is none.
    pub member: String,
    /// Path from the project to that workspace: `../..`; empty if it is not a member.
    pub workspace_root: String,
    /// Path of the project in its repository, with a `/` at the end; empty if it is the repository.
    pub directory_prefix: String,
    /// Path in the repository of the directory that the image is built from: `.` or `crates/shop`.
    pub build_directory: String,
    /// True if the package was there before the project: its code and its `Cargo.toml` are not scaffolded.
    pub adopted: bool,
    /// True if the manager is rbuilder's, with its arguments, probes and metrics.
    pub manager: bool,
    /// Name of the binary that the image runs: `manager`.
    pub binary: String,
    /// True if the manager watches its own namespace only, with a Role instead of a ClusterRole.
    pub namespaced: bool,
    /// True if APIs are in `src/api/<group>/<version>/`.
    pub multigroup: bool,
    /// Name of the Lease for leader election: `1fc6f0d8.example.com`.
    pub leader_election_id: String,
    /// Source of rbuilder for Cargo, to be used in an inline table:
    /// `rbuilder = { {{ project.rbuilder_source }} }` gives `rbuilder = { package = "rbuilder-runtime", path = "…" }`,
    /// and so on for the other forms.
    pub rbuilder_source: String,
    /// Version of the rbuilder command: `0.1.0`.
    pub rbuilder_version: String,
    /// Minimum Rust version of scaffolded projects.
    pub rust_version: String,
    /// Version requirement on kube.
    pub kube_version: String,
    /// Version requirement on k8s-openapi.
    pub k8s_openapi_version: String,
    /// Kubernetes minor version that projects are built and tested with: `1.35`.
    pub kubernetes_version: String,
    /// Feature of k8s-openapi for that version: `v1_35`.
    pub k8s_openapi_feature: String,
}

/// `api` in templates: a kind in one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiContext {
    /// API group without the domain: `cache`.
    pub group: String,
    /// Qualified API group: `cache.example.com`.
    pub qualified_group: String,
    /// Qualified API group as a YAML value: quoted if a parser would read it as a number (`1.5`).
    pub qualified_group_yaml: String,
    /// `v1alpha1`.
    pub version: String,
    /// `cache.example.com/v1alpha1`.
    pub api_version: String,
    /// `CronJob`.
    pub kind: String,
    /// The kind as a YAML value: quoted if a parser would not read it as a string (`Null`).
    pub kind_yaml: String,
    /// The kind in lower case, as in the names of objects, roles and their files: `cronjob`.
    pub singular: String,
    /// `cronjobs`.
    pub plural: String,
    /// The plural as a YAML value: quoted if a parser would not read it as a string (`yes`).
    pub plural_yaml: String,
    /// Name of Rust modules, files and variables: `cron_job`.
    pub module: String,
    /// Rust path of the version's module: `api::v1alpha1`, or `api::cache::v1alpha1` with several groups.
    /// Prefix it with `crate::` or `{{ project.crate_ident }}::`.
    pub api_path: String,
    /// Path of the version's module in `api`, `webhook` and the like: `v1alpha1`, or `cache::v1alpha1` with several groups.
    pub version_path: String,
    /// Path by which other modules import the kind: `api::v1::CronJob`, or `api::v1` if they use the name of the kind
    /// for something else. Prefix it like `api_path`.
    pub kind_path: String,
    /// The kind in modules that import `kind_path`: `CronJob`, or `v1::Action`.
    pub kind_type: String,
    /// Prefix of `kind_path` in `src/`: `crate::`, or empty for a type of another crate.
    pub src_root: String,
    /// Prefix of `kind_path` in `tests/`: `shop::`, or empty for a type of another crate.
    pub test_root: String,
    /// True if the types of the kind are not this project's.
    pub foreign: bool,
    /// True for a kind of Kubernetes, whose type has defaults for all fields.
    pub core: bool,
    /// True if the fake API server of the test kit serves the version without being told.
    pub served_by_fake: bool,
    /// Path in the re-export by the version's module: `cron_job`, or `self::redis` if a crate has the same name.
    pub reexport: String,
    /// Rust path of the controller's module: `controller::cron_job`, or `controller::cache::cron_job`.
    pub controller_path: String,
    /// File name of the integration test without `.rs`: `cron_job`, or `cron_job_v1beta1` for a further version and
    /// `batch_cron_job` with several groups.
    pub test_module: String,
    /// Prefix of the names of the admin, editor and viewer roles: `cronjob`, or `batch-cronjob` with several groups.
    pub role_prefix: String,
    /// True if the kind is namespaced.
    pub namespaced: bool,
    /// True if the command scaffolds the API types.
    pub resource: bool,
    /// True if the types come from a CRD: their names are in a module of their own, and the controller has no example.
    pub imported: bool,
    /// True if the command scaffolds a controller.
    pub controller: bool,
    /// True if the controller has no example of what it could do: that of a kind of others, and each further one.
    pub bare: bool,
    /// Name of the controller: `cronjob`, unless it was given another one.
    pub controller_name: String,
    /// Last part of `controller_path`: `cron_job`.
    pub controller_module: String,
    /// Expression that builds the `Controller`, formatted as by rustfmt.
    pub controller_chain: String,
    /// Imports of a controller without an example: its kind, and the one that it owns.
    pub controller_imports: Vec<String>,
    /// Imports of its test from this package: the controllers, and the kind if it is here.
    pub test_imports: Vec<String>,
    /// API group of the kind that the controller owns.
    pub owned_group: String,
    /// Plural of the kind that the controller owns; empty if it owns none.
    pub owned_plural: String,
    /// True if the controller needs permissions beyond the namespace that the manager is restricted to.
    pub cluster_wide: bool,
    /// True if this is the storage version, the first version of a kind. Later versions need `storage = false` in
    /// `#[kube(…)]`.
    pub storage: bool,
    /// Path of the generated CRD, relative to the project: `config/crd/bases/cache.example.com_cronjobs.yaml`.
    pub crd_file: String,
    /// Path of the sample, relative to the project: `config/samples/cache_v1alpha1_cronjob.yaml`.
    pub sample_file: String,
    /// Name of the object in the sample: `cronjob-sample`.
    pub sample_name: String,
    /// Arguments of `#[kube(…)]` that a further version shares with the version before: `shortname = "cj"`.
    pub kube_arguments: Vec<String>,
    /// True if the group belongs to the Kubernetes project, whose CRDs need an approval annotation.
    pub needs_approval: bool,
    /// The image that the controller runs, if it runs one.
    pub image: Option<ImageContext>,
}

/// `api.image` in templates: the image that a controller runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageContext {
    /// `memcached:1.6.26`, which needs no escapes in a literal.
    pub name: String,
    /// Environment variable of the manager that replaces the image: `RELATED_IMAGE_CACHE_MEMCACHED`.
    pub variable: String,
    /// Command and arguments, escaped for a literal of Rust. Empty for those of the image.
    pub command: Vec<String>,
    /// Port that a container listens on.
    pub port: Option<u16>,
    /// User that a container runs as; never 0.
    pub run_as_user: Option<u32>,
}

/// `webhook` in templates: the webhooks of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WebhookContext {
    /// True if there is a defaulting webhook.
    pub defaulting: bool,
    /// True if there is a validating webhook.
    pub validation: bool,
    /// True if there is either of them.
    pub admission: bool,
    /// Spoke versions of the conversion.
    pub spokes: Vec<SpokeContext>,
    /// Types of webhooks for a heading: `defaulting, validation, conversion`.
    pub about: String,
    /// Expression that builds the `Webhook`, formatted as by rustfmt: `Webhook::new().defaulter(default)`.
    pub chain: String,
    /// Rust path of the module: `webhook::v1::cron_job`, or `webhook::batch::v1::cron_job` with several groups.
    pub path: String,
    /// Directory of its file in `src/`: `webhook/v1`, or `webhook/batch/v1`.
    pub folder: String,
    /// Marker of the defaulting webhook, formatted as by rustfmt: `#[webhook(mutating)]`.
    pub defaulting_marker: String,
    /// Marker of the validating webhook.
    pub validation_marker: String,
    /// File name of the integration test without `.rs`: `cron_job_v1_webhook`.
    pub test_module: String,
}

/// `spoke` in templates: a version that is converted to and from the hub version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpokeContext {
    /// `v2`.
    pub version: String,
    /// Rust path of the version's module: `api::v2`.
    pub api_path: String,
    /// Imports of the conversion, in the order of rustfmt: `crate::api::v1::CronJob as Hub`, `crate::api::v2::CronJob`.
    pub imports: Vec<String>,
    /// Type of the hub version in the conversion: `Hub`, or `v1::Action`.
    pub hub_type: String,
    /// Type of this version in the conversion: `CronJob`, or `v2::Action`.
    pub kind_type: String,
    /// Path of the sample of this version, relative to the project: `config/samples/batch_v2_cronjob.yaml`.
    pub sample_file: String,
}
