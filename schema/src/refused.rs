//! Leaf types that serde writes in a form no CRD should have, and the ways out.

/// Help, in both front ends, for a type whose representation on the wire cannot be read.
pub const ESCAPE: &str = "say what it is on the wire: `#[kube(schema_type = \"String\")]` names a type with the same \
                          form, `#[kube(schema = { … })]` is the schema itself, `#[kube(schemaless)]` leaves all to the \
                          other markers of the field";

/// Returns message and help for a type that has no valid schema, by its full Rust path.
pub fn refused(path: &str) -> Option<(&'static str, &'static str)> {
    Some(match path {
        "i128" | "u128" => (
            "128 bits fit into no format of a CRD",
            "use `i64`, or a text: `#[kube(schema_type = \"String\")]` with a `with` module that writes one",
        ),
        "std::time::Duration" => (
            "a `std::time::Duration` is an object of seconds and nanoseconds on the wire, which nobody wants to write",
            "use `kube::core::Duration`, which is a text such as `1h30m`",
        ),
        "std::time::SystemTime" => (
            "a `std::time::SystemTime` is an object of seconds and nanoseconds on the wire, which nobody wants to write",
            "use `k8s_openapi::apimachinery::pkg::apis::meta::v1::Time`, which is a text",
        ),
        "std::marker::PhantomData" => (
            "`PhantomData` is `null` on the wire, which a CRD cannot hold",
            "put `#[serde(skip)]` on the field",
        ),
        "std::ffi::OsString" | "std::ffi::OsStr" => (
            "an `OsString` is a list of numbers on the wire, of another form on each system",
            "use `String`",
        ),
        "bytes::Bytes" | "bytes::BytesMut" => (
            "a `Bytes` is a list of numbers on the wire",
            "use `k8s_openapi::ByteString`, which is a text in base64",
        ),
        "chrono::TimeDelta" | "chrono::Duration" => (
            "a `TimeDelta` is a list of seconds and nanoseconds on the wire, which nobody wants to write",
            "use `kube::core::Duration`, which is a text such as `1h30m`",
        ),
        _ => return None,
    })
}
