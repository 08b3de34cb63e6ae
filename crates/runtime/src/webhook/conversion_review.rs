//! Handles ConversionReviews. Objects are decoded one by one, so that memory usage does not depend
//! on the length of the list.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use http::StatusCode;
use rbuilder_kubernetes::gvk;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::conversion::{AnyConverter, Unconvertible};
use super::json_size::estimate_decoded;
use super::memory::Reservation;
use super::received::{Answer, Received};
use super::routes::{Endpoint, Rejection};
use super::unconverted::{ANNOTATION, Mark, is_being_admitted};
use crate::log_limit::LogLimit;
use crate::metrics::ConversionMetrics;

const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// Yield to other tasks on the same thread after this many bytes.
const YIELD_AFTER: usize = 64 * 1024;

/// Memory for converting an object, relative to its estimated size: the object as written, as
/// serialized by either type, and two more copies for comparing them.
const COPIES: usize = 5;

const ENVELOPE: usize = 4096;

pub(super) struct ConversionEndpoint {
    /// Keyed by group and kind.
    converters: BTreeMap<(String, String), Box<dyn AnyConverter>>,
    metrics: ConversionMetrics,
    failures: LogLimit,
}

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(default)]
    kind: String,
    #[serde(default, rename = "apiVersion")]
    api_version: String,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Request<'a> {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    to: String,
    /// Stays raw, because items are decoded one by one.
    #[serde(borrow)]
    objects: &'a RawValue,
}

impl<'a> Request<'a> {
    fn parse(body: &'a [u8]) -> Result<Self, Rejection> {
        let bad = |reason: String| Rejection::new(StatusCode::BAD_REQUEST, reason);
        let review: Review<'_> =
            serde_json::from_slice(body).map_err(|error| bad(format!("invalid JSON: {error}\n")))?;
        if review.kind != "ConversionReview" || review.api_version != API_VERSION {
            return Err(bad(format!(
                "expected a ConversionReview of {API_VERSION}, found {:?} of {:?}\n",
                review.kind, review.api_version
            )));
        }
        let request = review.request.map_or("null", RawValue::get);
        let request: Self = serde_json::from_str(request)
            .map_err(|error| bad(format!("invalid `request` in the ConversionReview: {error}\n")))?;
        if !request.objects.get().starts_with('[') {
            let reason = "invalid `request` in the ConversionReview: `objects` is not a list\n";
            return Err(bad(reason.to_owned()));
        }
        Ok(request)
    }

    fn objects(&self) -> Items<'a> {
        Items(self.objects.get().strip_prefix('[').unwrap_or_default())
    }

    /// Memory for converting the largest object, plus the response.
    fn estimate(&self) -> usize {
        let sizes = self
            .objects()
            .map_while(Result::ok)
            .map(|object| estimate_decoded(object.get().as_bytes()));
        self.room() + COPIES * sizes.max().unwrap_or_default()
    }

    /// Initial capacity of the response, assuming that its objects are about as large as those in
    /// the request.
    fn room(&self) -> usize {
        let objects = self.objects.get().len();
        objects + objects / 8 + ENVELOPE
    }
}

/// Iterates over the items of a list, starting after the opening bracket. The input must be valid
/// JSON.
struct Items<'a>(&'a str);

impl<'a> Iterator for Items<'a> {
    type Item = Result<&'a RawValue, serde_json::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.trim_start_matches([',', ' ', '\t', '\r', '\n']);
        if text.starts_with(']') {
            return None;
        }
        let mut items = serde_json::Deserializer::from_str(text).into_iter();
        let item = items.next()?;
        self.0 = text.get(items.byte_offset()..).unwrap_or_default();
        Some(item)
    }
}

impl ConversionEndpoint {
    pub(super) fn new(
        converters: BTreeMap<(String, String), Box<dyn AnyConverter>>,
        metrics: ConversionMetrics,
    ) -> Self {
        Self {
            converters,
            metrics,
            failures: LogLimit::default(),
        }
    }

    pub(super) fn boxed(self) -> Endpoint {
        let endpoint = Arc::new(self);
        Box::new(move |received| {
            let endpoint = Arc::clone(&endpoint);
            async move { endpoint.answer(&received).await }.boxed()
        })
    }

    async fn answer(&self, received: &Received) -> Result<Answer, Rejection> {
        // If one of the objects can't be converted, the entire review fails, as the API server
        // expects.
        let request = Request::parse(&received.body)?;
        let mut work = received.reserve(request.estimate()).await?;
        let converted = self.convert_all(&request, received, &mut work).await?;
        self.metrics.answered(converted.is_ok());
        let body = converted.unwrap_or_else(|message| {
            if let Some(left_out) = self.failures.permit() {
                tracing::warn!(error = %message, left_out, "conversion failed");
            }
            let result = json!({ "status": "Failure", "message": message });
            let response = json!({ "uid": request.uid, "result": result });
            let review =
                json!({ "apiVersion": API_VERSION, "kind": "ConversionReview", "response": response });
            review.to_string().into_bytes()
        });
        Ok(Answer::new(body, work))
    }

