//! Objects of built-in kinds in protobuf, which typed clients of Kubernetes send by default:
//! [`decode`] returns the JSON that kube-apiserver prints for the same object, and [`encode`] the
//! bytes that Go's clients send.
//!
//! A body consists of the bytes `k8s\0` and a message with the version, the kind and the bytes of
//! the object. The fields of all messages are in a table, which `cargo xtask protobuf` generates from
//! Kubernetes' Go types. It has the names in JSON, and which fields Go omits when they are empty.
//!
//! Quantities are passed through as they are: who stores objects has to bring them into their
//! canonical form anyway, since clients that write JSON send them in any form.

mod base64;
mod decode;
mod encode;
mod special;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;

pub use decode::decode;
pub use encode::encode;

/// The content type of bodies in protobuf.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The first bytes of each body.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages can be in each other. Their JSON is at most twice as deep, so that readers of
/// JSON, which have a limit of 128, can read it.
const MAX_DEPTH: usize = 60;

/// Returns whether a body claims to be an object in protobuf, whatever its content type is.
pub fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Returns whether a kind has a form in protobuf. Custom resources have none, so clients send and
/// receive them as JSON.
pub fn has_kind(api_version: &str, kind: &str) -> bool {
    table::table().message_of(api_version, kind).is_some()
}

/// Why a body or an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The body does not begin with `k8s\0`.
    NoMagic,
    /// The table has no such kind.
    UnknownKind {
        /// The version with its group, e.g. `apps/v1`. Empty if the object has none.
        api_version: String,
        /// The kind, e.g. `Deployment`. Empty if the object has none.
        kind: String,
    },
    /// The bytes are no message, or the JSON has a value of another type than the field.
    Malformed {
        /// The names in JSON that lead to the field, e.g. `spec.replicas`. Empty outside of fields.
        path: String,
        /// What was expected, and what was found.
        problem: &'static str,
    },
}

impl Error {
    fn new(problem: &'static str) -> Self {
        Error::Malformed {
            path: String::new(),
            problem,
        }
    }

    /// Adds the name of the field that contains the problem.
    fn inside(self, name: &str) -> Self {
        match self {
            Error::Malformed { path, problem } if path.is_empty() => Error::Malformed {
                path: name.to_owned(),
                problem,
            },
            Error::Malformed { path, problem } => Error::Malformed {
                path: format!("{name}.{path}"),
                problem,
            },
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoMagic => write!(
                out,
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            ),
            Error::UnknownKind { api_version, kind } => {
                write!(
                    out,
                    "no kind \"{kind}\" is registered for version \"{api_version}\""
                )
            }
            Error::Malformed { path, problem } if path.is_empty() => write!(out, "{problem}"),
            Error::Malformed { path, problem } => write!(out, "`{path}`: {problem}"),
        }
    }
}

impl std::error::Error for Error {}
