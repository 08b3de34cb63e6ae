//! If served versions differ, they need a conversion.

use super::support::{PRELUDE, run};

/// The two versions of the kind have different fields.
fn said(first: &str, second: &str, keys: &str) -> Vec<String> {
    let version = |name: &str, fields: &str, keys: &str| {
        format!(
            "pub mod {name} {{ {PRELUDE} #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
             #[kube(group = \"g.example.com\", version = \"{name}\", kind = \"Cup\"{keys})]\n\
             pub struct CupSpec {{ {fields} }} }}\n"
        )
    };
    let source = version("v1", first, "") + &version("v2", second, keys);
    run(&[("src/lib.rs", &source)])
        .diagnostics
        .into_iter()
        .map(|said| format!("{:?}: {}", said.severity, said.message))
        .collect()
}

#[test]
fn reports_differences_without_conversion() {
    let other = ", storage = false";
    assert_eq!(said("pub a: String", "pub a: String", other), [""; 0]);
    assert_eq!(
        said("pub a: String", "pub a: i32", other),
        [
            "Error: `.spec.a` of `Cup` is a string in version `v1` and an integer in version `v2`, and nothing converts it"
        ]
    );
    assert_eq!(
        said("pub a: Vec<i32>", "pub a: Vec<i32>, pub b: Option<String>", other),
        [
            "Warning: only version `v2` of `Cup` has `.spec.b`: who writes an object as `v1` removes the field, because nothing \
             converts it"
        ]
    );
    assert_eq!(
        said("pub a: Vec<i32>", "pub a: Vec<String>", other),
        [
            "Error: `.spec.a[]` of `Cup` is an integer in version `v1` and a string in version `v2`, and nothing converts it"
        ]
    );
    assert_eq!(
        said("pub a: String", "pub a: i32", ", storage = false, served = false"),
        [""; 0]
    );
    let converted = ", storage = false)] #[crd(conversion";
    assert_eq!(said("pub a: String", "pub a: i32", converted), [""; 0]);
}
