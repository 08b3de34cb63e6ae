//! Labels shared by scaffolds, charts and bundles.

/// Label of a namespace that contains its name.
pub const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// Label that contains the operator's name, set in the scaffold and the chart.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
