//! Error for requests without a response. Includes the address and all causes, and explains the
//! most common ones.

use std::error::Error as StdError;
use std::fmt;

use hyper_util::client::legacy;
use tower::BoxError;

use crate::causes::{causes_of, describe_causes};

#[derive(Debug)]
pub(crate) struct NoResponse {
    message: String,
    /// Connecting failed, so the request wasn't sent.
    pub(super) is_unreachable: bool,
    cause: BoxError,
}

impl NoResponse {
    pub(super) fn new(address: &str, cause: BoxError) -> Self {
        let is_unreachable = cause
            .downcast_ref::<legacy::Error>()
            .is_some_and(legacy::Error::is_connect);
        let failure = match is_unreachable {
            true => format!("cannot reach the API server at {address}"),
            false => format!("no response from the API server at {address}"),
        };
        Self {
            message: format!("{failure}: {}", explain_causes(&*cause)),
            is_unreachable,
            cause,
        }
    }
}

impl fmt::Display for NoResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for NoResponse {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.cause)
    }
}

const EXPLANATIONS: [(&str, &str); 3] = [
    (
        "UnknownIssuer",
        "the certificate is signed by an unknown authority",
    ),
    // Typical for a recreated cluster whose new CA has the same name as the old one.
    (
        "BadSignature",
        "the certificate is signed by an unknown authority, which has the name of a trusted one",
    ),
    ("InvalidContentType", "the server does not speak TLS on this port"),
];

/// Formats an error and its causes, adding a hint if one of the causes is a known one.
fn explain_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = describe_causes(error);
    let explained = EXPLANATIONS.iter().find(|(name, _)| text.contains(name));
    if let Some((_, explanation)) = explained {
        text.push_str(&format!(" ({explanation})"));
    }
    text
}

pub(crate) fn find_no_response<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a NoResponse> {
    causes_of(error).find_map(|cause| cause.downcast_ref())
}

/// Returns `true` if the API server is unreachable. The client logs this, so callers don't have to.
pub(crate) fn is_unreachable(error: &(dyn StdError + 'static)) -> bool {
    find_no_response(error).is_some_and(|error| error.is_unreachable)
}
