//! Labels that scaffolds, charts and bundles share.

/// Label of a namespace that contains its name.
pub const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// Label with the name of the operator, which the scaffold and the chart set.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
