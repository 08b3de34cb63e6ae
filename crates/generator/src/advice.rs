//! Translates help for types that derive schemars' `JsonSchema` or use kube alone.
//!
//! Help texts are written for `derive(CrdSchema)`, whose attributes don't compile on other types.
//! This module swaps them for attributes that schemars and kube accept.
//! `crates/generator/tests/advice.rs` applies each piece of advice,
//! `crates/runtime/tests/advice.rs` compiles the result with the current kube, and
//! `cargo xtask advice` does so with older releases.
//!
//! Older versions of kube lack some attributes and depend on an older schemars, so [`for_kube`]
//! also replaces advice that the program's version of kube would reject.

use rbuilder_schema::ESCAPE;

use crate::kube_release::KubeRelease;

/// Adapts `help` to a type, unless the type derives `CrdSchema`.
pub(crate) fn for_type(help: &str, is_ours: bool) -> String {
    if is_ours {
        help.to_owned()
    } else {
        for_schemars(help)
    }
}

fn for_schemars(help: &str) -> String {
    let mut help = help.to_owned();
    for (ours, theirs) in ADVICE {
        if help.contains(ours) {
            help = help.replace(ours, theirs);
        }
    }
    help
}

/// Rewrites advice about a field for a status type, which has no field to put an attribute on.
pub(crate) fn for_status(help: &str) -> String {
    let of_field = match help.split_once("put `#[") {
        Some((before, after)) if after.ends_with("on the field") => Some(before),
        _ => help.strip_suffix(ESCAPE),
    };
    match of_field {
        Some(before) => format!("{before}write the status as a struct of this package"),
        None => help.to_owned(),
    }
}

pub(crate) fn for_published(folder: &str) -> String {
    let package = folder.rsplit('/').next().unwrap_or(folder);
    format!(
        "`{package}` is a published package: describe the JSON on the field of yours that leads here, with `#[schemars(with = \"…\")]`, or \
         `#[kube(schema_type = \"…\")]` under `derive(CrdSchema)`"
    )
}

/// Advice for fields: name another type with the same JSON.
const SAME_FORM: &str = "describe its JSON: `#[schemars(with = \"String\")]` names a type with the same form, which is an `Option` if the field may be absent; \
                         `#[schemars(schema_with = \"function\")]` names a function that returns the schema";

const BY_HAND: &str = "describe its JSON on the type: replace `JsonSchema` among its derives by an `impl JsonSchema` whose \
                       `json_schema` returns the schema, such as `String::json_schema(generator)` or `json_schema!({ … })`";

const ANY: &str = "put `#[schemars(with = \"serde_json::Value\", extend(\"x-kubernetes-preserve-unknown-fields\" = true))]` on";

/// A separate constant so that [`SINCE`] can replace it for old versions of schemars.
pub(crate) const JSON_OF_DEFAULT: &str = "write its JSON as `#[schemars(extend(\"default\" = …))]`";

/// Pairs of advice for `derive(CrdSchema)` and the equivalent for plain schemars.
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
    ("add `#[crd(annotation(", "add `#[kube(annotation("),
    (
        "write the schema of the spec: `#[crd(schema = { \"type\": \"object\" })]`",
        "write the `impl JsonSchema` in this package",
    ),
];

pub(crate) fn for_kube(help: &str, kube: KubeRelease) -> String {
    let mut help = help.to_owned();
    for (since, newer, older) in SINCE {
        if kube < *since && help.contains(newer) {
            help = replace_words(&help, newer, older);
        }
    }
    help
}

fn replace_words(help: &str, words: &str, by: &str) -> String {
    let Some((before, after)) = help.split_once(words) else {
        return help.to_owned();
    };
    // If `words` opens a code span without closing it, drop the rest of the span too, so that `by`
    // isn't followed by half an attribute.
    let is_open = words.matches('`').count() % 2 == 1;
    let after = match after.split_once('`') {
        Some((_, after)) if is_open => after,
        _ => after,
    };
    format!("{before}{by}{after}")
}

