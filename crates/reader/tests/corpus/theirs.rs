//! The outline of a file as `syn` reads it.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{
    Attribute, Expr, ExprLit, Fields, FnArg, GenericArgument, GenericParam, Generics, ImplItem, Item, Lit,
    Meta, PathArguments, ReturnType, Signature, TraitItem, Type,
};

use super::squeezed;

#[derive(Default)]
struct Outline {
    lines: Vec<String>,
}

/// Returns one line for each thing found, or `None` if the text is not Rust.
pub(super) fn outline(text: &str) -> Option<Vec<String>> {
    let file = syn::parse_file(text).ok()?;
    let mut outline = Outline::default();
    outline.attrs(&file.attrs);
    file.items.iter().for_each(|item| outline.item(item));
    Some(outline.lines)
}

impl Outline {
    fn item(&mut self, item: &Item) {
        match item {
            Item::Struct(item) => {
                self.attrs(&item.attrs);
                self.source(&item.vis);
                self.line(format!("type {}", item.ident.unraw()));
                self.generics(&item.generics);
                self.fields(&item.fields);
            }
            Item::Enum(item) => {
                self.attrs(&item.attrs);
                self.source(&item.vis);
                self.line(format!("type {}", item.ident.unraw()));
                self.generics(&item.generics);
                for variant in &item.variants {
                    self.attrs(&variant.attrs);
                    self.line(format!("variant {}", variant.ident.unraw()));
                    self.fields(&variant.fields);
                }
            }
            Item::Union(item) => {
                self.attrs(&item.attrs);
                self.source(&item.vis);
                self.line(format!("type {}", item.ident.unraw()));
                self.generics(&item.generics);
            }
            Item::Fn(item) => {
                // This crate does not read attributes inside of function bodies.
                let outer: Vec<_> = item.attrs.iter().filter(|attr| is_outer(attr)).cloned().collect();
                self.attrs(&outer);
                self.source(&item.vis);
                self.signature(&item.sig);
            }
            Item::Impl(item) => {
                self.attrs(&item.attrs);
                self.line(format!("impl {}", ty(&item.self_ty)));
                item.items.iter().for_each(|item| self.impl_item(item));
                self.line("end");
            }
            Item::Trait(item) => {
                self.attrs(&item.attrs);
                self.line(format!("trait {}", item.ident.unraw()));
                item.items.iter().for_each(|item| self.trait_item(item));
                self.line("end");
            }
            Item::Mod(item) => {
                self.attrs(&item.attrs);
                self.line(format!("mod {}", item.ident.unraw()));
                if let Some((_, items)) = &item.content {
                    items.iter().for_each(|item| self.item(item));
                    self.line("end");
                }
            }
            Item::Use(item) => {
                self.attrs(&item.attrs);
                let colons = if item.leading_colon.is_some() { "::" } else { "" };
                self.line(format!(
                    "use {colons}{}",
                    squeezed(&item.tree.to_token_stream().to_string())
                ));
            }
            Item::Type(item) => {
                self.attrs(&item.attrs);
                self.line(format!("type {}", item.ident.unraw()));
                self.generics(&item.generics);
                self.line(ty(&item.ty));
            }
            Item::ExternCrate(item) => {
                self.attrs(&item.attrs);
                let rename = item.rename.as_ref().map(|(_, name)| name.unraw().to_string());
                self.line(format!(
                    "extern {} {}",
                    item.ident.unraw(),
                    rename.unwrap_or_default()
                ));
            }
            Item::Macro(item) => {
                self.attrs(&item.attrs);
                self.call(&item.mac);
            }
            Item::Const(item) => self.other(&item.attrs),
            Item::Static(item) => self.other(&item.attrs),
            Item::ForeignMod(item) => {
                let outer: Vec<_> = item.attrs.iter().filter(|attr| is_outer(attr)).cloned().collect();
                self.other(&outer);
            }
            Item::TraitAlias(item) => self.other(&item.attrs),
            _ => self.lines.push("verbatim".into()),
        }
    }

    fn impl_item(&mut self, item: &ImplItem) {
        match item {
            ImplItem::Fn(item) => {
                let outer: Vec<_> = item.attrs.iter().filter(|attr| is_outer(attr)).cloned().collect();
                self.attrs(&outer);
                self.source(&item.vis);
                self.signature(&item.sig);
            }
            ImplItem::Const(item) => self.other(&item.attrs),
            ImplItem::Type(item) => {
                self.attrs(&item.attrs);
                self.line(format!("type {}", item.ident.unraw()));
                self.generics(&item.generics);
                self.line(ty(&item.ty));
            }
            ImplItem::Macro(item) => {
                self.attrs(&item.attrs);
                self.call(&item.mac);
            }
            _ => self.lines.push("verbatim".into()),
        }
    }

    fn trait_item(&mut self, item: &TraitItem) {
        match item {
            TraitItem::Fn(item) => {
                let outer: Vec<_> = item.attrs.iter().filter(|attr| is_outer(attr)).cloned().collect();
                self.attrs(&outer);
                self.line("");
                self.signature(&item.sig);
            }
            TraitItem::Const(item) => self.other(&item.attrs),
            TraitItem::Type(item) => {
                self.attrs(&item.attrs);
                self.line(format!("type {}", item.ident.unraw()));
                self.generics(&item.generics);
                if let Some((_, default)) = &item.default {
                    self.line(ty(default));
                }
            }
            TraitItem::Macro(item) => {
                self.attrs(&item.attrs);
                self.call(&item.mac);
            }
            _ => self.lines.push("verbatim".into()),
        }
    }

