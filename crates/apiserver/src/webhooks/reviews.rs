//! The reviews needed by a request, and their responses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use serde_json::{Value, json};

use super::handler::WebhookHandler;
use crate::failure::Failure;

#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Configuration, webhook and round. Included because two webhooks may be asked the same
    /// question.
    pub(super) key: (String, String, usize),
    pub(super) url: String,
    pub(super) path: String,
    pub(super) timeout: Duration,
    pub(super) question: Question,
}

#[derive(Clone, Debug)]
pub(super) enum Question {
    /// An `AdmissionRequest`, not including a uid yet.
    Admission(Value),
    /// A `ConversionRequest`, not including a uid yet, and the version of `ConversionReview` to
    /// wrap it in.
    Conversion { version: &'static str, request: Value },
}

/// A webhook's response, or the reason for its absence.
pub(super) type Answer = Result<Value, String>;

impl Call {
    fn identity(&self) -> String {
        let request = match &self.question {
            Question::Admission(request) | Question::Conversion { request, .. } => request,
        };
        format!("{:?} {request}", self.key)
    }
}

/// The reviews needed by a request, with the responses received so far.
#[derive(Debug)]
pub(crate) struct Reviews {
    /// `None` disables webhooks.
    handler: Option<WebhookHandler>,
    answered: RefCell<BTreeMap<String, Answer>>,
    /// Calls that block further processing.
    pending: RefCell<Vec<Call>>,
}

impl Reviews {
    pub(crate) fn new(handler: Option<WebhookHandler>) -> Self {
        Self {
            handler,
            answered: RefCell::default(),
            pending: RefCell::default(),
        }
    }

    pub(crate) fn set_handler(&mut self, handler: Option<WebhookHandler>) {
        self.handler = handler;
    }

    pub(crate) fn forget(&mut self) {
        self.answered.get_mut().clear();
    }

    pub(crate) fn are_enabled(&self) -> bool {
        self.handler.is_some()
    }

    /// Whether processing was aborted due to a missing response.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// Returns the recorded response. If there is none yet, records the call as pending and fails
    /// to abort the attempt.
    pub(super) fn ask(&self, call: Call) -> Result<Answer, Failure> {
        if let Some(answer) = self.answered.borrow().get(&call.identity()) {
            return Ok(answer.clone());
        }
        self.pending.borrow_mut().push(call);
        Err(Failure::of_code(500, "the request waits for a webhook"))
    }

    /// Calls the pending webhooks. Returns false if there are none.
    pub(crate) async fn answer_pending(&mut self) -> bool {
        let pending = std::mem::take(self.pending.get_mut());
        let Some(handler) = self.handler.as_ref().filter(|_| !pending.is_empty()) else {
            return false;
        };
        for call in pending {
            // The same call may be pending more than once.
            if let Entry::Vacant(place) = self.answered.get_mut().entry(call.identity()) {
                place.insert(answer(handler, &call).await);
            }
        }
        true
    }
}

async fn answer(handler: &WebhookHandler, call: &Call) -> Answer {
    let uid = handler.uid();
    match &call.question {
        Question::Admission(request) => {
            let review = review("AdmissionReview", "admission.k8s.io/v1", request, &uid);
            let answered = post(handler, call, &review).await;
            let answered = answered.map_err(|why| format!("failed to call webhook: {why}"))?;
            read_response(answered, &uid).map_err(|why| format!("received invalid webhook response: {why}"))
        }
        Question::Conversion { version, request } => {
            let version = format!("apiextensions.k8s.io/{version}");
            let review = review("ConversionReview", &version, request, &uid);
            read_conversion(post(handler, call, &review).await?, &version, &uid)
        }
    }
}

fn review(kind: &str, version: &str, request: &Value, uid: &str) -> Value {
    let mut request = request.clone();
    request["uid"] = uid.into();
    json!({ "kind": kind, "apiVersion": version, "request": request })
}

async fn post(handler: &WebhookHandler, call: &Call, review: &Value) -> Answer {
    let replied = handler.handle(&call.path, review.to_string().into_bytes());
    let Ok((code, body)) = tokio::time::timeout(call.timeout, replied).await else {
        let (url, timeout) = (&call.url, call.timeout.as_secs());
        return Err(format!(
            "Post \"{url}?timeout={timeout}s\": context deadline exceeded"
        ));
    };
    if code != 200 {
        return Err(describe_status(code, &String::from_utf8_lossy(&body)));
    }
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}

fn read_conversion(mut review: Value, version: &str, uid: &str) -> Answer {
    let response = review["response"].take();
    if response.is_null() {
        return Err("no response provided".to_owned());
    }
    // `v1beta1` webhooks may not know about the uid, so the server trusts them.
    if !version.ends_with("/v1beta1") && response["uid"] != uid {
        let found = response["uid"].as_str().unwrap_or_default();
        return Err(format!("expected response.uid=\"{uid}\", got \"{found}\""));
    }
    Ok(response)
}

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

/// Describes an HTTP error like Go's REST client.
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
