//! The error of a request without a response, with the address, all causes, and explanations of the
//! most common ones.

use std::error::Error as StdError;
use std::fmt;

use hyper_util::client::legacy;
use tower::BoxError;

use crate::error::{causes_of, describe_causes};

/// The error of a request without a response.
#[derive(Debug)]
pub(crate) struct NoResponse {
    /// The address and all causes.
    message: String,
    /// Whether the connection failed, so that the request was not sent.
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

/// rustls' names for the most common causes, with explanations.
const EXPLANATIONS: [(&str, &str); 3] = [
    (
        "UnknownIssuer",
        "the certificate is signed by an unknown authority",
    ),
    // Happens when the CA of a cluster was replaced by one with the same name.
    (
        "BadSignature",
        "the certificate is signed by an unknown authority, which has the name of a trusted one",
    ),
    ("InvalidContentType", "the server does not speak TLS on this port"),
];

/// Returns the messages of an error and its causes, with an explanation if one of the common ones
/// is among them.
fn explain_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = describe_causes(error);
    let explained = EXPLANATIONS.iter().find(|(name, _)| text.contains(name));
    if let Some((_, explanation)) = explained {
        text.push_str(&format!(" ({explanation})"));
    }
    text
}

/// Finds a [`NoResponse`] among the causes of an error.
pub(crate) fn find_no_response<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a NoResponse> {
    causes_of(error).find_map(|cause| cause.downcast_ref())
}

/// Returns `true` if the API server could not be reached, which the client has already logged.
pub(crate) fn is_unreachable(error: &(dyn StdError + 'static)) -> bool {
    find_no_response(error).is_some_and(|error| error.is_unreachable)
}
