//! Admission requests for unit tests of webhook functions.

use kube::api::DynamicObject;
use kube::core::admission::{AdmissionRequest, Operation};
use kube::core::{GroupVersionKind, GroupVersionResource, TypeMeta};

/// Builds an admission request from the user `test`, of the kind that a `rbuilder::Webhook` passes
/// to its functions.
///
/// Kind, resource and name are left empty. Set them if the function under test reads them:
///
/// ```
/// use rbuilder::testing::admission_request;
/// use rbuilder::webhook::Operation;
///
/// let mut request = admission_request(Operation::Create);
/// request.dry_run = true;
/// assert_eq!(request.user_info.username.as_deref(), Some("test"));
/// ```
pub fn admission_request(operation: Operation) -> AdmissionRequest<DynamicObject> {
    let mut request = AdmissionRequest {
        types: TypeMeta {
            api_version: "admission.k8s.io/v1".to_owned(),
            kind: "AdmissionReview".to_owned(),
        },
        uid: String::new(),
        kind: GroupVersionKind::gvk("", "", ""),
        resource: GroupVersionResource::gvr("", "", ""),
        sub_resource: None,
        request_kind: None,
        request_resource: None,
        request_sub_resource: None,
        name: String::new(),
        namespace: None,
        operation,
        user_info: Default::default(),
        object: None::<DynamicObject>,
        old_object: None,
        dry_run: false,
        options: None,
    };
    request.user_info.username = Some("test".to_owned());
    request
}
