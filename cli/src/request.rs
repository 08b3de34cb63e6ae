//! Requests to commands.
//!
//! The command line is parsed into these values, and `import` creates them itself. Modules below
//! this layer are independent of flags, except for the names in messages.

use std::path::PathBuf;

use crate::engine::Mode;
use crate::project::Image;

/// The request of `create api`.
#[derive(Clone, Debug, Default)]
pub struct ApiRequest {
    /// API group without the domain.
    pub group: String,
    /// Domain of the API group. Defaults to the kind's recorded domain, or to the project's domain.
    pub api_domain: Option<String>,
    /// API version. Empty for the versions of a CRD.
    pub version: String,
    /// Kind. May be empty if it is specified by a CRD.
    pub kind: String,
    /// File with the kind's CRD; `-` for standard input.
    pub from_crd: Option<PathBuf>,
    /// Plural. Defaults to the English one.
    pub plural: Option<String>,
    /// Whether objects are namespaced. Defaults to true.
    pub namespaced: Option<bool>,
    /// Whether to scaffold the types. The default depends on the project.
    pub resource: Option<bool>,
    /// Whether to scaffold a controller. The default depends on the project.
    pub controller: Option<bool>,
    /// The image run by the controller.
    pub image: Option<Image>,
    /// The controller's name.
    pub controller_name: Option<String>,
    /// The type of a kind that belongs to another project.
    pub external: ExternalType,
    /// Whether to generate manifests.
    pub manifests: bool,
    /// Whether to overwrite the kind's existing files.
    pub force: bool,
}

/// The type of a kind that another project defines. Empty for other kinds.
#[derive(Clone, Debug, Default)]
pub struct ExternalType {
    /// Rust path.
    pub path: Option<String>,
    /// Crate and its version.
    pub package: Option<String>,
    /// The API group's domain.
    pub domain: Option<String>,
}

/// The request of `create webhook`.
#[derive(Clone, Debug, Default)]
pub struct WebhookRequest {
    /// API group without the domain.
    pub group: String,
    /// The API group's domain.
    pub api_domain: Option<String>,
    /// API version, which is also a conversion's hub.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Whether to scaffold a defaulting webhook.
    pub defaulting: bool,
    /// Whether to scaffold a validating webhook.
    pub validation: bool,
    /// Whether to scaffold a conversion.
    pub conversion: bool,
    /// Versions to convert to and from the hub.
    pub spoke: Vec<String>,
    /// The defaulting webhook's URL path.
    pub defaulting_path: Option<String>,
    /// The validating webhook's URL path.
    pub validation_path: Option<String>,
    /// Plural of a kind that belongs to another project.
    pub plural: Option<String>,
    /// The type of a kind that belongs to another project.
    pub external: ExternalType,
    /// Whether to generate manifests.
    pub manifests: bool,
    /// Whether to overwrite the webhooks' existing files.
    pub force: bool,
}

/// The kind in a `delete` request.
#[derive(Clone, Debug)]
pub struct DeleteRequest {
    /// API group without the domain.
    pub group: String,
    /// The API group's domain.
    pub api_domain: Option<String>,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Whether to delete changed files.
    pub force: bool,
}

/// The request of `delete controller`.
#[derive(Clone, Debug)]
pub struct DeleteControllerRequest {
    /// The kind.
    pub kind: DeleteRequest,
    /// The controller's name. Not needed if there is only one.
    pub controller_name: Option<String>,
}

/// The request of `delete webhook`: the given webhooks, or all webhooks if none is given.
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
    /// Versions to delete from the conversion; all if empty.
    pub spoke: Vec<String>,
}

/// How a scaffold change is merged into the project.
#[derive(Clone, Copy, Debug)]
pub struct MergeRequest {
    /// Whether a conflict is an error.
    pub no_conflicts: bool,
    /// Whether to generate manifests after a merge without conflicts.
    pub manifests: bool,
}

/// The request of `update`.
#[derive(Clone, Debug)]
pub struct UpdateRequest {
    /// Deleted scaffolded files, or directories of such files, to restore.
    pub restore: Vec<String>,
    /// Scaffolded files to treat as up to date.
    pub accept: Vec<String>,
    /// How to merge.
    pub merge: MergeRequest,
}

/// The request of a command that generates a product from the manifests.
#[derive(Clone, Copy, Debug)]
pub struct ProductRequest {
    /// How the product is merged with the existing files.
    pub merge: ProductMergeRequest,
    /// Whether to generate the manifests first.
    pub manifests: bool,
}

/// How generated files are merged with the existing ones.
#[derive(Clone, Copy, Debug)]
pub struct ProductMergeRequest {
    /// Whether to only check that the files are up to date.
    pub check: bool,
    /// Whether a conflict is an error.
    pub no_conflicts: bool,
    /// Whether to overwrite files that rbuilder did not write, and to restore deleted ones.
    pub force: bool,
    /// How the plan is shown.
    pub mode: Mode,
}

/// The request of `bundle`.
#[derive(Clone, Debug)]
pub struct BundleRequest {
    /// The operator's version. Defaults to the one in Cargo.toml, or to 0.1.0.
    pub version: Option<String>,
    /// The manager's image. Defaults to the one in config/manager.
    pub image: Option<String>,
    /// The image of the bundle in the catalog. Defaults to a name derived from `image`.
    pub bundle_image: Option<String>,
    /// The catalog's channels to which the version is added; at least one.
    pub channels: Vec<String>,
    /// The package's default channel. Defaults to the one in the catalog, or to the first channel.
    pub default_channel: Option<String>,
    /// The version that is replaced by this one. Defaults to the head of each channel, if it is
    /// lower.
    pub replaces: Option<String>,
    /// Versions that an upgrade to this one skips.
    pub skips: Vec<String>,
    /// Range of versions that an upgrade to this one skips.
    pub skip_range: Option<String>,
    /// Icon to show in catalogs, an SVG file in the project. Defaults to a hexagon.
    pub icon: Option<String>,
    /// How the bundle is generated and merged.
    pub product: ProductRequest,
}
