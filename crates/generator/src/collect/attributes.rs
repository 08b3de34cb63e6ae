//! Tells which attributes may change the item that they are on.

use rbuilder_reader::grammar::Item;
use rbuilder_reader::{Attribute, Span, read_derives};

use crate::package::SerdeDerives;

/// Attributes that don't change the item. Some of them configure a derive.
const HARMLESS: &[&str] = &[
    "allow",
    "automatically_derived",
    "cel_validate",
    "cfg",
    "cfg_attr",
    "coverage",
    "crd",
    "csv",
    "deny",
    "deprecated",
    "derive_where",
    "doc",
    "expect",
    "forbid",
    "kube",
    "macro_use",
    "must_use",
    "no_implicit_prelude",
    "non_exhaustive",
    "path",
    "rbac",
    "repr",
    "schemars",
    "serde",
    "serde_as",
    "skip_serializing_none",
    "validate",
    "warn",
    "webhook",
    "x_kube",
];

/// rustc ignores the attributes of these tools.
const TOOLS: &[&str] = &["clippy", "diagnostic", "rustfmt"];

pub(super) fn is_harmless(attr: &Attribute<'_>) -> bool {
    let mut segments = attr.segments();
    let first = segments.next().unwrap_or_default();
    match segments.last() {
        None => HARMLESS.contains(&first),
        Some(last) => TOOLS.contains(&first) || HARMLESS.contains(&last),
    }
}

/// Also matches e.g. `#[tokio::test]`.
pub(super) fn is_test(attrs: &[Attribute<'_>]) -> bool {
    attrs.iter().any(|attr| attr.last_segment() == "test")
}

/// Derives whose JSON doesn't follow the fields and variants of the type.
const OTHER_FORMS: &[&str] = &[
    "Serialize_repr",
    "Deserialize_repr",
    "SerializeDisplay",
    "DeserializeFromStr",
    "Serialize_tuple",
    "Deserialize_tuple",
];

pub(super) fn serde_derives(attrs: &[Attribute<'_>]) -> SerdeDerives {
    let mut found = SerdeDerives::default();
    for path in read_derives(attrs) {
        match path.last().copied().unwrap_or_default() {
            "Serialize" => found.writes = true,
            "Deserialize" => found.reads = true,
            name => {
                let other = OTHER_FORMS.iter().find(|other| **other == name);
                found.other = found.other.or(other.copied());
            }
        }
    }
    found
}

pub(super) fn whole_span(item: &Item<'_>) -> Span {
    let [front, _] = item.written;
    let start = if front.start < front.end {
        front.start.min(item.span.start)
    } else {
        item.span.start
    };
    Span {
        start,
        end: item.span.end,
    }
}
