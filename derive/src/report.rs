//! Diagnostics as compile errors, in the same words as on the command line.

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span as Place, TokenStream, TokenTree};
use rbuilder_syntax::{Diagnostic, Session, describe_malformed};

use crate::source::Source;

/// Returns a `compile_error!` at the place of each error. Warnings are left to the command line: stable Rust gives a
/// macro no way to report them.
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

/// Returns the error about tokens that cannot be read at all; rustc has seen the same ones and will say more.
pub(crate) fn malformed_error(error: Diagnostic, source: &Source) -> TokenStream {
    compile_error(&describe_malformed(error), source)
}

/// Returns the `compile_error!` for one diagnostic.
pub(crate) fn compile_error(diagnostic: &Diagnostic, source: &Source) -> TokenStream {
    compile_error_at(source.places(diagnostic.place), &diagnostic.text())
}

/// Returns `::core::compile_error!("…")`. rustc shows it from the place of the first token to that of the last one, so
/// that the path is placed at the former and the message at the latter.
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
