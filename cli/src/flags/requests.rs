//! Requests from flags.

use super::{
    ApiFlags, BundleFlags, DeleteControllerFlags, DeleteKindFlags, DeleteWebhookFlags, ExternalFlags,
    ImageFlags, MergeFlags, ProductFlags, ProductMergeFlags, UpdateFlags, WebhookFlags,
};
use crate::project::Image;
use crate::request::{
    ApiRequest, BundleRequest, DeleteControllerRequest, DeleteRequest, DeleteWebhookRequest, ExternalType,
    MergeRequest, ProductMergeRequest, ProductRequest, UpdateRequest, WebhookRequest,
};

impl From<ApiFlags> for ApiRequest {
    fn from(flags: ApiFlags) -> ApiRequest {
        ApiRequest {
            group: flags.group,
            api_domain: flags.api_domain,
            version: flags.version,
            kind: flags.kind,
            from_crd: flags.from_crd,
            plural: flags.plural,
            namespaced: flags.namespaced,
            resource: flags.resource,
            controller: flags.controller,
            image: flags.image.image(),
            controller_name: flags.controller_name,
            external: flags.external.into(),
            manifests: flags.manifests,
            force: flags.force,
        }
    }
}

impl ImageFlags {
    /// Returns the image that the flags request.
    fn image(self) -> Option<Image> {
        Some(Image {
            name: self.name?,
            command: self.command,
            port: self.port,
            run_as_user: self.run_as_user,
        })
    }
}

impl From<ExternalFlags> for ExternalType {
    fn from(flags: ExternalFlags) -> ExternalType {
        ExternalType {
            path: flags.path,
            package: flags.package,
            domain: flags.domain,
        }
    }
}

impl From<WebhookFlags> for WebhookRequest {
    fn from(flags: WebhookFlags) -> WebhookRequest {
        WebhookRequest {
            group: flags.group,
            api_domain: flags.api_domain,
            version: flags.version,
            kind: flags.kind,
            defaulting: flags.defaulting,
            validation: flags.validation,
            conversion: flags.conversion,
            spoke: flags.spoke,
            defaulting_path: flags.defaulting_path,
            validation_path: flags.validation_path,
            plural: flags.plural,
            external: flags.external.into(),
            manifests: flags.manifests,
            force: flags.force,
        }
    }
}

impl From<DeleteKindFlags> for DeleteRequest {
    fn from(flags: DeleteKindFlags) -> DeleteRequest {
        DeleteRequest {
            group: flags.group,
            api_domain: flags.api_domain,
            version: flags.version,
            kind: flags.kind,
            force: flags.force,
        }
    }
}

impl From<DeleteControllerFlags> for DeleteControllerRequest {
    fn from(flags: DeleteControllerFlags) -> DeleteControllerRequest {
        DeleteControllerRequest {
            kind: flags.kind.into(),
            controller_name: flags.controller_name,
        }
    }
}

impl From<DeleteWebhookFlags> for DeleteWebhookRequest {
    fn from(flags: DeleteWebhookFlags) -> DeleteWebhookRequest {
        DeleteWebhookRequest {
            kind: flags.kind.into(),
            defaulting: flags.defaulting,
            validation: flags.validation,
            conversion: flags.conversion,
            spoke: flags.spoke,
        }
    }
}

impl From<MergeFlags> for MergeRequest {
    fn from(flags: MergeFlags) -> MergeRequest {
        MergeRequest {
            no_conflicts: flags.no_conflicts,
            manifests: flags.manifests,
        }
    }
}

impl From<UpdateFlags> for UpdateRequest {
    fn from(flags: UpdateFlags) -> UpdateRequest {
        UpdateRequest {
            restore: flags.restore,
            accept: flags.accept,
            merge: flags.merge.into(),
        }
    }
}

impl From<ProductMergeFlags> for ProductMergeRequest {
    fn from(flags: ProductMergeFlags) -> ProductMergeRequest {
        ProductMergeRequest {
            check: flags.check,
            no_conflicts: flags.no_conflicts,
            force: flags.force,
            mode: flags.plan.mode(),
        }
    }
}

impl From<ProductFlags> for ProductRequest {
    fn from(flags: ProductFlags) -> ProductRequest {
        ProductRequest {
            merge: flags.merge.into(),
            manifests: flags.manifests,
        }
    }
}

impl From<BundleFlags> for BundleRequest {
    fn from(flags: BundleFlags) -> BundleRequest {
        BundleRequest {
            version: flags.version,
            image: flags.image,
            bundle_image: flags.bundle_image,
            channels: flags.channels,
            default_channel: flags.default_channel,
            replaces: flags.replaces,
            skips: flags.skips,
            skip_range: flags.skip_range,
            icon: flags.icon,
            product: flags.product.into(),
        }
    }
}
