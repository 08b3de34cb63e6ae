//! In these cases, rbuilder deviates from the server on purpose. Each has a reason.

/// The server ignores these values if they are empty.
const EMPTY: &str =
    "the server takes an empty text for one that is not there, and whoever writes it means something";
/// Cargo, rustc or serde's derive report the mistake, so nothing can be deployed.
const NOT_BUILT: &str = "nothing of it can be built, which cargo and rustc tell at the place itself";

const NEVER_APPLIES: &str = "the server looks at the alternatives of the whole object only, where it refuses them; elsewhere the field is \
     pruned and the alternative is about nothing";

/// The first column is a slug, in which `*` matches any text. The second one says why we accept a
/// mistake or reject a correct case.
pub(crate) const EXCEPTIONS: &[(&str, &str)] = &[
    ("cel/field-path-empty", EMPTY),
    ("cel/message-empty", EMPTY),
    ("cel/message-expression-empty", EMPTY),
    ("crd/conversion-bundle-empty", EMPTY),
    ("crd/conversion-path-empty", EMPTY),
    ("key/column-format-empty", EMPTY),
    ("key/scale-selector-empty", EMPTY),
    ("presence/external-docs-without-a-url", EMPTY),
    ("singular/empty", EMPTY),
    ("webhook/path-empty", EMPTY),
    (
        "crd/annotation-upper-case-domain",
        "a label's key may have no such domain, annotations and labels have one check, and nobody writes it",
    ),
    (
        "crd/conversion-url-with-a-space",
        "the server takes the address and cannot call it",
    ),
    (
        "key/column-a-space",
        "the server shows the column, which is always empty: kubectl's grammar ends the name at the space",
    ),
    (
        "key/column-closing-brace-inside",
        "the server shows the column with what stands behind the brace as text in every row",
    ),
    (
        "key/column-double-equals-missing",
        "the server shows the column and fails to fill it in every row",
    ),
    (
        "key/scale-spec-dot",
        "the path names no field, so nothing can be scaled",
    ),
    (
        "presence/preserve-with-false",
        "the marker is a flag, here as in kube: without a value it is on, and off is not to write it",
    ),
    (
        "literal/unique-items-false",
        "the key says nothing so, and with `true` the server refuses it: no schema of ours has it",
    ),
    (
        "webhook/review-versions-old-alone",
        "the runtime answers reviews of version v1 only",
    ),
    (
        "webhook/review-versions-one-unknown",
        "the server passes over versions that it does not know, and there is only one that it does",
    ),
    (
        "webhook/selector-empty",
        "an empty selector is as if there were none, and whoever writes it means to select",
    ),
    ("package/cargo-bin-elsewhere", NOT_BUILT),
    ("package/cargo-edition-*", NOT_BUILT),
    ("package/cargo-feature-unknown", NOT_BUILT),
    ("package/cargo-k8s-openapi-unknown-version", NOT_BUILT),
    ("package/cargo-without-*", NOT_BUILT),
    ("serde/adjacent-with*", NOT_BUILT),
    (
        "serde/cfg-feature-unknown",
        "rustc warns of it (`unexpected_cfgs`), and the field is in no build",
    ),
    ("serde/getter", NOT_BUILT),
    ("serde/transparent-of-two", NOT_BUILT),
    ("serde/untagged-and-tagged", NOT_BUILT),
    (
        "serde/flatten-with-a-rename",
        "serde passes over the name as well: schema and program agree",
    ),
    ("source/bom", NOT_BUILT),
    ("source/derive-without-serialize", NOT_BUILT),
    ("source/rbac-misspelt", NOT_BUILT),
    (
        "rbac/names-in-upper-case",
        "names of objects are for each kind to say: those of roles may be in upper case",
    ),
    (
        "bounds/enum-of-a-variant-and-none",
        "a field's `enum` and its type's intersect: what the type does not allow is not written",
    ),
    (
        "bounds/exclusive-highest",
        "the bound is the last value that the Rust type has, which nobody shuts out by a slip",
    ),
    (
        "format/date-on-a-time",
        "a format that is written is taken for what is meant, whatever the type's is",
    ),
    (
        "format/example-against-the-format",
        "an example is for readers: type and bounds are asked of it, formats are not",
    ),
    (
        "format/uuid-against-max-length",
        "which lengths the texts of a format have is not known",
    ),
    (
        "key/column-nowhere-in-a-filter",
        "what a filter compares is not followed: the column has a field to show",
    ),
    (
        "literal/not-preserving",
        "`false` is not written, which the server takes and which means the same",
    ),
    ("literal/one-of-with-*-unknown-outside", NEVER_APPLIES),
    ("logic/fields-of-a-text", NEVER_APPLIES),
    ("logic/items-of-a-text", NEVER_APPLIES),
    ("logic/unknown-field", NEVER_APPLIES),
    (
        "literal/values-*",
        "our schemas say it with `x-kubernetes-preserve-unknown-fields`, or with fields alone",
    ),
    (
        "rbac/group-of-ingresses",
        "clusters before 1.22 serve the group, and rules for both are common",
    ),
    (
        "rbac/group-old",
        "clusters before 1.22 serve the group, and rules for both are common",
    ),
    (
        "rbac/names-with-a-comma",
        "names of roles and of what others serve may hold a comma",
    ),
    ("rbac/urls-with-a-comma", "a path may hold a comma"),
    (
        "rbac/namespaced-namespaces",
        "a Role may allow what is asked of its own namespace",
    ),
    (
        "rbac/resource-own-another",
        "another package may have a kind of the group; a name that is nearly one of ours is told",
    ),
    (
        "rbac/verb-bind-of-pods",
        "verbs beside those of requests are for admission plugins to ask about, whatever the resource",
    ),
    ("source/spec-as-enum", NOT_BUILT),
];

/// In these cases, the edits in the tables don't result in the generated objects. Either the table
/// sends a mistake that rbuilder would not write, or rbuilder writes the same thing in another way.
pub(crate) const OTHERWISE: &[&str] = &[
    "bounds/enum-of-a-variant-and-none",
    "bounds/i32-maximum-above",
    "bounds/i32-minimum-below",
    "bounds/i64-highest",
    "bounds/u8-maximum-above",
    "bounds/u8-minimum-below",
    "cel/twice-the-same",
    "default/map-with-a-key-against-the-pattern",
    "literal/default-null",
    "literal/default-null-not-nullable",
    "literal/enum-empty",
    "literal/enum-with-null",
    "literal/not-preserving",
    "literal/required-empty",
    "literal/required-twice",
    "literal/rule-twice",
    "literal/rule-with-unknown-key",
    "literal/values-true",
    "presence/nullable-with-an-enum",
    "rbac/array-with-semicolons",
    "rbac/verb-star-among-others",
    "versions/another-kind",
];
