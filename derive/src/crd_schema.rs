//! `derive(CrdSchema)`: the container as one literal, the types it mentions as slots.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use rbuilder_reader::Attribute;
use rbuilder_reader::grammar::{Item, ItemKind, Items, TypeItem};
use rbuilder_reader::token::{Malformed, lex};
use rbuilder_syntax::{Session, SlotType, crate_path, parse_type};
use syn::{DeriveInput, GenericParam, Generics};

use crate::byte_string;
use crate::report::{compile_errors, malformed};
use crate::source::Source;

/// The implementation of `JsonSchema`, or the errors with a stand-in for it, so that one mistake in a marker
/// does not also say that the type has no `JsonSchema`.
pub(crate) fn expand(tokens: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(tokens.clone()) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let source = Source::of(tokens);
    let mut session = Session::keeping_slot_types();
    let (root, methods) = match read(&source, &mut session) {
        Ok(read) => read,
        Err(error) => return malformed(error, &source),
    };
    let mut tokens = compile_errors(session, &source);
    tokens.extend(implementation(&item, &root, &methods));
    tokens
}

/// The path of the runtime, and the methods that make the schema.
fn read(source: &Source, session: &mut Session) -> Result<(TokenStream, TokenStream), Malformed> {
    let tokens = lex(source.text())?;
    let mut items = Items::new(tokens.cursor(), None);
    let Some(Item {
        attrs,
        kind: ItemKind::Type(item),
        span,
        ..
    }) = items.read()?
    else {
        return Err(Malformed::new(tokens.span(), "expected a struct or an enum"));
    };
    let root = crate_path(&attrs, session).and_then(|path| path.parse().ok());
    let root = root.unwrap_or_else(|| quote!(::rbuilder));
    match container(&attrs, item, session) {
        Some(Ok((container, is_transparent))) => {
            let slots = session.take_slot_types();
            let slots: Vec<TokenStream> = slots.iter().map(|slot| slot_tokens(slot, source)).collect();
            let mut methods = json_schema(&root, &body(&root, &container, &slots));
            if is_transparent {
                methods.extend(is_option(&root, &slots));
            }
            Ok((root, methods))
        }
        Some(Err(error)) => Err(Malformed::new(span, error.to_string())),
        None => {
            let stand_in = quote!(#root::__private::schemars::Schema::default());
            let methods = json_schema(&root, &stand_in);
            Ok((root, methods))
        }
    }
}

/// The container as JSON, and whether it is absent where what it holds is; unless there is something wrong with
/// the item.
fn container(
    attrs: &[Attribute<'_>],
    item: TypeItem<'_>,
    session: &mut Session,
) -> Option<serde_json::Result<(String, bool)>> {
    let container = parse_type(attrs, item, session)?.container;
    let is_transparent = container.transparent;
    (!session.diagnostics.has_errors())
        .then(|| serde_json::to_string(&container).map(|text| (text, is_transparent)))
}

/// The type of a slot for the compiler; a text has been read as a type before.
fn slot_tokens(slot: &SlotType, source: &Source) -> TokenStream {
    match slot {
        SlotType::Written(span) => source.tokens(*span),
        SlotType::Text(text) => text.parse().unwrap_or_default(),
    }
}

fn body(root: &TokenStream, container: &str, slots: &[TokenStream]) -> TokenStream {
    let container = Literal::string(container);
    let slots = slots.iter().map(|ty| slot(root, ty));
    quote! {
        #root::__private::json_schema::<Self>(
            #container,
            || ::std::vec![#(#slots),*],
        )
    }
}

/// The schema of a type that the container mentions.
fn slot(root: &TokenStream, ty: &TokenStream) -> TokenStream {
    match byte_string::replaced(ty.clone(), &quote!(#root::__private::Bytes)) {
        None => quote!(#root::__private::slot::<#ty>()),
        Some(replaced) => quote!({
            use #root::__private::{AsWritten as _, Substituted as _};
            (&#root::__private::Probe::<#ty, #replaced>::new()).slot()
        }),
    }
}

fn json_schema(root: &TokenStream, body: &TokenStream) -> TokenStream {
    quote! {
        fn json_schema(
            _: &mut #root::__private::schemars::SchemaGenerator,
        ) -> #root::__private::schemars::Schema {
            #body
        }
    }
}

/// A type that is on the wire what it holds is an option where that is one.
fn is_option(root: &TokenStream, slots: &[TokenStream]) -> TokenStream {
    // What is inside of an option does not matter here, so that bytes need not be told from a user's type.
    let bytes = quote!(#root::__private::Bytes);
    let held = slots
        .iter()
        .map(|ty| byte_string::replaced(ty.clone(), &bytes).unwrap_or_else(|| ty.clone()));
    quote! {
        fn _schemars_private_is_option() -> bool {
            true #(&& #root::__private::is_option::<#held>())*
        }
    }
}

fn implementation(item: &DeriveInput, root: &TokenStream, methods: &TokenStream) -> TokenStream {
    let schemars = quote!(#root::__private::schemars);
    let generics = bounded(&item.generics, &schemars);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let ident = &item.ident;
    let name = syn::ext::IdentExt::unraw(ident).to_string();
    quote! {
        #[automatically_derived]
        impl #impl_generics #schemars::JsonSchema for #ident #type_generics #where_clause {
            // A structural schema has no references.
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(#name)
            }

            fn schema_id() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(::std::any::type_name::<Self>())
            }

            #methods
        }
    }
}

/// Every type parameter is a type that has a schema.
fn bounded(generics: &Generics, schemars: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    for param in &mut generics.params {
        if let GenericParam::Type(param) = param {
            param.bounds.push(syn::parse_quote!(#schemars::JsonSchema));
        }
    }
    generics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(item: TokenStream, present: &[&str], absent: &[&str]) {
        let text = expand(item).to_string();
        for part in present {
            assert!(text.contains(part), "`{part}` is missing from {text}");
        }
        for part in absent {
            assert!(!text.contains(part), "`{part}` is in {text}");
        }
    }

    #[test]
    fn types_become_slots_in_order() {
        check(
            quote!(
                struct S {
                    a: i32,
                    b: Option<Vec<T>>,
                }
            ),
            &[
                "slot :: < i32 > () , :: rbuilder :: __private :: slot :: < Option < Vec < T >> > ()",
                "for S",
            ],
            &["compile_error"],
        );
    }

    #[test]
    fn the_crate_can_be_named() {
        check(
            quote!(
                #[crd(crate = "my::lib")]
                struct S {
                    a: i32,
                }
            ),
            &["my :: lib :: __private"],
            &[":: rbuilder ::"],
        );
    }

    #[test]
    fn parameters_are_bounded() {
        check(
            quote!(
                struct Page<T: Clone> {
                    items: Vec<T>,
                }
            ),
            &["T : Clone + :: rbuilder :: __private :: schemars :: JsonSchema"],
            &[],
        );
    }

    #[test]
    fn a_mistake_leaves_a_stand_in() {
        check(
            quote!(
                struct S {
                    #[kube(validation(minimun = 1))]
                    a: i32,
                }
            ),
            &[
                "compile_error",
                "did you mean `minimum`?",
                "JsonSchema for S",
                "Schema :: default ()",
            ],
            &["slot ::"],
        );
    }
}
