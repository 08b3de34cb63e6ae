//! Leaf types whose JSON form doesn't belong in a CRD, and what to use instead.

/// Help, in both front ends, for a type whose JSON representation is unknown.
pub const ESCAPE: &str = "describe its JSON: `#[kube(schema_type = \"String\")]` names a type with the same form, which is an `Option` if the field may be absent, \
                          `#[kube(schema = { … })]` gives the schema itself, `#[kube(schemaless)]` uses only the other \
                          markers of the field";

/// Help, in both front ends, for a type that contains itself.
pub const RECURSION: &str = "put `#[kube(schemaless, preserve_unknown_fields)]` on this field: the schema of a CRD cannot be recursive";

/// Returns the message and the help for a tuple, which has no valid schema.
pub fn refused_tuple(is_empty: bool) -> (&'static str, &'static str) {
    match is_empty {
        true => (
            "`()` is `null` in JSON, which a CRD cannot store",
            "remove the field",
        ),
        false => (
            "a tuple has no structural schema; the items of a list in a CRD have one type",
            "use a struct with named fields",
        ),
    }
}

/// Returns the message and the help for a type without a valid schema. `path` is its full Rust
/// path.
pub fn refused(path: &str) -> Option<(&'static str, &'static str)> {
    Some(match path {
        "i128" | "u128" => (
            "a CRD has no format for 128-bit integers",
            "use `i64`, or a string: `#[kube(schema_type = \"String\")]` and `#[serde(with = \"…\")]` with a module that serializes one",
        ),
        "std::time::Duration" => (
            "a `std::time::Duration` is an object of seconds and nanoseconds in JSON, not a duration as in Kubernetes",
            "use `kube::core::Duration`, which is a string such as `1h30m`",
        ),
        "std::time::SystemTime" => (
            "a `std::time::SystemTime` is an object of seconds and nanoseconds in JSON, not a timestamp as in Kubernetes",
            "use `k8s_openapi::apimachinery::pkg::apis::meta::v1::Time`, which is an RFC 3339 string",
        ),
        "std::marker::PhantomData" => (
            "`PhantomData` is `null` in JSON, which a CRD cannot store",
            "put `#[serde(skip)]` on the field",
        ),
        "std::ffi::OsString" | "std::ffi::OsStr" => (
            "an `OsString` is a list of numbers in JSON, in a form that depends on the operating system",
            "use `String`",
        ),
        "bytes::Bytes" | "bytes::BytesMut" => (
            "a `Bytes` is a list of numbers in JSON",
            "use `k8s_openapi::ByteString`, which is a base64 string",
        ),
        "chrono::TimeDelta" | "chrono::Duration" => (
            "a `TimeDelta` is a list of seconds and nanoseconds in JSON, not a duration as in Kubernetes",
            "use `kube::core::Duration`, which is a string such as `1h30m`",
        ),
        _ => return None,
    })
}
