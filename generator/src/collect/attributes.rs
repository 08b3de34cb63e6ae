//! Attributes of items: which there are, and which leave the item as it is.

use syn::{Attribute, Item};

/// Attributes that leave the item as it is, or say only how it is written and built.
const HARMLESS: &[&str] = &[
    "allow",
    "automatically_derived",
    "cfg",
    "cfg_attr",
    "coverage",
    "crd",
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
    "skip_serializing_none",
    "validate",
    "warn",
    "webhook",
    "x_kube",
];

/// Attributes of tools, which rustc itself ignores.
const TOOLS: &[&str] = &["clippy", "diagnostic", "rustfmt"];

/// Whether the item is the same with the attribute and without it.
pub(super) fn is_harmless(attr: &Attribute) -> bool {
    let segments = &attr.path().segments;
    let is_one_of = |segment: Option<&syn::PathSegment>, names: &[&str]| {
        segment.is_some_and(|segment| names.iter().any(|name| segment.ident == name))
    };
    segments.len() > 1 && is_one_of(segments.first(), TOOLS) || is_one_of(segments.last(), HARMLESS)
}

/// `#[test]`, `#[tokio::test]` and the like.
pub(super) fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "test")
    })
}

/// The attributes of any item.
pub(super) fn of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
