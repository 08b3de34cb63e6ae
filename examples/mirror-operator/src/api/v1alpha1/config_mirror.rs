// SPDX-License-Identifier: Apache-2.0

//! The ConfigMirror API in version v1alpha1 of the mirror.example.com group.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// ConfigMirrorSpec defines the desired state of ConfigMirror.
#[derive(CustomResource, CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "mirror.example.com",
    version = "v1alpha1",
    kind = "ConfigMirror",
    plural = "configmirrors",
    doc = "ConfigMirror is the schema for the configmirrors API.",
    namespaced,
    status = "ConfigMirrorStatus",
    derive = "PartialEq",
    printcolumn(name = "ConfigMap", type_ = "string", json_path = ".spec.configMap"),
    printcolumn(
        name = "Mirrored",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Mirrored\")].status"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMirrorSpec {
    /// configMap is the name of the ConfigMap to mirror, in the namespace of the ConfigMirror.
    #[kube(validation(min_length = 1))]
    pub config_map: String,
}

/// ConfigMirrorStatus defines the observed state of ConfigMirror.
#[derive(CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMirrorStatus {
    /// conditions represent the current state of the ConfigMirror resource.
    #[kube(list_type = "map", list_map_keys = ["type"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
