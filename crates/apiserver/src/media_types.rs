//! The media types of requests and responses.

use http::{HeaderMap, header};

use super::failure::Failure;

/// Media types of objects in requests.
const READ: [&str; 2] = ["application/json", "application/yaml"];
/// Media type of responses.
pub(super) const WRITTEN: &str = "application/json";

/// Fails with 415 unless the body is in a known format. Without a header, it is JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Failure> {
    let value = headers.get(header::CONTENT_TYPE);
    let found = value.map(|value| value.to_str().unwrap_or("?"));
    let found = found.map_or("", essence);
    if found.is_empty() || READ.iter().any(|known| known.eq_ignore_ascii_case(found)) {
        return Ok(());
    }
    Err(unknown_format())
}

pub(super) fn unknown_format() -> Failure {
    Failure::of_code(
        415,
        format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            READ.join(", ")
        ),
    )
}

/// Fails with 406 if the client accepts no format of the server.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), Failure> {
    let values: Vec<&str> = headers
        .get_all(header::ACCEPT)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let mut accepted = values.iter().flat_map(|value| value.split(',')).map(essence);
    let is_known = |found: &str| {
        let found = found.to_ascii_lowercase();
        matches!(
            found.as_str(),
            "*/*" | "application/*" | "text/*" | "text/plain" | WRITTEN
        )
    };
    if values.is_empty() || accepted.any(|found| found.is_empty() || is_known(found)) {
        return Ok(());
    }
    Err(Failure::new(
        406,
        "NotAcceptable",
        format!("only the following media types are accepted: {WRITTEN}"),
    ))
}

/// Strips the parameters of a media type.
fn essence(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !value.is_empty() {
            headers.insert(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn knows_json_and_yaml() {
        for (value, code) in [
            ("", None),
            ("application/json", None),
            ("application/json; charset=utf-8", None),
            ("Application/YAML", None),
            ("application/vnd.kubernetes.protobuf", Some(415)),
            ("text/html", Some(415)),
        ] {
            let found = check_content_type(&headers(header::CONTENT_TYPE, value));
            assert_eq!(found.err().map(|failure| failure.code), code, "{value}");
        }
    }

    #[test]
    fn clients_must_accept_json() {
        for (value, code) in [
            ("", None),
            ("*/*", None),
            ("application/vnd.kubernetes.protobuf, application/json", None),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", None),
            ("application/vnd.kubernetes.protobuf", Some(406)),
            ("image/png", Some(406)),
        ] {
            let found = check_accept(&headers(header::ACCEPT, value));
            assert_eq!(found.err().map(|failure| failure.code), code, "{value}");
        }
    }
}
