//! Decodes the objects in AdmissionReviews, and encodes responses.

use std::sync::Arc;

use base64::Engine;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::StatusCode;
use kube::core::admission::{AdmissionResponse, Operation};
use serde::Serialize;
use serde_json::{Value, json};

use super::denied::Denied;
use super::json_size::estimate_decoded;
use super::memory::Reservation;
use super::received::{Answer, Received};
use super::routes::{Endpoint, Rejection};
use super::unconverted::Mark;
use super::{AdmissionRequest, Warnings, patch};
use crate::object::{FieldError, Object, decode_value};

pub(super) type Defaulter<K> =
    Box<dyn Fn(K, Arc<AdmissionRequest>) -> BoxFuture<'static, Result<K, Denied>> + Send + Sync>;

/// Called with the new object first, then the old one.
pub(super) type Validator<K> = Box<
    dyn Fn(Arc<K>, Option<Arc<K>>, Arc<AdmissionRequest>) -> BoxFuture<'static, Result<Warnings, Denied>>
        + Send
        + Sync,
>;

pub(crate) type RawHandler =
    Box<dyn Fn(AdmissionRequest) -> BoxFuture<'static, AdmissionResponse> + Send + Sync>;

/// Supported versions of AdmissionReview, which have the same fields.
const API_VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// Memory for decoding a review, relative to its estimated size. Accounts for the JSON and the
/// typed objects.
const DECODED: usize = 2;
/// Like [`DECODED`], but with defaults, which take the serialized object before and after setting
/// them.
const DEFAULTED: usize = 4;

/// A decoded AdmissionReview. Its objects were moved out of the request.
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
        // Serializing a JSON value can't fail.
        serde_json::to_vec(&review).unwrap_or_default()
    }

    /// Empty if the name isn't generated yet.
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

enum Old<K> {
    Absent,
    Decoded(Arc<K>),
    /// The stored object doesn't match the Rust type.
    Undecodable(FieldError),
}

impl<K: Object> Old<K> {
    fn decode(object: Option<&Value>) -> Self {
        match object.map(decode_value) {
            None => Self::Absent,
            Some(Ok(object)) => Self::Decoded(Arc::new(object)),
            Some(Err(error)) => Self::Undecodable(error),
        }
    }
}

/// An object that can't be passed to the functions of a webhook.
struct Unreadable {
    /// Why the object does not match the Rust type of the version that it was written in.
    error: FieldError,
}

fn decode_new<K: Object>(object: &Value) -> Result<K, Unreadable> {
    let decoded = decode_value(object);
    // An unconverted object belongs to a different version, even if it can be decoded.
    match Mark::of(object) {
        Some(Mark { error, .. }) => Err(Unreadable { error }),
        None => decoded.map_err(|error| Unreadable { error }),
    }
}

/// Returns a warning for a request that is allowed although the stored object doesn't match the
/// Rust type.
///
/// Denying it would keep users from deleting or repairing the object, or from removing its
/// finalizers.
fn warn_undecodable<K: Object>(error: &FieldError, consequence: &str) -> String {
    let kind = K::kind(&());
    format!("the stored {kind} cannot be decoded, {consequence}: {error}")
}

/// Ignores metadata and status.
fn have_same_content(new: &Value, old: &Value) -> bool {
    let content = |object: &Value| {
        let mut fields = object.as_object().cloned().unwrap_or_default();
        fields.retain(|name, _| !matches!(name.as_str(), "metadata" | "status"));
        fields
    };
    content(new) == content(old)
}

/// Returns a warning if an update of an undecodable object should be allowed. The stored object
/// must be undecodable as well, and only its metadata and status may change (e.g. to remove a
/// finalizer).
fn allow_undecodable<K: Object>(review: &Review, error: &FieldError) -> Option<Warnings> {
    let (new, old) = (review.object.as_ref()?, review.old_object.as_ref()?);
    let is_stored = matches!(Old::<K>::decode(Some(old)), Old::Undecodable(_));
    let allowed = is_stored && have_same_content(new, old);
    allowed.then(|| {
        vec![warn_undecodable::<K>(
            error,
            "this update of its metadata is not checked",
        )]
    })
}

/// Decodes a review, after reserving memory for `copies` times its estimated size.
async fn read_review(received: &Received, copies: usize) -> Result<(Review, Reservation), Rejection> {
    let work = received
        .reserve(copies * estimate_decoded(&received.body))
        .await?;
    Ok((Review::parse(&received.body)?, work))
}

/// Denies a request without the object that its operation needs, as controller-runtime does. The API
/// server always sends it, so nothing is known about what would be allowed.
fn deny_absent(field: &str) -> Denied {
    let message = format!("the review has no `{field}`: there is nothing to decide about");
    Denied::with_status(400, "BadRequest", message)
}

