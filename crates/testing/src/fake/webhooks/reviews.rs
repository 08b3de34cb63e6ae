//! The reviews of one request, with their answers.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::{Value, json};

use super::handler::WebhookHandler;
use crate::fake::failure::Failure;

/// A call of a webhook.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// What distinguishes the call from others with the same request: the configuration, the webhook,
    /// and the round.
    pub(super) key: (String, String, usize),
    pub(super) url: String,
    pub(super) path: String,
    pub(super) timeout: Duration,
    /// An `AdmissionRequest` without its uid.
    pub(super) request: Value,
}

/// The `AdmissionResponse` of a webhook, or why there is none.
pub(super) type Answer = Result<Value, String>;

/// The reviews of one request.
#[derive(Debug)]
pub(in crate::fake) struct Reviews {
    /// `None` if no webhooks are called.
    handler: Option<WebhookHandler>,
    answered: RefCell<Vec<(Call, Answer)>>,
    /// The call without which the request cannot be processed any further.
    pending: RefCell<Option<Call>>,
}

impl Reviews {
    pub(in crate::fake) fn new(handler: Option<WebhookHandler>) -> Self {
        Self {
            handler,
            answered: RefCell::default(),
            pending: RefCell::default(),
        }
    }

    pub(super) fn are_enabled(&self) -> bool {
        self.handler.is_some()
    }

    /// Returns whether the request was abandoned because it needs an answer.
    pub(in crate::fake) fn is_pending(&self) -> bool {
        self.pending.borrow().is_some()
    }

    /// Returns the noted answer to a call.
    ///
    /// # Errors
    /// Returns a failure with which the request must be abandoned if there is no answer yet.
    pub(super) fn ask(&self, call: Call) -> Result<Answer, Failure> {
        let answered = self.answered.borrow();
        if let Some((_, answer)) = answered.iter().find(|(asked, _)| *asked == call) {
            return Ok(answer.clone());
        }
        *self.pending.borrow_mut() = Some(call);
        Err(Failure::of_code(500, "the request waits for a webhook"))
    }

    /// Calls the webhook that the request waits for, and notes the answer. Returns false if it waits for
    /// none.
    pub(in crate::fake) async fn answer_pending(&mut self) -> bool {
        let pending = self.pending.get_mut().take();
        let (Some(call), Some(handler)) = (pending, &self.handler) else {
            return false;
        };
        let answer = answer(handler, &call).await;
        self.answered.get_mut().push((call, answer));
        true
    }
}

async fn answer(handler: &WebhookHandler, call: &Call) -> Answer {
    let uid = handler.uid();
    let mut request = call.request.clone();
    request["uid"] = uid.clone().into();
    let review =
        json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request });
    let replied = handler.handle(&call.path, review.to_string().into_bytes());
    let Ok((code, body)) = tokio::time::timeout(call.timeout, replied).await else {
        let (url, timeout) = (&call.url, call.timeout.as_secs());
        return Err(format!(
            "failed to call webhook: Post \"{url}?timeout={timeout}s\": context deadline exceeded"
        ));
    };
    if code != 200 {
        let said = describe_status(code, &String::from_utf8_lossy(&body));
        return Err(format!("failed to call webhook: {said}"));
    }
    let review: Value =
        serde_json::from_slice(&body).map_err(|error| format!("failed to call webhook: {error}"))?;
    read_response(review, &uid).map_err(|why| format!("received invalid webhook response: {why}"))
}

/// Returns the `AdmissionResponse` of a review.
fn read_response(mut review: Value, uid: &str) -> Result<Value, String> {
    let response = review["response"].take();
    if response.is_null() {
        return Err("webhook response was absent".to_owned());
    }
    if response["uid"] != uid {
        let found = response["uid"].as_str().unwrap_or_default();
        return Err(format!("expected response.uid=\"{uid}\", got \"{found}\""));
    }
    if !response["patch"].is_null() && response["patchType"].is_null() {
        return Err("webhook returned response.patch but not response.patchType".to_owned());
    }
    Ok(response)
}

/// Describes an HTTP error in the words of the server's client.
fn describe_status(code: u16, body: &str) -> String {
    match code {
        404 => "the server could not find the requested resource".to_owned(),
        500.. => format!(
            "an error on the server ({:?}) has prevented the request from succeeding",
            body.trim()
        ),
        413 => format!("Request entity too large: {}", body.trim()),
        _ => "the server rejected our request for an unknown reason".to_owned(),
    }
}
