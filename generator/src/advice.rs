//! Advice for types that have their schema from schemars or kube, whose derives know no marker of ours.
//!
//! Help is written for `derive(CrdSchema)`, whose attributes such a type does not have: following it, a program would not
//! compile. Here is the same for what schemars and kube understand. `generator/tests/advice.rs` follows each.

use rbuilder_schema::ESCAPE;

/// The advice about a type: as it is if the type has `derive(CrdSchema)`.
pub(crate) fn for_type(help: &str, is_ours: bool) -> String {
    if is_ours {
        help.to_owned()
    } else {
        for_schemars(help)
    }
}

/// The advice for a type without `derive(CrdSchema)` in place of advice for one with it.
fn for_schemars(help: &str) -> String {
    let mut help = help.to_owned();
    for (ours, theirs) in ADVICE {
        if help.contains(ours) {
            help = help.replace(ours, theirs);
        }
    }
    help
}

/// The advice about a file in the folder of a published package.
pub(crate) fn for_published(folder: &str) -> String {
    let package = folder.rsplit('/').next().unwrap_or(folder);
    format!(
        "`{package}` is a published package: describe the JSON on the field of yours that leads here, with `#[schemars(with = \"…\")]`, or \
         `#[kube(schema_type = \"…\")]` under `derive(CrdSchema)`"
    )
}

/// A type with the same form, for fields.
const SAME_FORM: &str = "describe its JSON: `#[schemars(with = \"String\")]` names a type with the same form, which is an `Option` if the field may be absent; \
                         `#[schemars(schema_with = \"function\")]` names a function that returns the schema";

/// A schema that is written by hand, for types.
const BY_HAND: &str = "describe its JSON on the type: replace `JsonSchema` among its derives by an `impl JsonSchema` whose \
                       `json_schema` returns the schema, such as `String::json_schema(generator)` or `json_schema!({ … })`";

/// A field with any content.
const ANY: &str = "put `#[schemars(with = \"serde_json::Value\", extend(\"x-kubernetes-preserve-unknown-fields\" = true))]` on";

/// Our advice and theirs, by the words in a help line.
const ADVICE: &[(&str, &str)] = &[
    (ESCAPE, SAME_FORM),
    (
        "put `#[kube(schema_type = \"…\")]`, `#[kube(schema = { … })]` or `#[kube(schemaless)]` on the field",
        "put `#[schemars(with = \"…\")]` or `#[schemars(schema_with = \"…\")]` on the field",
    ),
    (
        "describe its JSON on the type: `#[crd(schema_type = \"String\")]` names a type with the same form, `#[crd(schema = { … })]` gives the schema itself",
        BY_HAND,
    ),
    ("put `#[kube(schemaless, preserve_unknown_fields)]` on", ANY),
    (
        "put `#[kube(schemaless, embedded_resource)]` on the field",
        "put `#[schemars(with = \"serde_json::Value\", extend(\"x-kubernetes-preserve-unknown-fields\" = true))]` on the field",
    ),
    (
        "add `CrdSchema` to its derives",
        "add `JsonSchema` to its derives",
    ),
    (
        "or a string: `#[kube(schema_type = \"String\")]` and",
        "or a string: `#[schemars(with = \"String\")]` and",
    ),
    (
        "accept any content with `#[crd(preserve_unknown_fields)]` on the enum",
        "accept any content: replace `JsonSchema` among its derives by an `impl JsonSchema` that returns `json_schema!({ \"x-kubernetes-preserve-unknown-fields\": true })`",
    ),
    (
        "write the schema of the spec: `#[crd(schema = { \"type\": \"object\" })]`",
        "write the `impl JsonSchema` in this package",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_marker_of_ours_is_left() {
        for (ours, theirs) in ADVICE {
            assert!(
                ours.contains("kube(") || ours.contains("crd(") || ours.contains("CrdSchema"),
                "{ours}"
            );
            let help = for_schemars(&format!("do this, or {ours}"));
            assert!(help.contains(theirs), "{help}");
        }
        let plain = "use `k8s_openapi::ByteString`, which is a base64 string";
        assert_eq!(for_schemars(plain), plain);
    }
}
