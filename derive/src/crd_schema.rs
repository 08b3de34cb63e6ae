//! `derive(CrdSchema)`: emits the container as a single JSON literal, and the types of its fields
//! as slots.
//!
//! The emitted `impl JsonSchema` passes both to `rbuilder_schema::private::json_schema`, which
//! assembles the schema at run time. The slots are calls such as `slot::<T>()`, so that the
//! compiler resolves the types.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use rbuilder_reader::Attribute;
use rbuilder_reader::grammar::{GenericKind, Item, ItemKind, Items, TypeItem};
use rbuilder_reader::token::lex;
use rbuilder_syntax::{Diagnostic, Session, SlotType, Type, crate_path, parse_type};

use crate::byte_string;
use crate::defaults::default_tokens;
use crate::report::{compile_errors, malformed_error};
use crate::source::Source;

/// Expands to the `JsonSchema` implementation.
///
/// After an error, emits an empty implementation, or rustc would also complain that the type does
/// not implement `JsonSchema`.
pub(crate) fn expand_crd_schema(tokens: TokenStream) -> TokenStream {
    let source = Source::of(tokens);
    let mut session = Session::keeping_slot_types();
    match read(&source, &mut session) {
        Ok(implementation) => {
            let mut tokens = compile_errors(session, &source);
            tokens.extend(implementation);
            tokens
        }
        Err(error) => malformed_error(error, &source),
    }
}

