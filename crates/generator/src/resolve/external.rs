//! Types of other crates by path: std's containers and prelude, and re-exports between crates.

pub(super) fn find_primitive(name: &str) -> Option<&'static str> {
    const PRIMITIVES: &[&str] = &[
        "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16", "u32",
        "u64", "u128", "usize",
    ];
    PRIMITIVES.iter().copied().find(|primitive| *primitive == name)
}

/// Returns the full path of a primitive or of a type in std's prelude.
pub(super) fn prelude_path(name: &str) -> Option<&'static str> {
    Some(match name {
        "Option" => "std::option::Option",
        "Vec" => "std::vec::Vec",
        "String" => "std::string::String",
        "Box" => "std::boxed::Box",
        _ => find_primitive(name)?,
    })
}

/// A generic type whose schema depends on its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Constructor {
    Option,
    /// Serialized like its content.
    Pointer,
    /// `NonZero<T>` is equivalent to a named type, e.g. `NonZeroU8`.
    NonZero,
    List,
    Set,
    Map,
}

/// `path` must be canonical.
pub(super) fn find_constructor(path: &str) -> Option<Constructor> {
    Some(match path {
        "std::option::Option" => Constructor::Option,
        "std::boxed::Box"
        | "std::sync::Arc"
        | "std::rc::Rc"
        | "std::borrow::Cow"
        | "std::cell::RefCell"
        | "std::cell::Cell"
        | "std::sync::Mutex"
        | "std::sync::RwLock"
        | "std::num::Wrapping"
        | "std::num::Saturating"
        | "std::cmp::Reverse"
        | "ordered_float::OrderedFloat"
        | "ordered_float::NotNan" => Constructor::Pointer,
        "std::num::NonZero" => Constructor::NonZero,
        "std::vec::Vec"
        | "std::collections::VecDeque"
        | "std::collections::LinkedList"
        | "std::collections::BinaryHeap" => Constructor::List,
        "std::collections::BTreeSet" | "std::collections::HashSet" | "indexmap::IndexSet" => Constructor::Set,
        "std::collections::BTreeMap" | "std::collections::HashMap" | "indexmap::IndexMap" => Constructor::Map,
        _ => return None,
    })
}

/// Types for which a webhook handles the argument, e.g. the object in an `AdmissionRequest`.
pub(crate) fn is_transparent(path: &str) -> bool {
    matches!(
        find_constructor(path),
        Some(Constructor::Option | Constructor::Pointer)
    ) || matches!(
        path.rsplit("::").next(),
        Some("AdmissionRequest" | "AdmissionReview")
    )
}

/// Returns true if this type is known, including types known to have no schema.
pub(super) fn is_read(path: &str) -> bool {
    find_constructor(path).is_some()
        || rbuilder_schema::refused(path).is_some()
        || rbuilder_schema::is_known(path)
}

/// Types of these crates are known by name, so their source is never read.
const KNOWN_CRATES: &[&str] = &[
    "bytes",
    "chrono",
    "indexmap",
    "ipnet",
    "jiff",
    "k8s_openapi",
    "kube",
    "kube_client",
    "kube_core",
    "kube_derive",
    "kube_runtime",
    "ordered_float",
    "rbuilder",
    "schemars",
    "semver",
    "serde",
    "serde_json",
    "url",
    "uuid",
];

/// Guesses the name of a crate in Rust code when its manifest isn't read.
pub(crate) fn crate_name(package: &str) -> String {
    match package {
        // The library and the package have different names.
        "rbuilder-runtime" => "rbuilder".to_owned(),
        _ => package.replace('-', "_"),
    }
}

pub(crate) fn is_known_crate(name: &str) -> bool {
    KNOWN_CRATES.contains(&name)
}

/// Path prefixes and their targets.
const REEXPORTS: &[(&str, &str)] = &[
    ("rbuilder::kube", "kube"),
    ("rbuilder::k8s_openapi", "k8s_openapi"),
    ("rbuilder::serde_json", "serde_json"),
    ("kube_core", "kube::core"),
    ("kube::k8s_openapi", "k8s_openapi"),
    (
        "kube::api::ObjectMeta",
        "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
    ),
    (
        "kube::core::ObjectMeta",
        "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
    ),
    (
        "kube::core::metadata::ObjectMeta",
        "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
    ),
    ("k8s_openapi::serde_json", "serde_json"),
    ("k8s_openapi::jiff", "jiff"),
    ("k8s_openapi::chrono", "chrono"),
    ("kube::core::duration", "kube::core"),
    ("kube::core::metadata::TypeMeta", "kube::core::TypeMeta"),
    ("chrono::prelude", "chrono"),
    ("chrono::naive", "chrono"),
    ("serde_json::value::Value", "serde_json::Value"),
    ("serde_json::map::Map", "serde_json::Map"),
    ("std::collections::btree_map", "std::collections"),
    ("std::collections::hash_map", "std::collections"),
    ("std::collections::btree_set", "std::collections"),
    ("std::collections::hash_set", "std::collections"),
    ("std::collections::vec_deque", "std::collections"),
    ("std::primitive", ""),
    ("std::prelude::v1", ""),
];

/// Replaces re-exports by their targets, so that each type has only one path.
pub(super) fn canonical_path(segments: &[String]) -> String {
    let mut path = segments.join("::");
    // A re-export may lead to another one, but chains are short.
    for _ in 0..4 {
        let moved = REEXPORTS.iter().find_map(|(from, to)| {
            let rest = path.strip_prefix(from)?;
            (rest.is_empty() || rest.starts_with("::"))
                .then(|| format!("{to}{rest}").trim_start_matches("::").to_owned())
        });
        match moved {
            Some(moved) => path = moved,
            None => break,
        }
    }
    // `use std::usize` imports a module, which does not shadow the primitive type.
    let beside_module = path.strip_prefix("std::").and_then(find_primitive);
    match beside_module.or_else(|| prelude_path(&path)) {
        Some(home) => home.to_owned(),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_reexports_to_canonical_path() {
        let cases = [
            ("std::string::String", "std::string::String"),
            (
                "std::collections::btree_map::BTreeMap",
                "std::collections::BTreeMap",
            ),
            ("std::primitive::i32", "i32"),
            ("std::usize", "usize"),
            ("std::prelude::v1::Vec", "std::vec::Vec"),
            (
                "rbuilder::kube::core::ObjectMeta",
                "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
            ),
            ("kube_core::Duration", "kube::core::Duration"),
            ("kubernetes::x", "kubernetes::x"),
        ];
        for (input, expected) in cases {
            let segments: Vec<String> = input.split("::").map(str::to_owned).collect();
            assert_eq!(canonical_path(&segments), expected);
        }
    }
}
