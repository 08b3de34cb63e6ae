//! Fallback for builds that do not support profiling.

use std::time::Duration;

use http::StatusCode;

use super::super::Answer;
use crate::shutdown::Shutdown;

pub(super) async fn record(_: Duration, _: Option<Shutdown>) -> Result<Vec<u8>, Answer> {
    Err(Answer::error(
        StatusCode::NOT_IMPLEMENTED,
        "the operator was built without rbuilder's feature `profiling`: add it to the features of the dependency in \
         Cargo.toml, on Linux or macOS with x86_64 or aarch64",
    ))
}
