//! The Rust half of the oracle, `testdata/oracle/rust`, both compiled and as text.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use rbuilder_generator::SourceSet;

#[path = "../../../../testdata/oracle/rust/src/lib.rs"]
pub mod apis;

/// Returns each kind in all of its versions.
pub fn compiled() -> Vec<CustomResourceDefinition> {
    use apis::versions::{v1, v1alpha1, v1alpha2, v1beta1};
    vec![
        apis::bounds::Bound::crd(),
        apis::collections::Collection::crd(),
        apis::docs::Doc::crd(),
        apis::enums::Enum::crd(),
        apis::items::Item::crd(),
        apis::kubernetes::Kubernetes::crd(),
        apis::named::Bare::crd(),
        apis::named::Full::crd(),
        apis::named::Gateway::crd(),
        apis::named::HTTPRoute::crd(),
        apis::named::Ingress::crd(),
        apis::named::Proxy::crd(),
        apis::named::Scaled::crd(),
        apis::named::TestQuota::crd(),
        apis::open::Open::crd(),
        apis::presence::Presence::crd(),
        apis::rules::Rule::crd(),
        apis::scalars::Scalar::crd(),
        apis::structs::Structure::crd(),
        apis::topology::Topology::crd(),
        apis::values::Value::crd(),
        apis::workloads::Workload::crd(),
        v1::VersionedResource::crd(),
        v1beta1::VersionedResource::crd(),
        v1alpha2::VersionedResource::crd(),
        v1alpha1::VersionedResource::crd(),
    ]
}

/// Returns the files of the oracle.
pub fn sources() -> SourceSet {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/rust");
    super::files::below(root, &["toml", "rs"]).into_iter().fold(
        SourceSet::default(),
        |mut sources, (path, text)| {
            sources.insert(path, text);
            sources
        },
    )
}
