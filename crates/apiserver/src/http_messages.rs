//! Parses HTTP requests and builds responses.

use std::convert::Infallible;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use serde_json::Value;

use super::routes::Headers;

/// The error of a request that gets no response.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A response body. In a watch, each frame is a line with one event.
pub type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

pub(super) fn read_headers(headers: &HeaderMap) -> Headers {
    let read = |name| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    Headers {
        accept: read(header::ACCEPT),
        content_type: read(header::CONTENT_TYPE),
        user_agent: read(header::USER_AGENT),
    }
}

/// Parses a request body, along with the paths of duplicate fields. A malformed body becomes
/// `null`, which is rejected by handlers that require a body.
pub(super) fn parse_body(bytes: &[u8], content_type: &str) -> (Value, Vec<String>) {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    if let Ok(body) = rbuilder_judge::Body::parse(text) {
        return (body.value().clone(), body.duplicates().to_vec());
    }
    let text = Some(text).filter(|_| content_type.contains("yaml"));
    let value = text.and_then(|text| serde_saphyr::from_str(text).ok());
    (value.unwrap_or_default(), Vec::new())
}

pub(super) fn response(code: u16, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // kube-apiserver has this header in every response, so clients can tell its 503 from that of a
    // load balancer.
    let id = HeaderValue::from_static("00000000-0000-4000-8000-000000000000");
    response.headers_mut().insert("audit-id", id);
    response
}

pub(super) fn json_response(code: u16, object: &Value) -> Response<ResponseBody> {
    text_response(code, to_json(object))
}

pub(super) fn text_response(code: u16, text: Bytes) -> Response<ResponseBody> {
    let mut response = response(code, Full::from(text).boxed_unsync());
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

pub(super) fn no_such_path() -> Response<ResponseBody> {
    response(404, Full::from("404 page not found\n").boxed_unsync())
}

/// In debug builds, `to_vec` takes half as long as `to_string`, which goes through `fmt`.
pub(super) fn to_json(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}
