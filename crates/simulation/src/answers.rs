//! Helpers that rewrite requests and responses on their way through the simulated network.

use std::time::Duration;

use http::Response;
use http_body_util::{BodyExt, Full};
use rbuilder_testing::fake::{ApiServer, ResponseBody};
use serde_json::Value;

/// Watch timeout on the simulated server.
///
/// Real API servers close watches after a few minutes. With that, histories spanning months would
/// consist mostly of watch restarts, hence a whole day here. Histories that exercise closed watches
/// close them explicitly.
pub const LONGEST_WATCH: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn refusal(code: u16) -> Response<ResponseBody> {
    let message = match code {
        403 => "the simulation took this permission",
        _ => "the simulation asked for a failure",
    };
    let mut response = ApiServer::refusal(code, message);
    // kube-apiserver also sends Retry-After with 429.
    if code == 429 {
        let second = http::HeaderValue::from_static("1");
        response.headers_mut().insert(http::header::RETRY_AFTER, second);
    }
    response
}

/// Extracts the `message` of the `Status` if the server rejected the object as invalid (422). Other
/// responses pass through without buffering their bodies.
pub(crate) async fn message_of_invalid(
    response: Response<ResponseBody>,
) -> (Response<ResponseBody>, Option<String>) {
    if !matches!(response.status().as_u16(), 400 | 405 | 413 | 415 | 422) {
        return (response, None);
    }
    let (response, message) = read_message(response).await;
    (response, Some(message))
}

pub(crate) async fn read_message(response: Response<ResponseBody>) -> (Response<ResponseBody>, String) {
    let (parts, body) = response.into_parts();
    let bytes = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(never) => match never {},
    };
    let status: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let message = status["message"].as_str().unwrap_or_default().to_owned();
    let body = Full::new(bytes).boxed_unsync();
    (Response::from_parts(parts, body), message)
}
