//! Evaluates serde's defaults in the user's program, by calling the same functions as serde. The
//! generator reads these functions instead (`crates/generator/src/defaults/`).

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use rbuilder_syntax::{AbsentField, DefaultSource, Type};

use crate::source::Source;

/// Returns code that builds the list of default values for absent fields, or `None` if the schema
/// gets no default.
pub(crate) fn default_tokens(
    root: &TokenStream,
    model: &Type,
    slots: &[TokenStream],
    source: &Source,
) -> Option<TokenStream> {
    let fields = model.absent_fields();
    let pairs: Vec<TokenStream> = fields
        .iter()
        .filter_map(|field| {
            let site = site(field);
            let value = value(root, field, slots, source)?;
            Some(quote!((#root::__private::Site::#site, #value)))
        })
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let whole = whole(model);
    Some(quote! {
        use #root::__private::{Serialized as _, Unserialized as _};
        #whole
        ::std::vec![#(#pairs),*]
    })
}

fn site(field: &AbsentField<'_>) -> TokenStream {
    let position = Literal::usize_suffixed(field.position);
    match field.variant.map(Literal::usize_suffixed) {
        Some(variant) => quote!(VariantField(#variant, #position)),
        None => quote!(Field(#position)),
    }
}

/// Builds the default of the container, if any field takes its value from it.
fn whole(model: &Type) -> Option<TokenStream> {
    let fields = model.absent_fields();
    let takes_whole = fields
        .iter()
        .any(|field| field.value.source == DefaultSource::Container);
    let made = match model.whole_default.as_ref().filter(|_| takes_whole)? {
        DefaultSource::Function(path) => {
            let path = parse(path);
            quote!(#path())
        }
        DefaultSource::Type | DefaultSource::Container => quote!(::core::default::Default::default()),
    };
    Some(quote!(let whole: Self = #made;))
}

/// Fields skipped by `skip_serializing_if` become `null`.
fn value(
    root: &TokenStream,
    field: &AbsentField<'_>,
    slots: &[TokenStream],
    source: &Source,
) -> Option<TokenStream> {
    let ty = slots.get(field.field.slot)?;
    let made = match &field.value.source {
        DefaultSource::Type => quote!(<#ty as ::core::default::Default>::default()),
        DefaultSource::Function(path) => {
            let path = parse(path);
            quote!(#path())
        }
        DefaultSource::Container => {
            let ident = source.tokens(field.span);
            quote!(whole.#ident)
        }
    };
    let json = quote!((&#root::__private::Held(value)).to_json());
    let json = match &field.said.skip_if {
        None => json,
        Some(path) => {
            let path = parse(path);
            quote!(if #path(value) {
                ::core::option::Option::Some(::core::default::Default::default())
            } else {
                #json
            })
        }
    };
    Some(quote!({
        let value: &#ty = &#made;
        #json
    }))
}

/// A malformed path becomes empty tokens: serde's derive reports the error.
fn parse(path: &str) -> TokenStream {
    path.parse().unwrap_or_default()
}
