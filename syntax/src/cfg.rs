//! Conditional compilation, evaluated as the generator must: with a set of features and without tests.
//!
//! rustc has done this before a derive sees its item; source text that is only read needs it done here.

use std::collections::BTreeSet;

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Fields, Item, Lit, Meta, Token};

use crate::Session;

/// What is on: everything `cfg(…)` may ask about an operator's build.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    features: BTreeSet<String>,
}

impl Cfg {
    /// The build of a Linux container with these features on.
    pub fn with_features(features: impl IntoIterator<Item = String>) -> Self {
        Cfg {
            features: features.into_iter().collect(),
        }
    }

    /// The truth of a predicate, or nothing when it asks about something that cannot be known from source.
    pub fn holds(&self, predicate: &Meta) -> Option<bool> {
        match predicate {
            Meta::Path(path) => flag(&path.get_ident()?.to_string()),
            Meta::NameValue(pair) => self.option(&pair.path.get_ident()?.to_string(), &text(&pair.value)?),
            Meta::List(list) => {
                let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
                let parts = list.parse_args_with(parse).ok()?;
                let mut truths = parts.iter().map(|part| self.holds(part));
                match list.path.get_ident()?.to_string().as_str() {
                    "all" => every(truths),
                    "any" => every(truths.map(negate)).map(|all_false| !all_false),
                    "not" if parts.len() == 1 => negate(truths.next()?),
                    _ => None,
                }
            }
        }
    }

    fn option(&self, key: &str, value: &str) -> Option<bool> {
        match key {
            "feature" => Some(self.features.contains(value)),
            "target_os" => Some(value == "linux"),
            "target_family" => Some(value == "unix"),
            "target_pointer_width" => Some(value == "64"),
            "target_endian" => Some(value == "little"),
            "panic" => Some(value == "unwind"),
            _ => None,
        }
    }
}

fn flag(name: &str) -> Option<bool> {
    match name {
        "unix" | "true" => Some(true),
        "windows" | "test" | "doc" | "doctest" | "miri" | "proc_macro" | "debug_assertions" | "docsrs"
        | "false" => Some(false),
        _ => None,
    }
}

fn negate(truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| !truth)
}

/// Whether all hold; one that is false decides even beside one that is unknown.
fn every(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let truths: Vec<_> = truths.collect();
    if truths.contains(&Some(false)) {
        return Some(false);
    }
    truths
        .into_iter()
        .all(|truth| truth == Some(true))
        .then_some(true)
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text), ..
        }) => Some(text.value()),
        _ => None,
    }
}

