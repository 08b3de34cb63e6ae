//! AdmissionReviews: requests into typed objects, answers into responses.

use std::sync::Arc;

use base64::Engine;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::StatusCode;
use kube::core::admission::{AdmissionResponse, Operation};
use serde::Serialize;
use serde_json::{Value, json};

use super::denied::Denied;
use super::routes::{Endpoint, Refused};
use super::{AdmissionRequest, Warnings, patch};
use crate::object::Object;

/// Fills in an object.
pub(super) type Defaulter<K> =
    Box<dyn Fn(K, Arc<AdmissionRequest>) -> BoxFuture<'static, Result<K, Denied>> + Send + Sync>;

/// Judges an object and what it replaces.
pub(super) type Validator<K> = Box<
    dyn Fn(Arc<K>, Option<Arc<K>>, Arc<AdmissionRequest>) -> BoxFuture<'static, Result<Warnings, Denied>>
        + Send
        + Sync,
>;

/// Answers a request about any kind.
pub(crate) type RawHandler =
    Box<dyn Fn(AdmissionRequest) -> BoxFuture<'static, AdmissionResponse> + Send + Sync>;

/// The versions of the review in use; both have the same form.
const API_VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// A review as it was sent: what is asked, and the objects that it is asked about.
struct Review {
    api_version: String,
    request: Arc<AdmissionRequest>,
    object: Option<Value>,
    old_object: Option<Value>,
}

impl Review {
    fn read(body: &[u8]) -> Result<Self, Refused> {
        let bad = |reason: String| Refused::new(StatusCode::BAD_REQUEST, reason);
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

    /// The body of the answer.
    fn answer(&self, answer: Answer) -> Vec<u8> {
        let request = &self.request;
        let mut response = json!({ "uid": request.uid, "allowed": true });
        match answer {
            Answer::Allowed(warnings) if warnings.is_empty() => {}
            Answer::Allowed(warnings) => response["warnings"] = json!(warnings),
            Answer::Patched(patch) => {
                response["patchType"] = json!("JSONPatch");
                response["patch"] = base64::engine::general_purpose::STANDARD.encode(patch).into();
            }
            Answer::Denied(denied) => {
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

    /// The name of the object that is asked about; empty while the API server has not made one up yet.
    fn name(&self) -> &str {
        let objects = self.object.iter().chain(&self.old_object);
        let mut names = objects.filter_map(|object| object["metadata"]["name"].as_str());
        match &*self.request.name {
            "" => names.next().unwrap_or_default(),
            name => name,
        }
    }
}

enum Answer {
    Allowed(Warnings),
    Patched(Vec<u8>),
    Denied(Denied),
}

/// The object as its type, or why it is none.
fn typed<K: Object>(object: &Value) -> Result<K, Denied> {
    K::deserialize(object).map_err(|error| {
        let kind = K::kind(&());
        Denied::with_status(400, "BadRequest", format!("failed to decode {kind}: {error}"))
    })
}

/// Asks a defaulter.
pub(super) fn defaulting<K: Object + Serialize>(defaulter: Defaulter<K>) -> Endpoint {
    let defaulter = Arc::new(defaulter);
    Box::new(move |body| {
        let defaulter = Arc::clone(&defaulter);
        async move {
            let review = Review::read(&body)?;
            let request = Arc::clone(&review.request);
            let answer = match &review.object {
                Some(object) if request.operation != Operation::Delete => {
                    default(&*defaulter, object, &request).await
                }
                _ => Ok(Answer::Allowed(Warnings::new())),
            };
            let answer = answer.unwrap_or_else(Answer::Denied);
            Ok(review.answer(answer))
        }
        .boxed()
    })
}

async fn default<K: Object + Serialize>(
    defaulter: &Defaulter<K>,
    object: &Value,
    request: &Arc<AdmissionRequest>,
) -> Result<Answer, Denied> {
    let failed = |error: serde_json::Error| Denied::with_status(500, "InternalError", error.to_string());
    let before: K = typed(object)?;
    let written = serde_json::to_value(&before).map_err(failed)?;
    let after = defaulter(before, Arc::clone(request)).await?;
    let after = serde_json::to_value(&after).map_err(failed)?;
    let defaulted = patch::carry_over(object, &written, &after);
    Ok(match patch::difference(object, &defaulted) {
        Some(patch) => Answer::Patched(patch),
        None => Answer::Allowed(Warnings::new()),
    })
}

/// Asks a validator.
pub(super) fn validating<K: Object>(validator: Validator<K>) -> Endpoint {
    let validator = Arc::new(validator);
    Box::new(move |body| {
        let validator = Arc::clone(&validator);
        async move {
            let review = Review::read(&body)?;
            let request = Arc::clone(&review.request);
            let (new, old) = match request.operation {
                Operation::Delete => (&review.old_object, &None),
                _ => (&review.object, &review.old_object),
            };
            let answer = match new {
                // What connects to an object (a shell, a port) is no object of the kind.
                Some(new) if request.operation != Operation::Connect => {
                    validate(&*validator, new, old.as_ref(), &request).await
                }
                _ => Ok(Warnings::new()),
            };
            let answer = answer.map_or_else(Answer::Denied, Answer::Allowed);
            Ok(review.answer(answer))
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
    let new = Arc::new(typed(new)?);
    let old = old.map(typed).transpose()?.map(Arc::new);
    validator(new, old, Arc::clone(request)).await
}

/// Asks a function that reads requests itself.
pub(super) fn answering(handler: RawHandler) -> Endpoint {
    let handler = Arc::new(handler);
    Box::new(move |body| {
        let handler = Arc::clone(&handler);
        async move {
            let review = Review::read(&body)?;
            let mut request = Arc::unwrap_or_clone(review.request);
            let (version, uid) = (review.api_version, request.uid.clone());
            let bad = |error: serde_json::Error| {
                Refused::new(
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
            let answer = json!({ "apiVersion": version, "kind": "AdmissionReview", "response": response });
            Ok(serde_json::to_vec(&answer).unwrap_or_default())
        }
        .boxed()
    })
}
