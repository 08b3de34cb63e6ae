//! Converts diagnostics to compile errors, with the same messages as on the command line.

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span as Place, TokenStream, TokenTree};
use rbuilder_syntax::{Diagnostic, Session, describe_malformed};

use crate::source::Source;

/// Returns a `compile_error!` for each error, spanned at its place.
///
/// Warnings are left to the command line, because macros cannot emit them on stable Rust.
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

/// For unparsable tokens. rustc sees the same tokens and reports the details.
pub(crate) fn malformed_error(error: Diagnostic, source: &Source) -> TokenStream {
    compile_error(&describe_malformed(error), source)
}

pub(crate) fn compile_error(diagnostic: &Diagnostic, source: &Source) -> TokenStream {
    compile_error_at(source.places(diagnostic.place), &diagnostic.text())
}

/// Returns `::core::compile_error!("…")`.
fn compile_error_at((first, last): (Place, Place), message: &str) -> TokenStream {
    let punct = |symbol, spacing| {
        let mut punct = Punct::new(symbol, spacing);
        punct.set_span(first);
        TokenTree::from(punct)
    };
    let mut message = Literal::string(message);
    message.set_span(last);
    let mut arguments = Group::new(Delimiter::Brace, TokenTree::from(message).into());
    arguments.set_span(last);
    // rustc underlines everything from the first token to the last, so the path has the span
    // `first`, and the message `last`.
    TokenStream::from_iter([
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        Ident::new("core", first).into(),
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        Ident::new("compile_error", first).into(),
        punct('!', Spacing::Alone),
        arguments.into(),
    ])
}
