//! Complaints as compile errors, in the same words as on the command line.

use proc_macro2::{Punct, Spacing, TokenStream, TokenTree};
use rbuilder_reader::token::Malformed;
use rbuilder_syntax::{Diagnostic, Session, describe_malformed};

use crate::source::Source;

/// `compile_error!` at the place of each error. Warnings are left to the command line: stable Rust gives a
/// macro no way to say them.
pub(crate) fn compile_errors(session: Session, source: &Source) -> TokenStream {
    let errors = session
        .diagnostics
        .into_vec()
        .into_iter()
        .filter(Diagnostic::is_error);
    errors
        .map(|diagnostic| compile_error(&diagnostic, source))
        .collect()
}

/// What cannot be read at all; rustc has seen the same tokens and will say more.
pub(crate) fn malformed(error: Malformed, source: &Source) -> TokenStream {
    compile_error(&describe_malformed(error), source)
}

fn compile_error(diagnostic: &Diagnostic, source: &Source) -> TokenStream {
    let (first, last) = source.places(diagnostic.place);
    let place: TokenStream = [first, last].into_iter().map(token_at).collect();
    syn::Error::new_spanned(place, diagnostic.text()).into_compile_error()
}

/// A token that carries nothing but its place.
fn token_at(span: proc_macro2::Span) -> TokenTree {
    let mut token = Punct::new(',', Spacing::Alone);
    token.set_span(span);
    token.into()
}
