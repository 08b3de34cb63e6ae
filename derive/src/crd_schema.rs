//! `derive(CrdSchema)`: the container as one literal, the types it mentions as slots.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use rbuilder_syntax::{Session, crate_path, parse_type};
use syn::{DeriveInput, GenericParam, Generics};

use crate::report::compile_errors;

/// The implementation of `JsonSchema`, or the errors with a stand-in for it, so that one mistake in a marker
/// does not also say that the type has no `JsonSchema`.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let mut session = Session::keeping_slot_types();
    let root = crate_path(&item.attrs, &mut session);
    let root = root.map_or_else(|| quote!(::rbuilder), ToTokens::into_token_stream);
    let parsed = parse_type(&item, &mut session);
    let slots = session.take_slot_types();
    let body = match parsed {
        Some(parsed) if !session.diagnostics.has_errors() => match serde_json::to_string(&parsed.container) {
            Ok(container) => body(&root, &container, &slots),
            Err(error) => return syn::Error::new_spanned(&item.ident, error).into_compile_error(),
        },
        _ => quote!(#root::__private::schemars::Schema::default()),
    };
    let mut tokens = compile_errors(session);
    tokens.extend(implementation(&item, &root, &body));
    tokens
}

fn body(root: &TokenStream, container: &str, slots: &[syn::Type]) -> TokenStream {
    let container = Literal::string(container);
    quote! {
        #root::__private::json_schema::<Self>(
            #container,
            || ::std::vec![#(#root::__private::slot::<#slots>()),*],
        )
    }
}

fn implementation(item: &DeriveInput, root: &TokenStream, body: &TokenStream) -> TokenStream {
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

            fn json_schema(_: &mut #schemars::SchemaGenerator) -> #schemars::Schema {
                #body
            }
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
                "slot :: < i32 > () , :: rbuilder :: __private :: slot :: < Option < Vec < T > > > ()",
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
