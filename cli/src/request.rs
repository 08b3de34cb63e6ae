//! What scaffolding commands are asked to do.
//!
//! The command line is parsed into these values, and `import` makes them itself. Nothing below knows
//! flags, except for the names in messages.

use std::path::PathBuf;

use crate::project::Image;

/// The request of `create api`.
#[derive(Clone, Debug, Default)]
pub struct ApiRequest {
    /// API group without the domain.
    pub group: String,
    /// Domain of the API group. Defaults to the recorded one of the kind, or to that of the project.
    pub api_domain: Option<String>,
    /// API version. Empty for the versions of a CRD.
    pub version: String,
    /// Kind. May be empty if a CRD has it.
    pub kind: String,
    /// File with the CRD of the kind; `-` for standard input.
    pub from_crd: Option<PathBuf>,
    /// Plural. Defaults to the English one.
    pub plural: Option<String>,
    /// Whether objects are namespaced. Defaults to true.
    pub namespaced: Option<bool>,
    /// Whether to scaffold the types. By default, the project decides.
    pub resource: Option<bool>,
    /// Whether to scaffold a controller. By default, the project decides.
    pub controller: Option<bool>,
    /// The image that the controller runs.
    pub image: Option<Image>,
    /// Name of the controller.
    pub controller_name: Option<String>,
    /// The type of a kind of another project.
    pub external: ExternalType,
    /// Whether to generate manifests.
    pub manifests: bool,
    /// Whether to overwrite existing files of the kind.
    pub force: bool,
}

/// The type of a kind that another project defines. Empty for other kinds.
#[derive(Clone, Debug, Default)]
pub struct ExternalType {
    /// Rust path.
    pub path: Option<String>,
    /// Crate with its version.
    pub package: Option<String>,
    /// Domain of the API group.
    pub domain: Option<String>,
}

/// The request of `create webhook`.
#[derive(Clone, Debug, Default)]
pub struct WebhookRequest {
    /// API group without the domain.
    pub group: String,
    /// Domain of the API group.
    pub api_domain: Option<String>,
    /// API version, which is the hub of a conversion.
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
    /// URL path of the defaulting webhook.
    pub defaulting_path: Option<String>,
    /// URL path of the validating webhook.
    pub validation_path: Option<String>,
    /// Plural of a kind of another project.
    pub plural: Option<String>,
    /// The type of a kind of another project.
    pub external: ExternalType,
    /// Whether to generate manifests.
    pub manifests: bool,
    /// Whether to overwrite existing files of the webhooks.
    pub force: bool,
}

/// The kind of a request of `delete`.
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
    /// Whether to delete changed files.
    pub force: bool,
}

/// The request of `delete controller`.
#[derive(Clone, Debug)]
pub struct DeleteControllerRequest {
    /// The kind.
    pub kind: DeleteRequest,
    /// Name of the controller. Not needed if there is only one.
    pub controller_name: Option<String>,
}

/// The request of `delete webhook`: the given webhooks, or all if none is given.
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
