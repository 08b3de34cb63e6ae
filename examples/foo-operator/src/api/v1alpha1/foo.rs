// SPDX-License-Identifier: Apache-2.0

//! `Foo` of `samplecontroller.k8s.io/v1alpha1`.

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// FooSpec defines the desired state of Foo.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    plural = "foos",
    namespaced,
    status = "FooStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Deployment",
        type_ = "string",
        json_path = ".spec.deploymentName"
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas"
    )
)]
// The API server refuses kinds in groups of Kubernetes that do not say who approved them.
#[crd(annotation("api-approved.kubernetes.io", "unapproved, this is a sample"))]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// Name of the Deployment that the Foo keeps.
    pub deployment_name: String,

    /// Number of instances to run; whatever the Deployment has when absent.
    #[kube(validation(minimum = 1, maximum = 10))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// FooStatus defines the observed state of Foo.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// Number of instances that are available, as the Deployment has it.
    #[serde(default)]
    pub available_replicas: i32,
}
