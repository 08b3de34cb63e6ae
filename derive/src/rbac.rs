//! `#[rbac(…)]`: checks its arguments, and leaves the item unchanged.

use proc_macro2::TokenStream;
use rbuilder_reader::token::lex;
use rbuilder_syntax::{Session, parse_rbac};

use crate::report::{compile_errors, malformed_error};
use crate::source::Source;

/// Expands to the errors in the arguments, followed by the item.
pub(crate) fn expand_rbac(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let source = Source::of(arguments);
    let mut tokens = match lex(source.text()) {
        Ok(arguments) => {
            let mut session = Session::default();
            parse_rbac(arguments.cursor(), &mut session);
            compile_errors(session, &source)
        }
        Err(error) => malformed_error(error, &source),
    };
    tokens.extend(item);
    tokens
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn valid_rule_expands_to_the_item() {
        let arguments = quote!(groups = "apps", resources = "deployments", verbs = "get;list");
        assert_eq!(
            expand_rbac(
                arguments,
                quote!(
                    fn f() {}
                )
            )
            .to_string(),
            quote!(
                fn f() {}
            )
            .to_string()
        );
    }

    #[test]
    fn invalid_rule_keeps_the_item() {
        let text = expand_rbac(
            quote!(verb = "get"),
            quote!(
                fn f() {}
            ),
        )
        .to_string();
        assert!(text.contains("unknown argument `verb` of `rbac`"), "{text}");
        assert!(text.ends_with("fn f () { }"), "{text}");
    }
}
