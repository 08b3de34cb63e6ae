//! The formats known to the API server, and the strings that it accepts for them.

mod address;
mod code;
mod email;
mod time;
mod uri;

use rbuilder_kubernetes::ip;
use rbuilder_kubernetes::names;

use crate::SchemaType;

/// The formats that the API server checks or at least knows. It warns about any other format on
/// every `kubectl apply`.
pub const FORMATS: &[&str] = &[
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Returns the type that a format constrains, or `None` if the format is unknown. On a value of
/// another type, the API server ignores the format and warns about it on every `kubectl apply`.
pub fn format_type(format: &str) -> Option<SchemaType> {
    match format {
        "int32" | "int64" => Some(SchemaType::Integer),
        "float" | "double" => Some(SchemaType::Number),
        _ if FORMATS.contains(&format) => Some(SchemaType::String),
        _ => None,
    }
}

/// Returns whether the API server accepts a string as having a format.
///
/// Follows `k8s.io/kube-openapi/pkg/validation/strfmt`, whose results are recorded in
/// `crates/schema/tests/formats.jsonl`. Returns `None` if the result depends on the version of the
/// API server, if the format doesn't constrain strings, and for a few rare inputs that aren't
/// implemented.
pub fn accepts_format(format: &str, text: &str) -> Option<bool> {
    match format {
        "bsonobjectid" => Some(code::is_hex(text, 24)),
        "byte" => Some(code::is_base64(text)),
        "cidr" => Some(ip::is_cidr(text)),
        "creditcard" => Some(code::is_credit_card(text)),
        "date" => Some(time::is_date(text)),
        "date-time" | "datetime" => Some(time::is_date_time(text)),
        "duration" => Some(time::is_duration(text)),
        "email" => email::is_email(text),
        "hexcolor" => Some(code::is_hex_color(text)),
        "hostname" => address::is_hostname(text),
        "ipv4" => Some(ip::is_ipv4(text)),
        "ipv6" => Some(address::is_ipv6(text)),
        "isbn" => Some(code::is_isbn10(text) || code::is_isbn13(text)),
        "isbn10" => Some(code::is_isbn10(text)),
        "isbn13" => Some(code::is_isbn13(text)),
        "k8s-long-name" => Some(names::is_subdomain(text)),
        "k8s-short-name" => Some(names::is_label(text)),
        "mac" => address::is_mac(text),
        "rgbcolor" => Some(code::is_rgb_color(text)),
        "ssn" => Some(code::is_ssn(text)),
        "uri" => uri::is_request_uri(text),
        "uuid" => Some(code::is_uuid(text, None)),
        "uuid3" => Some(code::is_uuid(text, Some(b'3'))),
        "uuid4" => Some(code::is_uuid(text, Some(b'4'))),
        "uuid5" => Some(code::is_uuid(text, Some(b'5'))),
        "password" => Some(true),
        _ => None,
    }
}

/// Returns an example of a format, for help texts.
pub fn example_of_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "byte" => "aGVsbG8=",
        "cidr" => "10.0.0.0/8",
        "date" => "2024-01-31",
        "date-time" | "datetime" => "2024-01-31T12:00:00Z",
        "duration" => "1h30m",
        "email" => "jane@example.com",
        "hexcolor" => "#ffcc00",
        "hostname" => "www.example.com",
        "ipv4" => "10.0.0.1",
        "ipv6" => "2001:db8::1",
        "k8s-long-name" => "my-name.example.com",
        "k8s-short-name" => "my-name",
        "mac" => "00:00:5e:00:53:01",
        "rgbcolor" => "rgb(255, 204, 0)",
        "uri" => "https://example.com/path",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        _ => return None,
    })
}
