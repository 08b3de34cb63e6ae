//! AdmissionReviews: decoding of requests into typed objects, encoding of responses.

use std::sync::Arc;

use base64::Engine;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::StatusCode;
use kube::core::admission::{AdmissionResponse, Operation};
use serde::Serialize;
use serde_json::{Value, json};

use super::denied::Denied;
use super::routes::{Endpoint, Rejection};
use super::{AdmissionRequest, Warnings, patch};
use crate::object::Object;

/// A boxed defaulting function.
pub(super) type Defaulter<K> =
    Box<dyn Fn(K, Arc<AdmissionRequest>) -> BoxFuture<'static, Result<K, Denied>> + Send + Sync>;

/// A boxed validating function, called with the new and the old object.
pub(super) type Validator<K> = Box<
    dyn Fn(Arc<K>, Option<Arc<K>>, Arc<AdmissionRequest>) -> BoxFuture<'static, Result<Warnings, Denied>>
        + Send
        + Sync,
>;

/// A boxed function that handles raw requests.
pub(crate) type RawHandler =
    Box<dyn Fn(AdmissionRequest) -> BoxFuture<'static, AdmissionResponse> + Send + Sync>;

/// The supported versions of AdmissionReview, which have the same fields.
const API_VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// A decoded AdmissionReview, with its objects separated from the request.
struct Review {
    api_version: String,
    request: Arc<AdmissionRequest>,
    object: Option<Value>,
    old_object: Option<Value>,
}

impl Review {
    fn parse(body: &[u8]) -> Result<Self, Rejection> {
        let bad = |reason: String| Rejection::new(StatusCode::BAD_REQUEST, reason);
        let mut review: Value =
            serde_json::from_slice(body).map_err(|error| bad(format!("invalid JSON: {error}")))?;
        let api_version = review["apiVersion"].as_str().unwrap_or_default().to_owned();
        if review["kind"] != "AdmissionReview" || !API_VERSIONS.contains(&&*api_version) {
            return Err(bad(format!(
                "expected an AdmissionReview of {}, found {} of {api_version:?}",
                API_VERSIONS[0], review["kind"]
            )));
        }
        let mut request = review["request"].take();
        let mut take = |key: &str| {
            request
                .get_mut(key)
                .map(Value::take)
                .filter(|value| !value.is_null())
        };
        let (object, old_object) = (take("object"), take("oldObject"));
        let request = serde_json::from_value(request)
            .map(Arc::new)
            .map_err(|error| bad(format!("invalid `request` in the AdmissionReview: {error}")))?;
        Ok(Self {
            api_version,
            request,
            object,
            old_object,
        })
    }

    /// Returns the body of the response.
    fn respond(&self, decision: Decision) -> Vec<u8> {
        let request = &self.request;
        let mut response = json!({ "uid": request.uid, "allowed": true });
        match decision {
            Decision::Allowed(warnings) if warnings.is_empty() => {}
            Decision::Allowed(warnings) => response["warnings"] = json!(warnings),
            Decision::Patched(patch) => {
                response["patchType"] = json!("JSONPatch");
                response["patch"] = base64::engine::general_purpose::STANDARD.encode(patch).into();
            }
            Decision::Denied(denied) => {
                response["allowed"] = json!(false);
                let kind = &request.kind;
                let status = denied.status_of(&kind.group, &kind.kind, self.name());
                response["status"] = json!(status);
                if !denied.warnings().is_empty() {
                    response["warnings"] = json!(denied.warnings());
                }
            }
        }
        let review =
            json!({ "apiVersion": self.api_version, "kind": "AdmissionReview", "response": response });
        // JSON values always serialize.
        serde_json::to_vec(&review).unwrap_or_default()
    }

    /// Returns the name of the object; empty if the API server has not generated one yet.
    fn name(&self) -> &str {
        let objects = self.object.iter().chain(&self.old_object);
        let mut names = objects.filter_map(|object| object["metadata"]["name"].as_str());
        match &*self.request.name {
            "" => names.next().unwrap_or_default(),
            name => name,
        }
    }
}

enum Decision {
    Allowed(Warnings),
    Patched(Vec<u8>),
    Denied(Denied),
}

