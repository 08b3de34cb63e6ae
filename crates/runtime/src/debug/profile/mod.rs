//! A CPU profile of the process, at the path and in the format of Go's `net/http/pprof`, with the
//! feature `profiling`.
//!
//! rpprof takes the samples. Without the feature, or on a platform that rpprof does not support,
//! the endpoint responds 501.

// Why rpprof: a signal handler has to unwind stacks, which requires unsafe code. The usual crate is
// pprof 0.15 (May 2025), but
//
// - its default unwinder calls libgcc in the handler, for which crashes are reported
//   (tikv/pprof-rs#36, neondatabase/neon#10225), and allocates 102 MiB at the start of a profile
//   and 180 MiB at its end; a scaffolded manager has 128 MiB;
// - its unwinder framehop is initialized within the handler, loses the innermost function on
//   aarch64, and needs memmap2 0.5, which has an advisory (RUSTSEC-2026-0186). Grafana's fork needs
//   it too;
// - its unwinder by frame pointers never reports the innermost function.
//
// rpprof is a fork without these faults that allocates 54 MiB and 84 MiB. One person maintains it,
// so Cargo.toml requires an exact version: read its source before updating. Its encoder of profiles
// would add 30 packages, so `on/encode.rs` replaces it.

#[cfg(any(
    test,
    all(
        feature = "profiling",
        any(target_os = "linux", target_os = "macos"),
        any(target_arch = "x86_64", target_arch = "aarch64")
    )
))]
mod memory;
#[cfg(any(
    test,
    not(all(
        feature = "profiling",
        any(target_os = "linux", target_os = "macos"),
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))
))]
mod off;
#[cfg(all(
    feature = "profiling",
    any(target_os = "linux", target_os = "macos"),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod on;

use std::time::Duration;

#[cfg(not(all(
    feature = "profiling",
    any(target_os = "linux", target_os = "macos"),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
use off as recorder;
#[cfg(all(
    feature = "profiling",
    any(target_os = "linux", target_os = "macos"),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
use on as recorder;

use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Bytes;

use super::{Answer, Query, refuse_method};
use crate::shutdown::Shutdown;

/// Default duration in seconds, as in Go.
const DEFAULT_SECONDS: u64 = 30;
const MAX_SECONDS: u64 = 120;

/// Responds with a profile of the next `?seconds=`, or of the time until the manager's servers
/// stop.
pub(super) async fn answer(request: Request<()>, stopped: Option<Shutdown>) -> Response<Bytes> {
    if request.method() != Method::GET {
        return refuse_method(&[Method::GET]).map(Bytes::from);
    }
    let recorded = match read_duration(&request) {
        Ok(duration) => recorder::record(duration, stopped).await,
        Err(reason) => Err(Answer::error(StatusCode::BAD_REQUEST, reason)),
    };
    match recorded {
        Ok(profile) => profile_response(profile),
        Err(answer) => answer.into_response(false).map(Bytes::from),
    }
}

fn read_duration(request: &Request<()>) -> Result<Duration, String> {
    let query = Query::parse(request.uri().query().unwrap_or_default())?;
    let seconds = query.get("seconds").map_or(Ok(DEFAULT_SECONDS), str::parse);
    match seconds {
        Ok(seconds @ 1..=MAX_SECONDS) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!(
            "expected a number from 1 to {MAX_SECONDS}: ?seconds={DEFAULT_SECONDS}"
        )),
    }
}

fn profile_response(profile: Vec<u8>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(profile));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(
        CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment; filename=\"profile\""),
    );
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(method: Method, target: &str) -> (u16, String) {
        let request = Request::builder().method(method).uri(target).body(()).unwrap();
        let (parts, body) = answer(request, None).await.into_parts();
        (parts.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn invalid_requests_do_not_start_a_profile() {
        for seconds in ["0", "121", "-1", "1.5", "soon", ""] {
            assert_eq!(
                ask(Method::GET, &format!("/debug/pprof/profile?seconds={seconds}")).await,
                (400, "expected a number from 1 to 120: ?seconds=30\n".to_owned()),
            );
        }
        for method in [Method::HEAD, Method::POST] {
            assert_eq!(
                ask(method, "/debug/pprof/profile").await,
                (405, "expected method GET\n".to_owned()),
            );
        }
    }

    #[tokio::test]
    async fn response_without_the_feature_names_it() {
        let refused = off::record(Duration::from_secs(1), None).await.unwrap_err();
        assert_eq!(refused.status, StatusCode::NOT_IMPLEMENTED);
        let expected = "the operator was built without rbuilder's feature `profiling`: add it to the features of the \
                        dependency in Cargo.toml, on Linux or macOS with x86_64 or aarch64\n";
        assert_eq!(refused.text, expected);
    }
}