/// Whether an item with these attributes is compiled. `cfg_attr` is replaced by what it stands for, so that
/// readers meet only attributes that count. A predicate that cannot be known is an error and counts as true.
pub fn configure_attrs(attrs: &mut Vec<Attribute>, cfg: &Cfg, session: &mut Session) -> bool {
    if !attrs
        .iter()
        .any(|attr| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr"))
    {
        return true;
    }
    let mut active = true;
    let mut kept = Vec::with_capacity(attrs.len());
    for attr in std::mem::take(attrs) {
        if attr.path().is_ident("cfg") {
            active &= attr
                .parse_args()
                .is_ok_and(|predicate| ask(&predicate, cfg, session));
        } else if attr.path().is_ident("cfg_attr") {
            kept.append(&mut expand(&attr, cfg, session));
        } else {
            kept.push(attr);
        }
    }
    *attrs = kept;
    active
}

fn ask(predicate: &Meta, cfg: &Cfg, session: &mut Session) -> bool {
    cfg.holds(predicate).unwrap_or_else(|| {
        let span = session.place(predicate);
        session.error_help(
            span,
            "whether this `cfg` holds cannot be told from the source",
            "API types may depend on features, `unix` and `target_os` only",
        );
        true
    })
}

fn expand(attr: &Attribute, cfg: &Cfg, session: &mut Session) -> Vec<Attribute> {
    let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
    let Ok(parts) = attr.parse_args_with(parse) else {
        return Vec::new();
    };
    let mut parts = parts.into_iter();
    let Some(predicate) = parts.next() else {
        return Vec::new();
    };
    if !ask(&predicate, cfg, session) {
        return Vec::new();
    }
    let mut attrs: Vec<_> = parts.map(|meta| Attribute { meta, ..attr.clone() }).collect();
    configure_attrs(&mut attrs, cfg, session);
    attrs
}

/// Applies `cfg` and `cfg_attr` to a struct or enum, its variants and fields; any other item to its own
/// attributes only. Says whether the item is compiled at all.
pub fn configure_item(item: &mut Item, cfg: &Cfg, session: &mut Session) -> bool {
    match item {
        Item::Struct(item) => {
            let active = configure_attrs(&mut item.attrs, cfg, session);
            if active {
                configure_fields(&mut item.fields, cfg, session);
            }
            active
        }
        Item::Enum(item) => {
            let active = configure_attrs(&mut item.attrs, cfg, session);
            if active {
                retain(&mut item.variants, |variant| {
                    let active = configure_attrs(&mut variant.attrs, cfg, session);
                    if active {
                        configure_fields(&mut variant.fields, cfg, session);
                    }
                    active
                });
            }
            active
        }
        other => attrs_of(other).is_none_or(|attrs| configure_attrs(attrs, cfg, session)),
    }
}

fn configure_fields(fields: &mut Fields, cfg: &Cfg, session: &mut Session) {
    let list = match fields {
        Fields::Named(fields) => &mut fields.named,
        Fields::Unnamed(fields) => &mut fields.unnamed,
        Fields::Unit => return,
    };
    retain(list, |field| configure_attrs(&mut field.attrs, cfg, session));
}

fn retain<T>(list: &mut Punctuated<T, Token![,]>, mut keep: impl FnMut(&mut T) -> bool) {
    *list = std::mem::take(list)
        .into_iter()
        .filter_map(|mut element| keep(&mut element).then_some(element))
        .collect();
}

fn attrs_of(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    match item {
        Item::Const(item) => Some(&mut item.attrs),
        Item::Fn(item) => Some(&mut item.attrs),
        Item::Impl(item) => Some(&mut item.attrs),
        Item::Macro(item) => Some(&mut item.attrs),
        Item::Mod(item) => Some(&mut item.attrs),
        Item::Static(item) => Some(&mut item.attrs),
        Item::Trait(item) => Some(&mut item.attrs),
        Item::Type(item) => Some(&mut item.attrs),
        Item::Union(item) => Some(&mut item.attrs),
        Item::Use(item) => Some(&mut item.attrs),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(predicate: &str, expected: Option<bool>) {
        let cfg = Cfg::with_features(["a".to_owned()]);
        let predicate: Meta = syn::parse_str(predicate).expect("a predicate");
        assert_eq!(cfg.holds(&predicate), expected, "{}", quote::quote!(#predicate));
    }

    #[test]
    fn predicates() {
        check("unix", Some(true));
        check("windows", Some(false));
        check("test", Some(false));
        check("feature = \"a\"", Some(true));
        check("feature = \"b\"", Some(false));
        check("not(feature = \"b\")", Some(true));
        check("any(test, feature = \"a\")", Some(true));
        check("all(unix, feature = \"b\")", Some(false));
        check("any()", Some(false));
        check("all()", Some(true));
        check("tokio_unstable", None);
        check("any(unix, tokio_unstable)", Some(true));
        check("all(windows, tokio_unstable)", Some(false));
        check("all(unix, tokio_unstable)", None);
    }

    #[test]
    fn an_item_loses_what_is_off() {
        let mut item: Item = syn::parse_quote! {
            struct S {
                #[cfg(windows)] a: i32,
                #[cfg_attr(unix, serde(rename = "x"), kube(optional))] b: i32,
                #[cfg_attr(windows, serde(rename = "y"))] c: i32,
            }
        };
        let mut session = Session::default();
        assert!(configure_item(&mut item, &Cfg::default(), &mut session));
        let expected: Item = syn::parse_quote! {
            struct S { #[serde(rename = "x")] #[kube(optional)] b: i32, c: i32 }
        };
        assert_eq!(
            quote::quote!(#item).to_string().replace(", }", " }"),
            quote::quote!(#expected).to_string()
        );
        assert!(session.diagnostics.into_vec().is_empty());
    }
}
