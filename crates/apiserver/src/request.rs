//! Parses request paths and parameters.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::Method;
use hyper::body::Bytes;
use serde_json::Value;

use super::identity::User;
use super::kinds::ResourceId;

/// The verb of a request, as in RBAC rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads an object.
    Get,
    /// Reads a list of objects.
    List,
    /// Watches for changes.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes parts of an object, including server-side apply.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes a collection of objects.
    DeleteCollection,
}

impl Verb {
    /// Returns the verb as spelled in roles, e.g. `deletecollection`.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request received by the server. Lets tests check what an operator did.
///
/// Formatted as a single line, e.g. `patch memos.example.com/status default/note`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// The verb.
    pub verb: Verb,
    /// The API group; empty for the core group.
    pub group: String,
    /// The requested API version.
    pub version: String,
    /// The plural name of the kind.
    pub resource: String,
    /// The subresource, such as `status`.
    pub subresource: Option<String>,
    /// The namespace; `None` for cluster-scoped kinds and for requests across all namespaces.
    pub namespace: Option<String>,
    /// The name of the object; `None` for lists, watches, collections and creates.
    pub name: Option<String>,
    /// The query parameters.
    pub parameters: BTreeMap<String, String>,
    /// The body; `null` if it is empty or not JSON.
    pub body: Value,
    /// Duplicate fields, which Go tolerates and `fieldValidation` reports.
    pub(super) duplicates: Vec<String>,
    /// The raw body, or empty if the request originates from the server itself.
    pub(super) text: Bytes,
    /// Whether the request was sent by an administrator, see [`ApiServer::call`](super::ApiServer::call).
    pub by_admin: bool,
    /// The sender, if the server is open to several users.
    pub(super) user: Option<Arc<User>>,
    /// The response's status code; 0 if there was no response, see
    /// [`Fault::disconnect`](super::Fault::disconnect).
    pub code: u16,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request {
            subresource,
            namespace,
            name,
            ..
        } = self;
        write_target(f, self.verb, &self.id(), subresource, namespace, name)
    }
}

pub(super) fn write_target(
    f: &mut fmt::Formatter<'_>,
    verb: Verb,
    id: &ResourceId,
    subresource: &Option<String>,
    namespace: &Option<String>,
    name: &Option<String>,
) -> fmt::Result {
    write!(f, "{verb} {id}")?;
    if let Some(subresource) = subresource {
        write!(f, "/{subresource}")?;
    }
    match (namespace, name) {
        (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
        (Some(namespace), None) => write!(f, " in {namespace}"),
        (None, Some(name)) => write!(f, " {name}"),
        (None, None) => Ok(()),
    }
}

impl Request {
    pub(super) fn id(&self) -> ResourceId {
        ResourceId::new(&*self.group, &*self.resource)
    }

    /// A decoded query parameter, e.g. `labelSelector`. Empty if absent.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        is_set(&self.parameters, name)
    }

    /// Parses the method, path and query of an HTTP request. Returns `None` for non-resource paths
    /// such as discovery.
    pub fn parse(method: &Method, path: &str, query: &str) -> Option<Self> {
        let segments: Vec<String> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(decode)
            .collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match *segments.as_slice() {
            ["api", version, ref rest @ ..] => ("", version, rest),
            ["apis", group, version, ref rest @ ..] => (group, version, rest),
            _ => return None,
        };
        let (namespace, rest) = match *rest {
            // `namespaces` is both a resource and a path prefix. Here it's the resource.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, ref rest @ ..] => (Some(namespace), rest),
            _ => (None, rest),
        };
        let (resource, name, subresource) = match *rest {
            [resource] => (resource, None, None),
            [resource, name] => (resource, Some(name), None),
            [resource, name, subresource] => (resource, Some(name), Some(subresource)),
            _ => return None,
        };
        let parameters = parameters(query);
        let watches = is_set(&parameters, "watch");
        let verb = match (method, name) {
            (&Method::GET, None) if watches => Verb::Watch,
            (&Method::GET, None) => Verb::List,
            (&Method::GET, Some(_)) => Verb::Get,
            (&Method::POST, _) => Verb::Create,
            (&Method::PUT, _) => Verb::Update,
            (&Method::PATCH, _) => Verb::Patch,
            (&Method::DELETE, Some(_)) => Verb::Delete,
            (&Method::DELETE, None) => Verb::DeleteCollection,
            _ => return None,
        };
        Some(Self {
            verb,
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            parameters,
            body: Value::Null,
            duplicates: Vec::new(),
            text: Bytes::new(),
            by_admin: false,
            user: None,
            code: 0,
        })
    }
}

/// Go reads everything but `false` and `0` as true.
fn is_set(parameters: &BTreeMap<String, String>, name: &str) -> bool {
    let value = parameters.get(name);
    value.is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
}

fn parameters(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
        })
        .collect()
}

/// Decodes percent-encoding, leaving stray `%` alone.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &rest[3..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &Method, uri: &str, expected: &str) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let found = Request::parse(method, path, query).map(|request| request.to_string());
        assert_eq!(found.unwrap_or_default(), expected, "{method} {uri}");
    }

    #[test]
    fn parses_resource_paths() {
        check(&Method::GET, "/api/v1/pods", "list pods");
        check(&Method::GET, "/api/v1/pods?watch=true", "watch pods");
        check(&Method::GET, "/api/v1/namespaces/a/pods", "list pods in a");
        check(&Method::GET, "/api/v1/namespaces/a/pods/b%2Dc", "get pods a/b-c");
        check(&Method::PUT, "/api/v1/namespaces/a", "update namespaces a");
        check(
            &Method::PUT,
            "/api/v1/namespaces/a/finalize",
            "update namespaces/finalize a",
        );
        check(
            &Method::PATCH,
            "/apis/example.com/v1/namespaces/a/memos/b/status",
            "patch memos.example.com/status a/b",
        );
        check(
            &Method::POST,
            "/apis/example.com/v1/namespaces/a/memos?",
            "create memos.example.com in a",
        );
        check(
            &Method::DELETE,
            "/apis/example.com/v1/rings",
            "deletecollection rings.example.com",
        );
        check(&Method::GET, "/apis/example.com/v1", "");
        check(&Method::GET, "/version", "");
    }

    #[test]
    fn decodes_parameters() {
        let read = parameters("labelSelector=a+in+%28b%2Cc%29&limit=5&&x");
        let expected = [("labelSelector", "a in (b,c)"), ("limit", "5"), ("x", "")];
        assert_eq!(
            read.iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect::<Vec<_>>(),
            expected
        );
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%41"), "%zzA");
    }
}
