//! Requests for commands.
//!
//! The command line is parsed into these values, and `import` creates them itself. Nothing below
//! this layer knows about flags, except for their names in messages.

use std::path::PathBuf;

use crate::engine::Mode;
use crate::project::Image;

/// A request for `create api`.
#[derive(Clone, Debug, Default)]
pub struct ApiRequest {
    /// API group without the domain.
    pub group: String,
    /// Domain of the API group. Defaults to the kind's recorded domain, or to the project's domain.
    pub api_domain: Option<String>,
    /// API version. Empty if the versions come from a CRD.
    pub version: String,
    /// Kind. May be empty if it comes from a CRD.
    pub kind: String,
    /// File with the kind's CRD, or `-` for standard input.
    pub from_crd: Option<PathBuf>,
    /// Plural. Defaults to the English one.
    pub plural: Option<String>,
    /// Whether objects are namespaced. Defaults to true.
    pub namespaced: Option<bool>,
    /// Whether to scaffold the types. The default depends on the project.
    pub resource: Option<bool>,
    /// Whether to scaffold a controller. The default depends on the project.
    pub controller: Option<bool>,
    /// Image that the controller runs.
    pub image: Option<Image>,
    /// Name of the controller.
    pub controller_name: Option<String>,
    /// Type of a kind that belongs to another project.
    pub external: ExternalType,
    /// Whether to generate manifests.
    pub manifests: bool,
    /// Whether to overwrite the kind's existing files.
    pub force: bool,
}

/// Type of a kind defined in another project. Empty for any other kind.
#[derive(Clone, Debug, Default)]
pub struct ExternalType {
    /// Rust path.
    pub path: Option<String>,
    /// Crate and its version.
    pub package: Option<String>,
    /// Domain of the API group.
    pub domain: Option<String>,
}

/// A request for `create webhook`.
#[derive(Clone, Debug, Default)]
pub struct WebhookRequest {
    /// API group without the domain.
    pub group: String,
    /// Domain of the API group.
    pub api_domain: Option<String>,
    /// API version, which is also the hub of a conversion.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Whether to scaffold a defaulting webhook.
    pub defaulting: bool,
    /// Whether to scaffold a validating webhook.
    pub validation: bool,
    /// Whether to scaffold a conversion.
    pub conversion: bool,
    /// Versions that are converted to and from the hub.
    pub spoke: Vec<String>,
    /// URL path of the defaulting webhook.
    pub defaulting_path: Option<String>,
    /// URL path of the validating webhook.
    pub validation_path: Option<String>,
    /// Plural of a kind that belongs to another project.
    pub plural: Option<String>,
    /// Type of a kind that belongs to another project.
    pub external: ExternalType,
    /// Whether to generate manifests.
    pub manifests: bool,
    /// Whether to overwrite the webhooks' existing files.
    pub force: bool,
}

/// The kind for a `delete` command.
#[derive(Clone, Debug)]
pub struct DeleteRequest {
    /// API group without the domain.
    pub group: String,
    /// Domain of the API group.
    pub api_domain: Option<String>,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Whether to delete edited files.
    pub force: bool,
}

/// A request for `delete controller`.
#[derive(Clone, Debug)]
pub struct DeleteControllerRequest {
    /// The kind.
    pub kind: DeleteRequest,
    /// Name of the controller. Not needed if the kind has only one.
    pub controller_name: Option<String>,
}

/// A request for `delete webhook`. Without any of the webhooks, deletes all of them.
#[derive(Clone, Debug)]
pub struct DeleteWebhookRequest {
    /// The kind.
    pub kind: DeleteRequest,
    /// Whether to delete the defaulting webhook.
    pub defaulting: bool,
    /// Whether to delete the validating webhook.
    pub validation: bool,
    /// Whether to delete the conversion.
    pub conversion: bool,
    /// Versions to delete from the conversion, or all of them if empty.
    pub spoke: Vec<String>,
}

/// How to merge a change of the scaffold into the project.
#[derive(Clone, Copy, Debug)]
pub struct MergeRequest {
    /// Treat a conflict as an error.
    pub no_conflicts: bool,
    /// Generate manifests if the merge had no conflicts.
    pub manifests: bool,
}

/// A request for `update`.
#[derive(Clone, Debug)]
pub struct UpdateRequest {
    /// Deleted scaffolded files, or directories of such files, to restore.
    pub restore: Vec<String>,
    /// Scaffolded files that count as up to date.
    pub accept: Vec<String>,
    /// How to merge.
    pub merge: MergeRequest,
}

/// A request for a command that generates a product from the manifests.
#[derive(Clone, Copy, Debug)]
pub struct ProductRequest {
    /// How to merge the product with the existing files.
    pub merge: ProductMergeRequest,
    /// Whether to generate the manifests first.
    pub manifests: bool,
}

/// How to merge generated files with the existing ones.
#[derive(Clone, Copy, Debug)]
pub struct ProductMergeRequest {
    /// Only check that the files are up to date.
    pub check: bool,
    /// Treat a conflict as an error.
    pub no_conflicts: bool,
    /// Overwrite files that rbuilder did not write, and restore deleted ones.
    pub force: bool,
    /// How to show the plan.
    pub mode: Mode,
}

/// A request for `bundle`.
#[derive(Clone, Debug)]
pub struct BundleRequest {
    /// Version of the operator. Defaults to the one in Cargo.toml, or to 0.1.0.
    pub version: Option<String>,
    /// Image of the manager. Defaults to the one in config/manager.
    pub image: Option<String>,
    /// Image of the bundle in the catalog. Defaults to a name derived from `image`.
    pub bundle_image: Option<String>,
    /// Channels of the catalog that get this version. Never empty.
    pub channels: Vec<String>,
    /// Default channel of the package. Defaults to the one in the catalog, or to the first channel.
    pub default_channel: Option<String>,
    /// Version that this one replaces. Defaults to the head of each channel, if that is lower.
    pub replaces: Option<String>,
    /// Versions that an upgrade to this one skips.
    pub skips: Vec<String>,
    /// Range of versions that an upgrade to this one skips.
    pub skip_range: Option<String>,
    /// Icon for catalogs, an SVG file in the project. Defaults to a hexagon.
    pub icon: Option<String>,
    /// How to generate and merge the bundle.
    pub product: ProductRequest,
}
