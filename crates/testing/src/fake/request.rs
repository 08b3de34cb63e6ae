//! Requests that the server has received.

use std::fmt;
use std::ops::{Deref, DerefMut};

use http::Method;

/// A request received by the server. Lets tests check what an operator did.
///
/// Its fields are those of [`rbuilder_apiserver::Request`], e.g. `request.verb` and `request.body`.
///
/// Formatted as a single line, e.g. `patch memos.example.com/status default/note`.
#[derive(Clone, Debug, PartialEq)]
pub struct Request(pub(super) rbuilder_apiserver::Request);

impl Request {
    /// Whether the request is for this kind, in any version.
    pub fn is_of<K: kube::Resource<DynamicType = ()>>(&self) -> bool {
        self.group == K::group(&()) && self.resource == K::plural(&())
    }

    /// Parses the method, path and query of an HTTP request. Returns `None` for non-resource paths
    /// such as discovery.
    pub fn parse(method: &Method, path: &str, query: &str) -> Option<Self> {
        rbuilder_apiserver::Request::parse(method, path, query).map(Self)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for Request {
    type Target = rbuilder_apiserver::Request;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Request {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
