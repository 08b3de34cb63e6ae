use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

use crate::v1::Template;

/// Loses the metadata of its template, with a warning.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "parts.k8s.io",
    version = "v2",
    kind = "Widget",
    namespaced,
    category = "all",
    shortname = "wd",
    selectable = ".spec.template.value"
)]
#[crd(conversion(service_name = "convert", service_namespace = "widgets", service_port = 8443, ca_bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJiekNDQVJXZ0F3SUJBZ0lVWjY2WGhYMXRNOEpFSU9rWmxISlVub2JWejBnd0NnWUlLb1pJemowRUF3SXcKRERFS01BZ0dBMVVFQXd3QllUQWdGdzB5TmpFeE1qRXdOelV6TURWYUdBOHlNVEkyTVRBeU9EQTNOVE13TlZvdwpEREVLTUFnR0ExVUVBd3dCWVRCWk1CTUdCeXFHU000OUFnRUdDQ3FHU000OUF3RUhBMElBQkR2VnU0Y3o1WnZqCnZzREpUWXJTVW9Bc2R0bWsxUDAvMkRENnJXL1hYZHErUVQycWJWcFlpRHBHaFIrZlhUMW9LNFMvRDBJaTJ0Q0sKV2lPcVdwZHoxQ0NqVXpCUk1CMEdBMVVkRGdRV0JCUTVzajVBanJWb2RpRVEzL0VjMXFFWStJM0RYekFmQmdOVgpIU01FR0RBV2dCUTVzajVBanJWb2RpRVEzL0VjMXFFWStJM0RYekFQQmdOVkhSTUJBZjhFQlRBREFRSC9NQW9HCkNDcUdTTTQ5QkFNQ0EwZ0FNRVVDSVFEMHp3ZHFGZjBhQTMyS3ZGU3dDa3ZNQStzYTdoNHlWeGdITGI0aTIwSGEKVFFJZ2ZmTXk5alY5aGpTOXRlV0xtcUQyNFhkT0ZZWUpLbTZ3YW1uRCtYSDV0QzA9Ci0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"))]
pub struct WidgetSpec {
    pub template: Template,
}

/// Converted as kubebuilder scaffolds it.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "parts.example.com", version = "v1", kind = "Plain")]
#[crd(conversion)]
pub struct PlainSpec {
    pub value: i32,
}

/// Converted by somebody far away.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "parts.example.com", version = "v1", kind = "Far")]
#[crd(conversion(url = "https://example.com:8443/convert", review_versions = ["v1", "v1beta1"]))]
pub struct FarSpec {
    pub value: i32,
}

/// Not converted.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "parts.example.com", version = "v1", kind = "Same")]
#[crd(conversion(strategy = "None"))]
pub struct SameSpec {
    pub value: i32,
}
