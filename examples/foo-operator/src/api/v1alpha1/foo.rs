// SPDX-License-Identifier: Apache-2.0

//! The Foo API in version v1alpha1 of the samplecontroller.k8s.io group.

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
    doc = "Foo is the schema for the foos API.",
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
// The API server refuses CRDs in groups of Kubernetes without this annotation.
#[crd(annotation("api-approved.kubernetes.io", "unapproved, this is a sample"))]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// deploymentName is the name of the Deployment that the Foo keeps.
    pub deployment_name: String,

    /// replicas is the number of instances to run. When absent it is left to others, such as an autoscaler.
    #[kube(validation(minimum = 1, maximum = 10))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// FooStatus defines the observed state of Foo.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// availableReplicas is the number of available replicas of the Deployment.
    #[serde(default)]
    pub available_replicas: i32,
}
