//! Adds `#[crd(conversion)]` to the type that defines a kind.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::{Attribute, Item, ItemStruct, Meta};

use super::source::{Addition, Source, byte_range, line_starts};
use crate::edit::Obstacle;

/// Adds `#[crd(conversion)]` to the type that defines a kind, unless it is already there.
///
/// # Errors
/// Fails if the file does not parse, does not define the kind exactly once, or sets the conversion strategy `None`.
pub fn add_conversion(text: &str, kind: &str) -> Result<String, Obstacle> {
    let source = Source::parse(text)?;
    let is_kind = |item: &&ItemStruct| item.attrs.iter().any(|attribute| names_kind(attribute, kind));
    let found: Vec<&ItemStruct> = structs(&source.file.items).into_iter().filter(is_kind).collect();
    let place = "add this line above the struct of the kind";
    let stop = |reason: String| Obstacle::new(reason).with_lines(place, "#[crd(conversion)]");
    if let Some(strategy) = found.iter().find_map(|item| conversion_of(item)) {
        return if strategy {
            Ok(text.to_owned())
        } else {
            Err(
                Obstacle::new(format!("`{kind}` has the conversion strategy `None`"))
                    .with_lines("replace the attribute with this one", "#[crd(conversion)]"),
            )
        };
    }
    let item = match found.as_slice() {
        [item] => item,
        [] => {
            return Err(stop(format!(
                "it has no struct with `#[kube(kind = \"{kind}\")]`"
            )));
        }
        _ => return Err(stop(format!("it has several structs of the kind `{kind}`"))),
    };
    let last = item
        .attrs
        .iter()
        .rposition(|attribute| attribute.path().is_ident("kube"));
    let last = last.ok_or_else(|| stop(format!("the attribute `kube` of `{kind}` is conditional")))?;
    let end = byte_range(item.attrs[last].span()).end;
    let next = match item.attrs.get(last + 1) {
        Some(attribute) => byte_range(attribute.span()).start,
        None => start_without_attributes(item),
    };
    let addition = match line_starts(text, end..next).first() {
        Some(line) => {
            let indent = source.indent_at(byte_range(item.attrs[last].span()).start);
            Addition::new(*line, format!("{indent}#[crd(conversion)]\n"))
        }
        None => Addition::new(end, " #[crd(conversion)]"),
    };
    Ok(source.with(vec![addition]))
}

/// Whether a file defines a kind.
pub fn defines_kind(text: &str, kind: &str) -> bool {
    let is_kind = |item: &&ItemStruct| item.attrs.iter().any(|attribute| names_kind(attribute, kind));
    Source::parse(text).is_ok_and(|source| structs(&source.file.items).iter().any(is_kind))
}

/// Whether a file contains any implementation of `From` or `TryFrom`.
pub fn has_conversion(text: &str) -> bool {
    let Ok(source) = Source::parse(text) else {
        return false;
    };
    source.file.items.iter().any(|item| match item {
        Item::Impl(block) => block.trait_.as_ref().is_some_and(|(path, _)| {
            let last = path.segments.last();
            last.is_some_and(|last| last.ident == "From" || last.ident == "TryFrom")
        }),
        _ => false,
    })
}

fn structs(items: &[Item]) -> Vec<&ItemStruct> {
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Struct(item) => found.push(item),
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    found.extend(structs(items));
                }
            }
            _ => {}
        }
    }
    found
}

fn start_without_attributes(item: &ItemStruct) -> usize {
    let visibility = byte_range(item.vis.span());
    if visibility.is_empty() {
        byte_range(item.struct_token.span()).start
    } else {
        visibility.start
    }
}

/// Matches `#[kube(kind = "…")]`, possibly wrapped in `cfg_attr`.
fn names_kind(attribute: &Attribute, kind: &str) -> bool {
    arguments(attribute, "kube").iter().any(|argument| {
        let is_kind = matches!(argument.first(), Some(TokenTree::Ident(key)) if key == "kind");
        let literal = argument.last().cloned().map(TokenStream::from);
        let text = literal.and_then(|literal| syn::parse2::<syn::LitStr>(literal).ok());
        is_kind && text.is_some_and(|text| text.value() == kind)
    })
}

/// Whether a webhook converts the kind, or `None` if no attribute says.
fn conversion_of(item: &ItemStruct) -> Option<bool> {
    let attributes = item
        .attrs
        .iter()
        .flat_map(|attribute| arguments(attribute, "crd"));
    let is_conversion = |argument: &Vec<TokenTree>| matches!(argument.first(), Some(TokenTree::Ident(key)) if key == "conversion");
    let conversion = attributes.into_iter().find(is_conversion)?;
    let tokens: TokenStream = conversion.into_iter().collect();
    Some(!tokens.to_string().contains("strategy = \"None\""))
}

fn arguments(attribute: &Attribute, name: &str) -> Vec<Vec<TokenTree>> {
    let Meta::List(list) = &attribute.meta else {
        return Vec::new();
    };
    let split = |tokens: TokenStream| -> Vec<Vec<TokenTree>> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
        tokens.split(is_comma).map(<[TokenTree]>::to_vec).collect()
    };
    if list.path.is_ident(name) {
        return split(list.tokens.clone());
    }
    if !list.path.is_ident("cfg_attr") {
        return Vec::new();
    }
    let inner = |argument: Vec<TokenTree>| match argument.as_slice() {
        [TokenTree::Ident(path), TokenTree::Group(group)] if path == name => split(group.stream()),
        _ => Vec::new(),
    };
    split(list.tokens.clone())
        .into_iter()
        // Skip the condition of `cfg_attr`.
        .skip(1)
        .flat_map(inner)
        .collect()
}
