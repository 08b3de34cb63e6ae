//! CPU profiles, with the same path and format as Go's `net/http/pprof`. Requires the feature
//! `profiling`.
//!
//! Uses rpprof. If the feature is disabled or rpprof does not support the platform, the endpoint
//! responds with 501.

// Why rpprof? Unwinding stacks in a signal handler requires unsafe code, so we have to use a crate.
// The most popular one is pprof 0.15 (May 2025), but all of its unwinders have issues:
//
// - The default one calls into libgcc, which is known to crash in a signal handler
//   (tikv/pprof-rs#36, neondatabase/neon#10225). It also allocates 102 MiB at the start of a
//   profile and 180 MiB at the end, whereas a scaffolded manager is limited to 128 MiB.
// - framehop is initialized within the signal handler, omits the innermost function on aarch64, and
//   depends on memmap2 0.5, for which there is an advisory (RUSTSEC-2026-0186). This is also true
//   for Grafana's fork.
// - Unwinding by frame pointers never includes the innermost function.
//
// rpprof is a fork without these problems. It allocates 54 MiB and 84 MiB, respectively. Since it
// has a single maintainer, we pin the exact version in Cargo.toml. Review its source before you
// update it. We have our own encoder for profiles in `on/encode.rs`, because the one in rpprof
// would add 30 dependencies.

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

/// Same default as in Go.
const DEFAULT_SECONDS: u64 = 30;
const MAX_SECONDS: u64 = 120;

/// Records a profile for `?seconds=`, or until the manager's servers stop.
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
