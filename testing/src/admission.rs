//! Requests for calling a webhook's functions from a test.

use kube::api::DynamicObject;
use kube::core::admission::{AdmissionRequest, Operation};
use kube::core::{GroupVersionKind, GroupVersionResource, TypeMeta};

/// A request of a user `test` to do this to some object, as the functions of a `rbuilder::Webhook` get it.
///
/// Kind, resource and name are empty; a function that looks at them wants them set:
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
