//! serde's defaults: the code that asks the program for them.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use rbuilder_syntax::{AbsentField, DefaultSource, Type};

use crate::source::Source;

/// Returns the code that makes a list of the values of absent fields; nothing where the schema has no such default.
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

/// The statement that makes the whole value whose fields stand for absent ones.
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

/// The expression of the value of one field, `null` where serde leaves it out.
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

/// A path as written; what is none is for serde's derive to report.
fn parse(path: &str) -> TokenStream {
    path.parse().unwrap_or_default()
}