    fn other(&mut self, attrs: &[Attribute]) {
        self.attrs(attrs);
        self.line("other");
    }

    fn call(&mut self, mac: &syn::Macro) {
        let path: Vec<_> = mac
            .path
            .segments
            .iter()
            .map(|part| part.ident.unraw().to_string())
            .collect();
        self.line(format!("{}!", path.join("::")));
    }

    fn signature(&mut self, signature: &Signature) {
        self.line(format!("fn {}", signature.ident.unraw()));
        self.source(signature);
        if signature.generics.lt_token.is_some() {
            self.source(&signature.generics);
        }
        if matches!(signature.output, ReturnType::Type(..)) {
            self.source(&signature.output);
        }
        for input in &signature.inputs {
            self.line(match input {
                FnArg::Receiver(_) => "self".to_owned(),
                FnArg::Typed(input) => ty(&input.ty),
            });
        }
        if signature.variadic.is_some() {
            self.line("variadic");
        }
    }

    fn fields(&mut self, fields: &Fields) {
        for field in fields {
            self.attrs(&field.attrs);
            let name = field.ident.as_ref().map(|ident| ident.unraw().to_string());
            self.line(format!("field {} {}", name.unwrap_or_default(), ty(&field.ty)));
        }
    }

    fn generics(&mut self, generics: &Generics) {
        for param in &generics.params {
            let mut declaration = param.clone();
            let (name, default) = match &mut declaration {
                GenericParam::Type(param) => {
                    param.attrs.clear();
                    (param.ident.unraw(), param.default.take())
                }
                GenericParam::Const(param) => {
                    param.attrs.clear();
                    param.default = None;
                    (param.ident.unraw(), None)
                }
                GenericParam::Lifetime(param) => {
                    param.attrs.clear();
                    (param.lifetime.ident.unraw(), None)
                }
            };
            self.line(format!("parameter {name}"));
            self.source(&declaration);
            if let Some(default) = default {
                self.line(format!("= {}", ty(&default.1)));
            }
        }
        let predicates = generics.where_clause.iter().map(|clause| &clause.predicates);
        for predicates in predicates.filter(|predicates| !predicates.is_empty()) {
            self.line("where");
            self.source(predicates);
        }
    }

    fn source(&mut self, tokens: &impl ToTokens) {
        self.line(squeezed(&tokens.to_token_stream().to_string()));
    }

    fn attrs(&mut self, attrs: &[Attribute]) {
        for attr in attrs {
            let path = attr.path();
            let names: Vec<_> = path
                .segments
                .iter()
                .map(|part| part.ident.unraw().to_string())
                .collect();
            let text = match &attr.meta {
                Meta::NameValue(pair) if path.is_ident("doc") => text(&pair.value),
                _ => None,
            };
            self.line(format!("#{} {text:?}", names.join("::")));
        }
    }

    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }
}

fn is_outer(attr: &Attribute) -> bool {
    matches!(attr.style, syn::AttrStyle::Outer)
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text), ..
        }) => Some(text.value().replace("\r\n", "\n")),
        _ => None,
    }
}

fn ty(written: &Type) -> String {
    match written {
        Type::Paren(inner) => ty(&inner.elem),
        Type::Group(inner) => ty(&inner.elem),
        Type::Reference(inner) => ty(&inner.elem),
        Type::Slice(inner) => format!("[{};None]", ty(&inner.elem)),
        Type::Array(inner) => match &inner.len {
            Expr::Lit(ExprLit {
                lit: Lit::Int(length),
                ..
            }) => match length.base10_parse::<u64>() {
                Ok(length) => format!("[{};{:?}]", ty(&inner.elem), Some(length)),
                Err(_) => other(written),
            },
            _ => other(written),
        },
        Type::Tuple(inner) => format!("({})", inner.elems.iter().map(ty).collect::<Vec<_>>().join(",")),
        Type::Path(inner) if inner.qself.is_none() => path(&inner.path).unwrap_or_else(|| other(written)),
        _ => other(written),
    }
}

fn path(path: &syn::Path) -> Option<String> {
    let mut names = Vec::new();
    if path.leading_colon.is_some() {
        names.push(String::new());
    }
    let mut types = Vec::new();
    for segment in &path.segments {
        names.push(segment.ident.unraw().to_string());
        types.clear();
        match &segment.arguments {
            PathArguments::None => {}
            PathArguments::Parenthesized(_) => return None,
            PathArguments::AngleBracketed(list) => {
                for argument in &list.args {
                    match argument {
                        GenericArgument::Type(argument) => types.push(ty(argument)),
                        GenericArgument::Lifetime(_) => {}
                        _ => return None,
                    }
                }
            }
        }
    }
    Some(format!("{}<{}>", names.join("::"), types.join(",")))
}

fn other(ty: &Type) -> String {
    format!("other {}", squeezed(&ty.to_token_stream().to_string()))
}