/// Decodes the object, or denies the request with status 400.
fn decode<K: Object>(object: &Value) -> Result<K, Denied> {
    K::deserialize(object).map_err(|error| {
        let kind = K::kind(&());
        Denied::with_status(400, "BadRequest", format!("failed to decode {kind}: {error}"))
    })
}

/// Returns an endpoint that calls a defaulting function.
pub(super) fn defaulting_endpoint<K: Object + Serialize>(defaulter: Defaulter<K>) -> Endpoint {
    let defaulter = Arc::new(defaulter);
    Box::new(move |body| {
        let defaulter = Arc::clone(&defaulter);
        async move {
            let review = Review::parse(&body)?;
            let request = Arc::clone(&review.request);
            let decision = match &review.object {
                Some(object) if request.operation != Operation::Delete => {
                    default(&*defaulter, object, &request).await
                }
                _ => Ok(Decision::Allowed(Warnings::new())),
            };
            let decision = decision.unwrap_or_else(Decision::Denied);
            Ok(review.respond(decision))
        }
        .boxed()
    })
}

async fn default<K: Object + Serialize>(
    defaulter: &Defaulter<K>,
    object: &Value,
    request: &Arc<AdmissionRequest>,
) -> Result<Decision, Denied> {
    let failed = |error: serde_json::Error| Denied::with_status(500, "InternalError", error.to_string());
    let typed: K = decode(object)?;
    let before = serde_json::to_value(&typed).map_err(failed)?;
    let after = defaulter(typed, Arc::clone(request)).await?;
    let after = serde_json::to_value(&after).map_err(failed)?;
    let defaulted = patch::carry_over(object, &before, &after);
    Ok(match patch::json_patch_between(object, &defaulted) {
        Some(patch) => Decision::Patched(patch),
        None => Decision::Allowed(Warnings::new()),
    })
}

/// Returns an endpoint that calls a validating function.
pub(super) fn validating_endpoint<K: Object>(validator: Validator<K>) -> Endpoint {
    let validator = Arc::new(validator);
    Box::new(move |body| {
        let validator = Arc::clone(&validator);
        async move {
            let review = Review::parse(&body)?;
            let request = Arc::clone(&review.request);
            let (new, old) = match request.operation {
                Operation::Delete => (&review.old_object, &None),
                _ => (&review.object, &review.old_object),
            };
            let result = match new {
                // The object of a CONNECT request (such as PodExecOptions) is not of this kind.
                Some(new) if request.operation != Operation::Connect => {
                    validate(&*validator, new, old.as_ref(), &request).await
                }
                _ => Ok(Warnings::new()),
            };
            Ok(review.respond(result.map_or_else(Decision::Denied, Decision::Allowed)))
        }
        .boxed()
    })
}

async fn validate<K: Object>(
    validator: &Validator<K>,
    new: &Value,
    old: Option<&Value>,
    request: &Arc<AdmissionRequest>,
) -> Result<Warnings, Denied> {
    let new = Arc::new(decode(new)?);
    let old = old.map(decode).transpose()?.map(Arc::new);
    validator(new, old, Arc::clone(request)).await
}

/// Returns an endpoint that calls a function with raw requests.
pub(super) fn raw_endpoint(handler: RawHandler) -> Endpoint {
    let handler = Arc::new(handler);
    Box::new(move |body| {
        let handler = Arc::clone(&handler);
        async move {
            let review = Review::parse(&body)?;
            let mut request = Arc::unwrap_or_clone(review.request);
            let (version, uid) = (review.api_version, request.uid.clone());
            let bad = |error: serde_json::Error| {
                Rejection::new(
                    StatusCode::BAD_REQUEST,
                    format!("failed to decode object: {error}"),
                )
            };
            request.object = review
                .object
                .map(serde_json::from_value)
                .transpose()
                .map_err(bad)?;
            request.old_object = review
                .old_object
                .map(serde_json::from_value)
                .transpose()
                .map_err(bad)?;
            let mut response = json!(handler(request).await);
            response["uid"] = json!(uid);
            let review = json!({ "apiVersion": version, "kind": "AdmissionReview", "response": response });
            Ok(serde_json::to_vec(&review).unwrap_or_default())
        }
        .boxed()
    })
}