pub(super) fn defaulting_endpoint<K: Object + Serialize>(defaulter: Defaulter<K>) -> Endpoint {
    let defaulter = Arc::new(defaulter);
    Box::new(move |received| {
        let defaulter = Arc::clone(&defaulter);
        async move {
            let (review, work) = read_review(&received, DEFAULTED).await?;
            let decision = match (&review.request.operation, &review.object) {
                (Operation::Delete, _) | (Operation::Connect, None) => Ok(Decision::Allowed(Warnings::new())),
                (_, Some(object)) => default(&*defaulter, object, &review).await,
                (_, None) => Err(deny_absent("object")),
            };
            let decision = decision.unwrap_or_else(Decision::Denied);
            Ok(Answer::new(review.respond(decision), work))
        }
        .boxed()
    })
}

async fn default<K: Object + Serialize>(
    defaulter: &Defaulter<K>,
    object: &Value,
    review: &Review,
) -> Result<Decision, Denied> {
    let failed = |error: serde_json::Error| Denied::with_status(500, "InternalError", error.to_string());
    let typed: K = match decode_new(object) {
        Ok(typed) => typed,
        // The API server will validate the object anyway and report every invalid field; if we
        // denied it here, users would see only one.
        Err(Unreadable { error }) => {
            let kind = K::kind(&());
            let warning = format!("defaults are not set, the {kind} cannot be decoded: {error}");
            return Ok(Decision::Allowed(vec![warning]));
        }
    };
    let before = serde_json::to_value(&typed).map_err(failed)?;
    let after = defaulter(typed, Arc::clone(&review.request)).await?;
    let after = serde_json::to_value(&after).map_err(failed)?;
    let defaulted = patch::carry_over(object, &before, &after);
    Ok(match patch::json_patch_between(object, &defaulted) {
        Some(patch) => Decision::Patched(patch),
        None => Decision::Allowed(Warnings::new()),
    })
}

pub(super) fn validating_endpoint<K: Object>(validator: Validator<K>) -> Endpoint {
    let validator = Arc::new(validator);
    Box::new(move |received| {
        let validator = Arc::clone(&validator);
        async move {
            let (review, work) = read_review(&received, DECODED).await?;
            let result = match review.request.operation {
                Operation::Delete => validate_deletion(&*validator, &review).await,
                // CONNECT requests contain an object of a different kind, such as PodExecOptions.
                Operation::Connect => Ok(Warnings::new()),
                _ => validate(&*validator, &review).await,
            };
            let decision = result.map_or_else(Decision::Denied, Decision::Allowed);
            Ok(Answer::new(review.respond(decision), work))
        }
        .boxed()
    })
}

async fn validate_deletion<K: Object>(validator: &Validator<K>, review: &Review) -> Result<Warnings, Denied> {
    match Old::decode(review.old_object.as_ref()) {
        Old::Absent => Err(deny_absent("oldObject")),
        Old::Decoded(object) => {
            let old = Some(Arc::clone(&object));
            // Validators expect an object, and treat a request without an old one as a creation.
            // Since a deletion only contains the old object, pass it for both.
            validator(object, old, Arc::clone(&review.request)).await
        }
        Old::Undecodable(error) => Ok(vec![warn_undecodable::<K>(&error, "its deletion is not checked")]),
    }
}

async fn validate<K: Object>(validator: &Validator<K>, review: &Review) -> Result<Warnings, Denied> {
    let Some(object) = &review.object else {
        return Err(deny_absent("object"));
    };
    let new = match decode_new(object) {
        Ok(new) => Arc::new(new),
        Err(Unreadable { error }) => {
            let allowed = allow_undecodable::<K>(review, &error);
            return allowed.ok_or_else(|| Denied::undecodable(&error));
        }
    };
    let (old, warning) = match Old::decode(review.old_object.as_ref()) {
        Old::Absent => (None, None),
        Old::Decoded(old) => (Some(old), None),
        Old::Undecodable(error) => {
            // Users must be able to repair an undecodable object.
            let warning = warn_undecodable::<K>(&error, "the new object is checked without it");
            (None, Some(warning))
        }
    };
    let mut warnings = validator(new, old, Arc::clone(&review.request)).await?;
    warnings.extend(warning);
    Ok(warnings)
}

pub(super) fn raw_endpoint(handler: RawHandler) -> Endpoint {
    let handler = Arc::new(handler);
    Box::new(move |received| {
        let handler = Arc::clone(&handler);
        async move {
            let (review, work) = read_review(&received, DECODED).await?;
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
            Ok(Answer::new(serde_json::to_vec(&review).unwrap_or_default(), work))
        }
        .boxed()
    })
}
