//! Types from other crates that are serialized as a single value, with references to their
//! documentation.

use serde_json::json;

use crate::build::{any, any_object, of_type};
use crate::{Schema, SchemaType};

/// A type and its JSON representation. If `schemars` supports the type, the schemas agree, except
/// for formats that the API server doesn't know or interprets differently.
struct Leaf {
    path: &'static str,
    wire: Wire,
    /// The reference for the representation, for anyone extending the table.
    #[allow(dead_code)] // for who reads the table
    source: &'static str,
}

enum Wire {
    /// A string, with a format only if the API server checks the format.
    Text(Option<&'static str>),
    Pattern(&'static str),
    /// A string with both a format and a pattern, because the format alone accepts more than the
    /// type.
    Both(&'static str, &'static str),
    OneOf(&'static [&'static str]),
    Number,
    AnyObject,
    Texts(&'static [&'static str]),
    Any,
}

const DATE_TIME: Wire = Wire::Text(Some("date-time"));
const DATE: Wire = Wire::Text(Some("date"));
const CIDR: Wire = Wire::Text(Some("cidr"));
const PLAIN: Wire = Wire::Text(None);
const TYPE_META: Wire = Wire::Texts(&["apiVersion", "kind"]);

/// The API server's `date-time` requires an offset and nothing after it, so local times and times
/// with a zone in brackets are plain strings. Its `duration` lacks years and months, so jiff's
/// durations have a pattern.
#[rustfmt::skip] // a row is a line
const LEAVES: &[Leaf] = &[
    Leaf { path: "jiff::Timestamp", wire: DATE_TIME, source: "jiff 0.2, Timestamp: Display, RFC 3339 in UTC" },
    Leaf { path: "jiff::Zoned", wire: PLAIN, source: "jiff 0.2, Zoned: Display, RFC 9557 with the zone in brackets" },
    Leaf { path: "jiff::SignedDuration", wire: Wire::Pattern(JIFF_DURATION), source: "jiff 0.2, SignedDuration: Display, ISO 8601; reads the friendly format" },
    Leaf { path: "jiff::Span", wire: Wire::Pattern(JIFF_SPAN), source: "jiff 0.2, Span: Display, ISO 8601 with years and months; reads the friendly format" },
    Leaf { path: "jiff::civil::Date", wire: DATE, source: "jiff 0.2, civil::Date: Display, RFC 3339 full-date" },
    Leaf { path: "jiff::civil::Time", wire: PLAIN, source: "jiff 0.2, civil::Time: Display, no offset" },
    Leaf { path: "jiff::civil::DateTime", wire: PLAIN, source: "jiff 0.2, civil::DateTime: Display, no offset" },
    Leaf { path: "chrono::DateTime", wire: DATE_TIME, source: "chrono 0.4, feature serde: RFC 3339" },
    Leaf { path: "chrono::NaiveDate", wire: DATE, source: "chrono 0.4, feature serde: Debug, ISO 8601 date" },
    Leaf { path: "chrono::NaiveTime", wire: PLAIN, source: "chrono 0.4, feature serde: Debug, no offset" },
    Leaf { path: "chrono::NaiveDateTime", wire: PLAIN, source: "chrono 0.4, feature serde: Debug, no offset" },
    Leaf {
        path: "chrono::Weekday",
        wire: Wire::OneOf(&["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]),
        source: "chrono 0.4, feature serde: Display",
    },
    Leaf { path: "url::Url", wire: Wire::Both("uri", URL), source: "url 2, feature serde: as_str" },
    Leaf { path: "ipnet::IpNet", wire: CIDR, source: "ipnet 2, feature serde: Display, an address and a prefix length" },
    Leaf { path: "ipnet::Ipv4Net", wire: CIDR, source: "ipnet 2, feature serde: Display" },
    Leaf { path: "ipnet::Ipv6Net", wire: CIDR, source: "ipnet 2, feature serde: Display" },
    Leaf { path: "uuid::Uuid", wire: Wire::Pattern(UUID), source: "uuid 1, feature serde: hyphenated, where readable" },
    Leaf { path: "semver::Version", wire: Wire::Pattern(SEMVER), source: "semver 1, feature serde: Display" },
    Leaf { path: "serde_json::Value", wire: Wire::Any, source: "serde_json 1: itself" },
    Leaf { path: "serde_json::Map", wire: Wire::AnyObject, source: "serde_json 1: itself" },
    Leaf { path: "serde_json::Number", wire: Wire::Number, source: "serde_json 1: itself" },
    Leaf { path: "kube::core::Duration", wire: Wire::Pattern(GO_DURATION), source: "kube, core::Duration: Display, as Go writes durations" },
    Leaf { path: "kube::core::DynamicObject", wire: Wire::AnyObject, source: "kube: the object" },
    Leaf { path: "kube::core::TypeMeta", wire: TYPE_META, source: "kube, core::TypeMeta: serde's derive" },
    Leaf { path: "kube::api::TypeMeta", wire: TYPE_META, source: "kube, re-exported" },
    Leaf { path: "kube::api::DynamicObject", wire: Wire::AnyObject, source: "kube: the object" },
];

/// Only absolute URLs. The format alone would also accept a path without a scheme.
const URL: &str = "^[a-zA-Z][a-zA-Z0-9+.-]*:";

/// All hyphens or none. The format alone would accept any subset of them, and also lists.
const UUID: &str = "^([0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$";

/// A duration in Go's format. The number of digits is limited, because kube panics if the sum
/// overflows.
const GO_DURATION: &str = concat!(
    r"^[+-]?(0|((0*[0-9]{1,14}(\.[0-9]*)?|\.[0-9]+)(m|h)",
    "|(0*[0-9]{1,17}(\\.[0-9]*)?|\\.[0-9]+)(ns|us|\u{b5}s|\u{3bc}s|ms|s)){1,20})$"
);

/// The separator of two units in jiff's friendly format, e.g. the comma in `1 hour, 30 minutes`.
macro_rules! next {
    () => {
        r"(,\s)?\s*"
    };
}

/// An optional number with its unit in jiff's friendly format. The digits are limited so that the
/// sum can't overflow.
macro_rules! unit {
    ($digits:literal, $label:literal) => {
        concat!("(", next!(), r"\d{1,", $digits, r"}\s*", $label, ")?")
    };
}

/// Like `unit!`, but the number may have a fraction, in which case it must be the last.
macro_rules! last_unit {
    ($digits:literal, $label:literal) => {
        concat!(
            "(",
            next!(),
            r"\d{1,",
            $digits,
            r"}(\s*",
            $label,
            r"|[.,]\d{1,9}\s*",
            $label,
            r"\s*$))?"
        )
    };
}

/// Hours and smaller units in jiff's friendly format, or a clock time. All of them are optional, so
/// users of this macro must put a word boundary in front to require a digit.
macro_rules! friendly_time {
    () => {
        concat!(
            "((",
            next!(),
            r"\d{1,8}:\d{1,9}:\d{1,9}([.,]\d{1,9})?)|",
            last_unit!("8", "(h|hrs?|hours?)"),
            last_unit!("10", "(m|mins?|minutes?)"),
            last_unit!("11", "(s|secs?|seconds?)"),
            last_unit!("14", "(ms|msecs?|millis?|milliseconds?)"),
            last_unit!("17", "([u\u{b5}]s(ecs?)?|micros?|microseconds?)"),
            unit!("18", "(ns|nsecs?|nanos?|nanoseconds?)"),
            r")\s*"
        )
    };
}

/// Hours and smaller units in ISO 8601. All of them are optional; the `\B` after the `T` requires a
/// digit.
macro_rules! iso_time {
    () => {
        concat!(
            r"[Tt]\B(\d{1,8}([Hh]|[.,]\d{1,9}[Hh]$))?(\d{1,10}([Mm]|[.,]\d{1,9}[Mm]$))?",
            r"(\d{1,11}([.,]\d{1,9})?[Ss])?"
        )
    };
}

/// A duration in hours and smaller units, e.g. `PT1H30M` or `1h 30m`.
const JIFF_DURATION: &str = concat!(r"^[+-]?([Pp]", iso_time!(), r"|\b", friendly_time!(), ")$");

/// Like `JIFF_DURATION`, but also with days and larger units, e.g. `P1Y2M` or `2 weeks, 3 days`.
const JIFF_SPAN: &str = concat!(
    r"^[+-]?([Pp]\B(\d{1,4}[Yy])?(\d{1,5}[Mm])?(\d{1,6}[Ww])?(\d{1,6}[Dd])?(",
    iso_time!(),
    r")?|\b",
    unit!("4", "(y|yrs?|years?)"),
    unit!("5", "(mos?|months?)"),
    unit!("6", "(w|wks?|weeks?)"),
    unit!("6", "(d|days?)"),
    friendly_time!(),
    ")$"
);

/// The regular expression suggested by semver.org.
const SEMVER: &str = concat!(
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)",
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?",
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$"
);

pub(crate) fn leaf_schema(path: &str) -> Option<Schema> {
    let leaf = LEAVES.iter().find(|leaf| leaf.path == path)?;
    let text = of_type(SchemaType::String);
    Some(match leaf.wire {
        Wire::Text(format) => Schema {
            format: format.map(Into::into),
            ..text
        },
        Wire::Pattern(pattern) => Schema {
            pattern: Some(pattern.into()),
            ..text
        },
        // Put the format under `allOf`. Next to the type, it would make the API server accept a
        // list.
        Wire::Both(format, pattern) => Schema {
            all_of: vec![Schema {
                format: Some(format.into()),
                ..Schema::default()
            }],
            pattern: Some(pattern.into()),
            ..text
        },
        Wire::OneOf(texts) => Schema {
            enumeration: texts.iter().map(|text| json!(text)).collect(),
            ..text
        },
        Wire::Number => of_type(SchemaType::Number),
        Wire::AnyObject => any_object(),
        Wire::Texts(names) => Schema {
            properties: names
                .iter()
                .map(|name| ((*name).into(), of_type(SchemaType::String).into()))
                .collect(),
            required: names.iter().map(|name| (*name).into()).collect(),
            ..of_type(SchemaType::Object)
        },
        Wire::Any => any(),
    })
}

/// Finds a type in `LEAVES` or `std::net` by its name and the crate that declares it. That may be
/// an internal crate (e.g. `kube_core`), whereas paths in the table are those that users write.
#[cfg(feature = "schemars")]
pub(crate) fn leaf_of(home: &str, name: &str) -> Option<&'static str> {
    const ADDRESSES: &[&str] = &[
        "std::net::IpAddr",
        "std::net::Ipv4Addr",
        "std::net::Ipv6Addr",
        "std::net::SocketAddr",
        "std::net::SocketAddrV4",
        "std::net::SocketAddrV6",
    ];
    let home = match home {
        "core" => "std",
        "kube_core" => "kube",
        other => other,
    };
    let of_table = LEAVES.iter().map(|leaf| leaf.path);
    of_table.chain(ADDRESSES.iter().copied()).find(|path| {
        let ends = path.split("::").next().zip(path.rsplit("::").next());
        ends == Some((home, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_to_the_api_server() {
        for row in LEAVES {
            let schema = leaf_schema(row.path).expect("a row");
            assert!(
                schema
                    .format
                    .is_none_or(|format| crate::FORMATS.contains(&&*format)),
                "{}",
                row.path
            );
        }
        assert_eq!(leaf_schema("chrono::TimeDelta"), None);
    }
}
