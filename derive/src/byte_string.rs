//! Schemas for fields of `k8s_openapi::ByteString`, which does not implement `JsonSchema`.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Replaces each `ByteString` in a type with `stand_in`. Returns `None` if there is none.
///
/// A macro only sees the name, which may also be a user's own type. The emitted code lets the
/// compiler choose between the two.
pub(crate) fn replace_byte_string(ty: TokenStream, stand_in: &TokenStream) -> Option<TokenStream> {
    let mut found = false;
    let tokens = replace(ty, stand_in, &mut found);
    found.then_some(tokens)
}

fn replace(ty: TokenStream, stand_in: &TokenStream, found: &mut bool) -> TokenStream {
    let mut made: Vec<TokenTree> = Vec::new();
    let mut rest = ty.into_iter().peekable();
    while let Some(token) = rest.next() {
        match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), replace(group.stream(), stand_in, found));
                inner.set_span(group.span());
                made.push(inner.into());
            }
            TokenTree::Ident(ident) if ident == "ByteString" && !rest.peek().is_some_and(is_path) => {
                drop_path(&mut made);
                *found = true;
                made.push(Group::new(Delimiter::None, stand_in.clone()).into());
            }
            other => made.push(other),
        }
    }
    made.into_iter().collect()
}

/// Detects other types such as `ByteString::…` and `ByteString<…>`.
fn is_path(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if matches!(punct.as_char(), ':' | '<'))
}

/// Drops a path such as `k8s_openapi::` from the end of `made`.
fn drop_path(made: &mut Vec<TokenTree>) {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':');
    while made.len() >= 2 && made[made.len() - 2..].iter().all(is_colon) {
        made.truncate(made.len() - 2);
        if matches!(made.last(), Some(TokenTree::Ident(_))) {
            made.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn check(ty: TokenStream, expected: Option<TokenStream>) {
        let replaced = replace_byte_string(ty, &quote!(B)).map(|tokens| tokens.to_string());
        assert_eq!(replaced, expected.map(|tokens| tokens.to_string()));
    }

    #[test]
    fn replaces_byte_string_at_any_depth() {
        check(quote!(ByteString), Some(quote!(B)));
        check(quote!(k8s_openapi::ByteString), Some(quote!(B)));
        check(quote!(Option<::k8s_openapi::ByteString>), Some(quote!(Option<B>)));
        check(
            quote!(BTreeMap<String, Vec<ByteString>>),
            Some(quote!(BTreeMap<String, Vec<B>>)),
        );
        check(quote!([a::b::ByteString; 3]), Some(quote!([B; 3])));
        check(quote!(Option<String>), None);
        check(quote!(ByteString::Inner), None);
        check(quote!(ByteString<u8>), None);
    }
}