/// `(version, advice, replacement)`: the advice compiles with `version` of kube or newer; users of
/// an older one get the replacement.
const SINCE: &[(KubeRelease, &str, &str)] = &[
    (
        KubeRelease::ANNOTATION,
        "or add `#[kube(annotation(",
        "or, with kube 0.97 or newer, add an annotation to `#[kube(…)]`",
    ),
    (
        KubeRelease::STORAGE,
        "write `storage = false` on the other versions, which needs kube 0.98 or newer",
        "name the stored version where the versions are merged: `merge_crds(vec![…], \"v1\")`",
    ),
    (
        KubeRelease::VALIDATION,
        "write a CEL rule, `validation = \"…\"`, or move the constraint to a field",
        "move the constraint to a field",
    ),
    (
        KubeRelease::SCHEMARS_1,
        ANY,
        "put `#[schemars(schema_with = \"function\")]`, with a function that returns \
         `serde_json::from_value(json!({ \"x-kubernetes-preserve-unknown-fields\": true })).unwrap()`, on",
    ),
    (
        KubeRelease::SCHEMARS_1,
        "`#[schemars(extend(\"maxProperties\" = 64, \"x-kubernetes-validations\" = ",
        "`#[schemars(schema_with = \"function\")]` names a function that returns the schema, with `maxProperties` and \
         with a rule in `x-kubernetes-validations`",
    ),
    (
        KubeRelease::SCHEMARS_1,
        JSON_OF_DEFAULT,
        "write its JSON in the schema that a function returns: `#[schemars(schema_with = \"function\")]`",
    ),
    (
        KubeRelease::SCHEMARS_1,
        "`#[schemars(extend(\"default\" = …))]`",
        "`#[schemars(default = \"function\")]`, whose function is such a value",
    ),
    (
        KubeRelease::SCHEMARS_1,
        "`json_schema!({ … })`",
        "`serde_json::from_value(json!({ … })).unwrap()`",
    ),
    (
        KubeRelease::SCHEMARS_1,
        "`json_schema!({ \"x-kubernetes-preserve-unknown-fields\": true })`",
        "`serde_json::from_value(json!({ \"x-kubernetes-preserve-unknown-fields\": true })).unwrap()`",
    ),
    // Catch-all for `extend(…)` calls that no row above has replaced. Must come last.
    (
        KubeRelease::SCHEMARS_1,
        "`#[schemars(extend(",
        "`#[schemars(schema_with = \"function\")]`, with a function that returns the schema with this key",
    ),
    (
        KubeRelease::SCHEMARS_1,
        "`#[schemars(with = \"serde_json::Value\", extend(",
        "`#[schemars(schema_with = \"function\")]`, with a function that returns the schema with these keys",
    ),
    (
        KubeRelease::RBUILDER,
        "; or derive `CrdSchema` instead of `JsonSchema` and use `#[kube(schema = { \"type\": \"string\" })]` or `#[kube(schemaless)]`",
        "",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_attributes_for_schemars_and_older_kube() {
        for (ours, theirs) in ADVICE {
            assert!(
                ours.contains("kube(") || ours.contains("crd(") || ours.contains("CrdSchema"),
                "{ours}"
            );
            let help = for_schemars(&format!("do this, or {ours}"));
            assert!(help.contains(theirs), "{help}");
        }
        // Programs with a current kube get the first text, so it must be left as it is.
        for (since, newer, older) in SINCE {
            let end = if newer.matches('`').count() % 2 == 1 {
                "…)]`"
            } else {
                ""
            };
            let help = format!("do this, or {newer}{end} there");
            assert_eq!(for_kube(&help, *since), help);
            let told = for_kube(&help, KubeRelease::new(0, 78));
            assert_eq!(told, format!("do this, or {older} there"));
        }
        let help = for_schemars(
            "run it, or put `#[kube(schema_type = \"…\")]`, `#[kube(schema = { … })]` or `#[kube(schemaless)]` on the field",
        );
        assert_eq!(
            for_status(&help),
            "run it, or write the status as a struct of this package"
        );
        let plain = "use `k8s_openapi::ByteString`, which is a base64 string";
        assert_eq!(for_schemars(plain), plain);
        assert_eq!(for_status(plain), plain);
    }
}
