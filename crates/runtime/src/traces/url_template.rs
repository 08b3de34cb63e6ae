//! Templates for paths of the Kubernetes API, so that all spans of the same kind of request share a
//! name.

/// Replaces names in a path with `{namespace}` and `{name}`, e.g.
/// `/api/v1/namespaces/{namespace}/pods/{name}/status`. Paths outside of the API are returned as
/// is.
pub(super) fn url_template(path: &str) -> String {
    let mut segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let resource = match segments.first() {
        Some(&"api") => 2,
        Some(&"apis") => 3,
        _ => return path.to_owned(),
    };
    // In `/namespaces/a/status`, the object is the namespace `a` itself.
    let is_namespaced = matches!(
        segments.get(resource..),
        Some(["namespaces", _, below, ..]) if !matches!(*below, "status" | "finalize")
    );
    let name = if is_namespaced {
        segments[resource + 1] = "{namespace}";
        resource + 3
    } else {
        resource + 1
    };
    if let Some(segment) = segments.get_mut(name) {
        *segment = "{name}";
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced() {
        for (path, expected) in [
            ("/api/v1/pods", "/api/v1/pods"),
            ("/api/v1/namespaces/a/pods", "/api/v1/namespaces/{namespace}/pods"),
            (
                "/api/v1/namespaces/a/pods/b",
                "/api/v1/namespaces/{namespace}/pods/{name}",
            ),
            (
                "/api/v1/namespaces/a/pods/b/log",
                "/api/v1/namespaces/{namespace}/pods/{name}/log",
            ),
            ("/api/v1/namespaces", "/api/v1/namespaces"),
            ("/api/v1/namespaces/a", "/api/v1/namespaces/{name}"),
            ("/api/v1/namespaces/a/status", "/api/v1/namespaces/{name}/status"),
            ("/api/v1/nodes/n/status", "/api/v1/nodes/{name}/status"),
            (
                "/apis/g/v1/namespaces/a/ks/k/status",
                "/apis/g/v1/namespaces/{namespace}/ks/{name}/status",
            ),
            ("/apis/g/v1/ks/k", "/apis/g/v1/ks/{name}"),
            ("/apis/g", "/apis/g"),
            ("/api", "/api"),
            ("/version", "/version"),
            ("/", "/"),
        ] {
            assert_eq!(url_template(path), expected);
        }
    }
}
