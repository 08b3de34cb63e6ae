//! The contexts with which templates are rendered.
//!
//! Every template can use `project`. Templates of `create api` can also use `api`, templates of
//! `create webhook` can also use `webhook`, and the conversion template can use `spoke`. Rendering
//! fails if a template uses any other name. The command computes all values, so that templates need
//! no logic for Cargo names, paths or labels.
//!
//! Templates of older releases are rendered with the same contexts, so fields must not be removed
//! or renamed.

use serde::Serialize;

use crate::TemplateSet;
use crate::objects::OtherNames;

/// `project` in templates: the settings of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectContext {
    /// The templates to render, of this version or an older release.
    #[serde(skip)]
    pub templates: &'static TemplateSet,
    /// Name of the project, a DNS label. It is also the namespace (`<name>-system`), the name
    /// prefix (`<name>-`) and a label.
    pub name: String,
    /// The name as a YAML value: quoted if YAML would parse it as a boolean or null (`on`).
    pub name_yaml: String,
    /// Name of the Cargo package: the name of the project, unless Cargo rejects it.
    pub package: String,
    /// Name of the library crate in Rust code: `memcached_operator`.
    pub crate_ident: String,
    /// Domain of all API groups: `example.com`.
    pub domain: String,
    /// Copyright holder; may be empty.
    pub owner: String,
    /// `apache2`, `mit` or `none`.
    pub license: String,
    /// SPDX expression for `Cargo.toml`; empty for `none`.
    pub license_spdx: String,
    /// Header of each Rust file: comment lines followed by an empty line. May be empty. Write `{{
    /// project.rust_header }}` directly before the first character of the file.
    pub rust_header: String,
    /// Whether the project declares its own workspace, because it is in the folder of a workspace
    /// that does not list it as a member.
    pub workspace: bool,
    /// Path of the project in its Cargo workspace: `crates/shop`. Empty if the project is not a
    /// workspace member.
    pub member: String,
    /// Path from the project to the workspace root: `../..`. Empty if the project is not a
    /// workspace member.
    pub workspace_root: String,
    /// Path of the project in its repository, with a trailing `/`. Empty if the project is the
    /// repository.
    pub directory_prefix: String,
    /// Path of the build context of the image in the repository: `.` or `crates/shop`.
    pub build_directory: String,
    /// Whether the project was added to an existing package, whose code and `Cargo.toml` are not
    /// scaffolded.
    pub adopted: bool,
    /// Whether the project uses the manager of rbuilder, with its arguments, probes and metrics.
    pub manager: bool,
    /// Name of the binary that the image runs: `manager`.
    pub binary: String,
    /// Whether the manager only watches its own namespace, with a Role instead of a ClusterRole.
    pub namespaced: bool,
    /// Whether APIs are in `src/api/<group>/<version>/`.
    pub multigroup: bool,
    /// Name of the Lease for leader election: `1fc6f0d8.example.com`.
    pub leader_election_id: String,
    /// The Cargo dependency on rbuilder, to be inserted in an inline table: `rbuilder = { {{
    /// project.rbuilder_source }} }` becomes for example `rbuilder = { package =
    /// "rbuilder-runtime", path = "…" }`.
    pub rbuilder_source: String,
    /// Version of the rbuilder command: `0.1.0`.
    pub rbuilder_version: String,
    /// Minimum Rust version of scaffolded projects.
    pub rust_version: String,
    /// Version requirement on kube.
    pub kube_version: String,
    /// Version requirement on k8s-openapi.
    pub k8s_openapi_version: String,
    /// Kubernetes minor version that projects are compiled and tested with: `1.35`.
    pub kubernetes_version: String,
    /// Feature of k8s-openapi for that Kubernetes version: `v1_35`.
    pub k8s_openapi_feature: String,
    /// Whether `Deployment::spec` is required (no `Option`) in the types of that Kubernetes version:
    /// true after 1.36.
    pub apps_spec_is_required: bool,
    /// Names of the manager's objects in place of those in the templates, which contain the names of
    /// a new project.
    #[serde(skip)]
    pub objects: OtherNames,
}