fn read(source: &Source, session: &mut Session) -> Result<TokenStream, Diagnostic> {
    let tokens = lex(source.text())?;
    let mut items = Items::new(tokens.cursor(), None);
    let Some(Item {
        attrs,
        kind: ItemKind::Type(item),
        span,
        ..
    }) = items.read()?
    else {
        return Err(Diagnostic::error(tokens.span(), "expected a struct or an enum"));
    };
    let root = crate_path(&attrs, session).and_then(|path| path.parse().ok());
    let root = root.unwrap_or_else(|| quote!(::rbuilder));
    let header = Header::of(&item, source, &root);
    let methods = match container(&attrs, item, session) {
        Some(Ok((container, model))) => {
            let slots = session.take_slot_types();
            let types: Vec<TokenStream> = slots.iter().map(|slot| slot_tokens(slot, source)).collect();
            let defaults = default_tokens(&root, &model, &types, source);
            let slots: Vec<TokenStream> = slots
                .iter()
                .zip(&types)
                .map(|(slot, ty)| slot_schema(&root, slot, ty))
                .collect();
            let mut methods = json_schema(&root, &body(&root, &container, &slots, defaults));
            // schemars never treats the result of a schema function as an option.
            if model.container.transparent && model.schema_functions.is_empty() {
                methods.extend(is_option(&root, &types));
            }
            methods
        }
        Some(Err(error)) => return Err(Diagnostic::error(span, error.to_string())),
        None => json_schema(&root, &quote!(#root::__private::schemars::Schema::default())),
    };
    Ok(implementation(&header, &root, &methods))
}

/// Returns the container as JSON and its model, or `None` if the item has errors.
fn container(
    attrs: &[Attribute<'_>],
    item: TypeItem<'_>,
    session: &mut Session,
) -> Option<serde_json::Result<(String, Type)>> {
    let model = parse_type(attrs, item, session)?;
    (!session.diagnostics.has_errors())
        .then(|| serde_json::to_string(&model.container).map(|text| (text, model)))
}

/// `Text` has already been validated as a type.
fn slot_tokens(slot: &SlotType, source: &Source) -> TokenStream {
    match slot {
        SlotType::Written(span) => source.tokens(*span),
        SlotType::Text(text) => text.parse().unwrap_or_default(),
        SlotType::Function(_, Some(span)) => source.tokens(*span),
        SlotType::Function(_, None) => quote!(Self),
    }
}

fn slot_schema(root: &TokenStream, slot: &SlotType, ty: &TokenStream) -> TokenStream {
    match slot {
        SlotType::Function(path, _) => {
            let path: TokenStream = path.parse().unwrap_or_default();
            quote!(#root::__private::slot_of(|generator| #path(generator)))
        }
        SlotType::Written(_) | SlotType::Text(_) => type_schema(root, ty),
    }
}

fn body(
    root: &TokenStream,
    container: &str,
    slots: &[TokenStream],
    defaults: Option<TokenStream>,
) -> TokenStream {
    let container = Literal::string(container);
    match defaults {
        None => quote! {
            #root::__private::json_schema::<Self>(
                #container,
                || ::std::vec![#(#slots),*],
            )
        },
        Some(defaults) => quote! {
            #root::__private::json_schema_with_defaults::<Self>(
                #container,
                || ::std::vec![#(#slots),*],
                || { #defaults },
            )
        },
    }
}

fn type_schema(root: &TokenStream, ty: &TokenStream) -> TokenStream {
    match byte_string::replace_byte_string(ty.clone(), &quote!(#root::__private::Bytes)) {
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

/// A transparent type is an option if its content is.
fn is_option(root: &TokenStream, slots: &[TokenStream]) -> TokenStream {
    // Only the outermost type matters here, so `ByteString` may as well be a user's own type.
    let bytes = quote!(#root::__private::Bytes);
    let held = slots
        .iter()
        .map(|ty| byte_string::replace_byte_string(ty.clone(), &bytes).unwrap_or_else(|| ty.clone()));
    quote! {
        fn _schemars_private_is_option() -> bool {
            true #(&& #root::__private::is_option::<#held>())*
        }
    }
}

/// The parts of an item repeated in the header of the `impl`.
struct Header {
    /// Without `r#`.
    name: String,
    ident: TokenStream,
    /// As declared, but without defaults.
    parameters: Vec<TokenStream>,
    /// Only the names.
    arguments: Vec<TokenStream>,
    /// `JsonSchema` for each type parameter, followed by the item's own `where` clause.
    predicates: TokenStream,
}

impl Header {
    fn of(item: &TypeItem<'_>, source: &Source, root: &TokenStream) -> Self {
        let parameters = &item.generics.list;
        let types = parameters
            .iter()
            .filter(|parameter| parameter.kind == GenericKind::Type);
        let mut predicates: TokenStream = types
            .map(|parameter| source.tokens(parameter.ident.span))
            .map(|ident| quote!(#ident: #root::__private::schemars::JsonSchema,))
            .collect();
        predicates.extend(item.generics.predicates.map(|span| source.tokens(span)));
        Header {
            name: item.ident.text.to_owned(),
            ident: source.tokens(item.ident.span),
            parameters: parameters
                .iter()
                .map(|parameter| source.tokens(parameter.declaration))
                .collect(),
            arguments: parameters
                .iter()
                .map(|parameter| source.tokens(parameter.ident.span))
                .collect(),
            predicates,
        }
    }
}

fn implementation(header: &Header, root: &TokenStream, methods: &TokenStream) -> TokenStream {
    let Header {
        name,
        ident,
        parameters,
        arguments,
        predicates,
    } = header;
    let generics = (!parameters.is_empty()).then(|| quote!(<#(#parameters),*>));
    let arguments = (!arguments.is_empty()).then(|| quote!(<#(#arguments),*>));
    let predicates = (!predicates.is_empty()).then(|| quote!(where #predicates));
    quote! {
        #[automatically_derived]
        impl #generics #root::__private::schemars::JsonSchema for #ident #arguments #predicates {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(item: TokenStream, present: &[&str], absent: &[&str]) {
        let text = expand_crd_schema(item).to_string();
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
    fn crate_attribute_replaces_rbuilder() {
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
    fn emits_calls_of_serde_defaults() {
        check(
            quote!(
                struct S {
                    #[serde(default = "m::port", skip_serializing_if = "is_zero")]
                    a: i32,
                    #[serde(default)]
                    b: i32,
                }
            ),
            &[
                "json_schema_with_defaults",
                "(:: rbuilder :: __private :: Site :: Field (0usize) , { let value : & i32 = & m :: port () ; if is_zero (value)",
            ],
            &["Field (1usize)", "compile_error"],
        );
        check(
            quote!(
                #[crd(serde_defaults)]
                #[serde(default)]
                enum E {
                    A {
                        #[serde(default)]
                        r#type: i32,
                    },
                }
            ),
            &[
                "Site :: VariantField (0usize , 0usize)",
                "< i32 as :: core :: default :: Default > :: default ()",
            ],
            &["compile_error"],
        );
        check(
            quote!(
                #[crd(serde_defaults)]
                #[serde(default)]
                struct S {
                    r#type: i32,
                }
            ),
            &[
                "let whole : Self = :: core :: default :: Default :: default () ;",
                "& whole . r#type",
            ],
            &["compile_error"],
        );
        check(
            quote!(
                #[crd(serde_defaults = false)]
                struct S {
                    #[serde(default = "port")]
                    a: i32,
                }
            ),
            &["json_schema :: < Self >"],
            &["port ("],
        );
    }

    #[test]
    fn type_parameters_require_json_schema() {
        check(
            quote!(
                struct Page<'a, T: Clone = u8, const N: usize = 1>
                where
                    T: 'a,
                {
                    items: Vec<&'a T>,
                }
            ),
            &[
                "impl < 'a , T : Clone , const N : usize >",
                "for Page < 'a , T , N > where T : :: rbuilder :: __private :: schemars :: JsonSchema , T : 'a , {",
            ],
            &["N : :: rbuilder"],
        );
    }

    #[test]
    fn invalid_marker_still_emits_an_impl() {
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
