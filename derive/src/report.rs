//! Complaints as compile errors, in the same words as on the command line.

use proc_macro2::{Punct, Spacing, TokenStream, TokenTree};
use rbuilder_syntax::{Session, Severity};

/// `compile_error!` at the place of each error. Warnings are left to the command line: stable Rust gives a
/// macro no way to say them.
pub(crate) fn compile_errors(session: Session) -> TokenStream {
    let Session {
        spans, diagnostics, ..
    } = session;
    let errors = diagnostics
        .into_vec()
        .into_iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors
        .map(|diagnostic| {
            let (first, last) = spans.get(diagnostic.span);
            let place: TokenStream = [first, last].into_iter().map(token_at).collect();
            syn::Error::new_spanned(place, diagnostic.text()).into_compile_error()
        })
        .collect()
}

/// A token that carries nothing but its place.
fn token_at(span: proc_macro2::Span) -> TokenTree {
    let mut token = Punct::new(',', Spacing::Alone);
    token.set_span(span);
    token.into()
}