    /// Converts all objects and returns the response. The inner error identifies the object that
    /// could not be converted, and says why.
    async fn convert_all(
        &self,
        request: &Request<'_>,
        received: &Received,
        work: &mut Reservation,
    ) -> Result<Result<Vec<u8>, String>, Rejection> {
        let uid = Value::from(request.uid.as_str());
        let mut answer = Vec::with_capacity(request.room());
        answer.extend_from_slice(
            format!(
                "{{\"apiVersion\":\"{API_VERSION}\",\"kind\":\"ConversionReview\",\"response\":{{\"uid\":{uid},\
                 \"result\":{{\"status\":\"Success\"}},\"convertedObjects\":["
            )
            .as_bytes(),
        );
        let (mut text, mut since_yield) = (Vec::new(), 0);
        for (index, object) in request.objects().enumerate() {
            let converted = object
                .map_err(|error| format!("objects[{index}] is not an object: {error}"))
                .and_then(|object| self.convert(object, &request.to, &mut text));
            if let Err(message) = converted {
                return Ok(Err(message));
            }
            // Eight more bytes are for the separator and the end of the response.
            make_room(&mut answer, text.len() + 8, received, work)?;
            if index > 0 {
                answer.push(b',');
            }
            answer.extend_from_slice(&text);
            since_yield += text.len();
            text.clear();
            if since_yield > YIELD_AFTER {
                since_yield = 0;
                tokio::task::yield_now().await;
            }
        }
        answer.extend_from_slice(b"]}}");
        Ok(Ok(answer))
    }

    fn convert(&self, object: &RawValue, to: &str, text: &mut Vec<u8>) -> Result<(), String> {
        let written: Value = serde_json::from_str(object.get()).map_err(|error| error.to_string())?;
        let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (version, kind) = (string(&written["apiVersion"]), string(&written["kind"]));
        let group = gvk::group_of(&version);
        let converter = self.converters.get(&(group.to_owned(), kind.clone()));
        let converter =
            converter.ok_or_else(|| format!("no conversion registered for `{kind}` of `{version}`"))?;
        if version == to {
            text.extend_from_slice(object.get().as_bytes());
            return Ok(());
        }
        let name = describe_name(&written);
        let converted = convert_or_relabel(&**converter, written, to)
            .map_err(|error| format!("failed to convert {kind} {name} from {version} to {to}: {error}"))?;
        serde_json::to_writer(text, &converted).map_err(|error| error.to_string())
    }
}

/// Reserves more memory if the response gets larger than expected.
fn make_room(
    answer: &mut Vec<u8>,
    bytes: usize,
    received: &Received,
    work: &mut Reservation,
) -> Result<(), Rejection> {
    if answer.capacity() - answer.len() >= bytes {
        return Ok(());
    }
    // Grow by a quarter, so that a long list isn't copied for each of its items.
    let more = bytes.max(answer.capacity() / 4);
    if !work.try_grow(more) {
        return Err(received.too_large(work.size() + more));
    }
    answer.reserve_exact(more);
    Ok(())
}

/// Converts an object. An undecodable object that is being admitted is returned as written, with a
/// mark (see [`unconverted`](super::unconverted)).
fn convert_or_relabel(
    converter: &dyn AnyConverter,
    written: Value,
    to: &str,
) -> Result<Value, Unconvertible> {
    let mark = Mark::of(&written).filter(|_| is_being_admitted(&written));
    match (converter.convert(&written, to), mark) {
        (Ok(converted), None) => Ok(converted),
        // Another webhook may have patched the object so that it's valid in the version of its
        // label. But converting it would lose what the user has written.
        (Ok(_), Some(mark)) => Err(Unconvertible::Failed(format!(
            "the annotation {ANNOTATION} is set: {}",
            mark.error
        ))),
        (Err(Unconvertible::Undecodable(_)), Some(mark)) if mark.version == to => Ok(mark.restore(written)),
        (Err(Unconvertible::Undecodable(_)), Some(mark)) => Ok(mark.relabel(written, to)),
        (Err(Unconvertible::Undecodable(error)), None) if is_being_admitted(&written) => {
            let version = written["apiVersion"].as_str().unwrap_or_default().to_owned();
            Ok(Mark { version, error }.relabel(written, to))
        }
        (Err(error), _) => Err(error),
    }
}

fn describe_name(object: &Value) -> String {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    match metadata["namespace"].as_str() {
        None | Some("") => name.to_owned(),
        Some(namespace) => format!("{namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_items_are_read_in_order() {
        let check = |list: &str, expected: &[&str]| {
            let list: &RawValue = serde_json::from_str(list).unwrap();
            let items = Items(list.get().strip_prefix('[').unwrap());
            let texts: Vec<&str> = items.map(|item| item.unwrap().get()).collect();
            assert_eq!(texts, expected, "{list}");
        };
        check("[]", &[]);
        check("[ \n]", &[]);
        check(r#"[{"a":"],{"}]"#, &[r#"{"a":"],{"}"#]);
        check("[{} , {\"b\":[1,2]}\n,\t[]]", &["{}", "{\"b\":[1,2]}", "[]"]);
    }
}
