//! Labels shared by scaffolds, charts and bundles.

/// Namespace label whose value is the name of the namespace. Set by Kubernetes.
pub const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// Label with the operator's name, set in the scaffold and the chart.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
