//! `#[webhook(…)]`: checks its arguments and that the item is a function, and leaves the item
//! unchanged.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use rbuilder_reader::Span;
use rbuilder_reader::token::lex;
use rbuilder_syntax::{Session, misplaced_webhook, parse_webhook};

use crate::report::{compile_errors, malformed_error};
use crate::source::Source;

/// Expands to the errors in the marker, followed by the item.
pub(crate) fn expand_webhook(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let source = Source::of(arguments);
    let mut session = Session::default();
    let mut tokens = match lex(source.text()) {
        Ok(arguments) => {
            parse_webhook(arguments.cursor(), &mut session);
            TokenStream::new()
        }
        Err(error) => malformed_error(error, &source),
    };
    if !is_function(item.clone()) {
        misplaced_webhook(Span::OUTSIDE, &mut session);
    }
    tokens.extend(compile_errors(session, &source));
    tokens.extend(item);
    tokens
}

/// Returns whether `fn` follows the attributes, visibility and qualifiers. The body isn't parsed,
/// which would slow down every build.
fn is_function(item: TokenStream) -> bool {
    let mut tokens = item.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                tokens.next();
            }
            TokenTree::Ident(word) => match word.to_string().as_str() {
                "fn" => return true,
                "pub" | "async" | "const" | "unsafe" | "extern" | "default" | "crate" => {}
                _ => return false,
            },
            // `pub(crate)`, or a visibility that a macro has grouped.
            TokenTree::Group(group) if group.delimiter() != Delimiter::Brace => {}
            // The ABI of `extern "C"`.
            TokenTree::Literal(_) => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn recognizes_functions() {
        let cases = [
            (
                quote!(
                    fn f() {}
                ),
                true,
            ),
            (
                quote!(
                    #[doc = "x"]
                    pub(crate) async unsafe extern "C" fn f();
                ),
                true,
            ),
            (
                quote!(
                    const fn f(&self) {}
                ),
                true,
            ),
            (
                quote!(
                    struct S;
                ),
                false,
            ),
            (
                quote!(
                    const X: fn() = f;
                ),
                false,
            ),
            (
                quote!(
                    type F = fn();
                ),
                false,
            ),
            (quote!(impl S { fn f() {} }), false),
            (quote!(), false),
        ];
        for (item, expected) in cases {
            assert_eq!(is_function(item.clone()), expected, "{item}");
        }
    }

    #[test]
    fn valid_marker_expands_to_the_function() {
        let function = quote!(
            fn default(memcached: &mut Memcached) {}
        );
        let expanded = expand_webhook(quote!(mutating, operations = "create"), function.clone());
        assert_eq!(expanded.to_string(), function.to_string());
    }

    #[test]
    fn invalid_marker_keeps_the_item() {
        let text = expand_webhook(
            quote!(mutating, verb = "create"),
            quote!(
                struct S;
            ),
        )
        .to_string();
        assert!(text.contains("unknown argument `verb` of `webhook`"), "{text}");
        assert!(text.contains("expected `webhook` on the function"), "{text}");
        assert!(text.ends_with("struct S ;"), "{text}");
    }
}