/// `api` in templates: a version of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiContext {
    /// API group without the domain: `cache`.
    pub group: String,
    /// API group with the domain: `cache.example.com`.
    pub qualified_group: String,
    /// Qualified API group as a YAML value: quoted if YAML would parse it as a number (`1.5`).
    pub qualified_group_yaml: String,
    /// `v1alpha1`.
    pub version: String,
    /// `cache.example.com/v1alpha1`.
    pub api_version: String,
    /// `CronJob`.
    pub kind: String,
    /// The kind as a YAML value: quoted if YAML would not parse it as a string (`Null`).
    pub kind_yaml: String,
    /// The kind in lower case, used in the names of objects, roles and their files: `cronjob`.
    pub singular: String,
    /// `cronjobs`.
    pub plural: String,
    /// The plural as a YAML value: quoted if YAML would not parse it as a string (`yes`).
    pub plural_yaml: String,
    /// Name of Rust modules, files and variables for the kind: `cron_job`.
    pub module: String,
    /// Rust path of the module of the version: `api::v1alpha1`, or `api::cache::v1alpha1` with
    /// several groups. Prefix it with `crate::` or `{{ project.crate_ident }}::`.
    pub api_path: String,
    /// Path of the module of the version within `api`, `webhook` and similar modules: `v1alpha1`,
    /// or `cache::v1alpha1` with several groups.
    pub version_path: String,
    /// Path with which other modules import the kind: `api::v1::CronJob`, or `api::v1` if the
    /// modules use the name of the kind for something else. Prefix it like `api_path`.
    pub kind_path: String,
    /// The kind in modules that import `kind_path`: `CronJob`, or `v1::Action`.
    pub kind_type: String,
    /// Prefix of `kind_path` in `src/`: `crate::`, or empty for a type from another crate.
    pub src_root: String,
    /// Prefix of `kind_path` in `tests/`: `shop::`, or empty for a type from another crate.
    pub test_root: String,
    /// Whether the types of the kind are defined outside this project.
    pub foreign: bool,
    /// Whether the kind is built into Kubernetes. Its type then has defaults for all fields.
    pub core: bool,
    /// Whether the fake API server serves the version without registration.
    pub served_by_fake: bool,
    /// Path of the re-export in the module of the version: `cron_job`, or `self::redis` if a crate
    /// has the same name.
    pub reexport: String,
    /// Rust path of the module of the controller: `controller::cron_job`, or
    /// `controller::cache::cron_job`.
    pub controller_path: String,
    /// File name of the integration test without `.rs`: `cron_job`, `cron_job_v1beta1` for a
    /// further version, or `batch_cron_job` with several groups.
    pub test_module: String,
    /// Prefix of the names of the admin, editor and viewer roles: `cronjob`, or `batch-cronjob` with several groups.
    pub role_prefix: String,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
    /// Whether the command scaffolds the API types.
    pub resource: bool,
    /// Whether the types are generated from a CRD. They are then in a separate module, and the
    /// controller contains no example.
    pub imported: bool,
    /// Whether the command scaffolds a controller.
    pub controller: bool,
    /// Whether the controller contains no example: it is for a foreign kind, or not the first
    /// controller of the kind.
    pub bare: bool,
    /// Name of the controller. Defaults to `cronjob`.
    pub controller_name: String,
    /// Last segment of `controller_path`: `cron_job`.
    pub controller_module: String,
    /// Expression that builds the `Controller`, in the format of rustfmt.
    pub controller_chain: String,
    /// Imports of a controller without an example: its kind and the kind that it owns.
    pub controller_imports: Vec<String>,
    /// Imports of the controller test from this package: the controllers, and the kind if it is
    /// defined here.
    pub test_imports: Vec<String>,
    /// API group of the owned kind.
    pub owned_group: String,
    /// Plural of the owned kind; empty if the controller owns none.
    pub owned_plural: String,
    /// Whether the controller needs permissions outside the namespace to which the manager is
    /// restricted.
    pub cluster_wide: bool,
    /// Whether this is the storage version, which is the first version of a kind. Later versions
    /// need `storage = false` in `#[kube(…)]`.
    pub storage: bool,
    /// Path of the generated CRD in the project:
    /// `config/crd/bases/cache.example.com_cronjobs.yaml`.
    pub crd_file: String,
    /// Path of the sample in the project: `config/samples/cache_v1alpha1_cronjob.yaml`.
    pub sample_file: String,
    /// Name of the sample object: `cronjob-sample`.
    pub sample_name: String,
    /// Arguments of `#[kube(…)]` that a further version copies from the previous one: `shortname =
    /// "cj"`.
    pub kube_arguments: Vec<String>,
    /// Whether the group is protected by the Kubernetes project, so that its CRDs need an approval
    /// annotation.
    pub needs_approval: bool,
    /// The image that the controller runs, if any.
    pub image: Option<ImageContext>,
}

/// `api.image` in templates: the image that a controller runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageContext {
    /// Name of the image: `memcached:1.6.26`. Needs no escapes in a Rust literal.
    pub name: String,
    /// Environment variable that overrides the image in the manager:
    /// `RELATED_IMAGE_CACHE_MEMCACHED`.
    pub variable: String,
    /// Command and arguments, escaped for Rust literals. Empty to use those of the image.
    pub command: Vec<String>,
    /// Port on which the container listens.
    pub port: Option<u16>,
    /// User id with which the container runs; never 0.
    pub run_as_user: Option<u32>,
}

/// `webhook` in templates: the webhooks of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WebhookContext {
    /// Whether to scaffold a defaulting webhook.
    pub defaulting: bool,
    /// Whether to scaffold a validating webhook.
    pub validation: bool,
    /// Whether to scaffold a defaulting or validating webhook.
    pub admission: bool,
    /// Spoke versions to convert.
    pub spokes: Vec<SpokeContext>,
    /// The types of webhooks for a heading: `defaulting, validation, conversion`.
    pub about: String,
    /// Expression that builds the `Webhook`, in the format of rustfmt:
    /// `Webhook::new().defaulter(default)`.
    pub chain: String,
    /// Rust path of the module: `webhook::v1::cron_job`, or `webhook::batch::v1::cron_job` with several groups.
    pub path: String,
    /// Directory of the module in `src/`: `webhook/v1`, or `webhook/batch/v1`.
    pub folder: String,
    /// Marker of the defaulting webhook, in the format of rustfmt: `#[webhook(mutating)]`.
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
    /// Rust path of the module of the version: `api::v2`.
    pub api_path: String,
    /// Imports of the conversion, in the order of rustfmt: `crate::api::v1::CronJob as Hub`,
    /// `crate::api::v2::CronJob`.
    pub imports: Vec<String>,
    /// Type of the hub version in the conversion: `Hub`, or `v1::Action`.
    pub hub_type: String,
    /// Type of the spoke version in the conversion: `CronJob`, or `v2::Action`.
    pub kind_type: String,
    /// Path of the sample of this version in the project: `config/samples/batch_v2_cronjob.yaml`.
    pub sample_file: String,
}
