//! Converts the compiler's tokens to text for `rbuilder-syntax`, and spans of the text back to
//! tokens.
//!
//! Each token is followed by a space, unless the next one continues the same operator. The offset
//! of each token is recorded, so that a span of the text maps to a range of tokens.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, Spacing, Span as Place, TokenStream, TokenTree};
use rbuilder_reader::Span;

pub(crate) struct Source {
    text: String,
    /// Sorted by offset in the text.
    tokens: Vec<Token>,
}

struct Token {
    start: usize,
    /// The compiler's span.
    place: Place,
    /// The token and its end. An opening delimiter has the entire group, and a closing one nothing.
    tree: Option<(TokenTree, usize)>,
}

impl Source {
    pub(crate) fn of(tokens: TokenStream) -> Self {
        let mut source = Source {
            text: String::new(),
            tokens: Vec::new(),
        };
        source.add_all(tokens);
        source
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn span(&self) -> Span {
        Span {
            start: 0,
            end: u32::try_from(self.text.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the compiler's spans of the first and the last token in `span`.
    pub(crate) fn places(&self, span: Span) -> (Place, Place) {
        let Range { start, end } = span.range();
        if start >= self.text.len() {
            return (Place::call_site(), Place::call_site());
        }
        let behind = |at: usize| self.tokens.partition_point(|token| token.start <= at);
        let place = |count: usize| {
            self.tokens
                .get(count.saturating_sub(1))
                .map_or_else(Place::call_site, |token| token.place)
        };
        let first = behind(start);
        (place(first), place(behind(end.saturating_sub(1)).max(first)))
    }

    pub(crate) fn tokens(&self, span: Span) -> TokenStream {
        let Range { start, end } = span.range();
        let mut from = start;
        let mut found = TokenStream::new();
        for token in &self.tokens {
            if token.start < from || token.start >= end {
                continue;
            }
            if let Some((tree, behind)) = &token.tree {
                found.extend([tree.clone()]);
                from = *behind;
            }
        }
        found
    }

    fn add_all(&mut self, tokens: TokenStream) {
        for tree in tokens {
            match tree {
                TokenTree::Group(group) => self.add_group(group),
                TokenTree::Punct(punct) => {
                    let joint = punct.spacing() == Spacing::Joint;
                    self.add(
                        punct.as_char().encode_utf8(&mut [0; 4]),
                        punct.span(),
                        Some(punct.into()),
                    );
                    if !joint {
                        self.text.push(' ');
                    }
                }
                TokenTree::Ident(ident) => {
                    // Write `$crate` as `crate`, since our grammar lacks `$crate`.
                    let name = ident.to_string();
                    self.add(name.trim_start_matches('$'), ident.span(), Some(ident.into()));
                    self.text.push(' ');
                }
                TokenTree::Literal(literal) => {
                    self.add(&literal.to_string(), literal.span(), Some(literal.into()));
                    self.text.push(' ');
                }
            }
        }
    }

    fn add(&mut self, text: &str, place: Place, tree: Option<TokenTree>) {
        let start = self.text.len();
        self.text.push_str(text);
        let end = self.text.len();
        self.tokens.push(Token {
            start,
            place,
            tree: tree.map(|tree| (tree, end)),
        });
    }

    /// Adds a group.
    fn add_group(&mut self, group: Group) {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            // A group without delimiters comes from a macro variable. An expression with an
            // operator needs parentheses to keep its precedence in the text.
            Delimiter::None if has_operator(&group) => ("(", ")"),
            Delimiter::None => return self.add_all(group.stream()),
        };
        let (first, last) = (group.span_open(), group.span_close());
        let (index, inner) = (self.tokens.len(), group.stream());
        self.add(open, first, Some(group.into()));
        self.add_all(inner);
        self.add(close, last, None);
        self.text.push(' ');
        let end = self.text.len();
        if let Some((_, behind)) = &mut self.tokens[index].tree {
            *behind = end;
        }
    }
}

fn has_operator(group: &Group) -> bool {
    group.stream().into_iter().any(|tree| match tree {
        TokenTree::Punct(punct) => matches!(punct.as_char(), '+' | '-' | '*' | '/' | '%' | '|' | '^' | '!'),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use rbuilder_reader::token::lex;

    use super::*;

    fn check(tokens: TokenStream) {
        let source = Source::of(tokens.clone());
        assert!(lex(source.text()).is_ok(), "{}", source.text());
        let all = Span {
            start: 0,
            end: u32::try_from(source.text().len()).expect("a short text"),
        };
        assert_eq!(source.tokens(all).to_string(), tokens.to_string());
        let again: TokenStream = source.text().parse().expect("tokens");
        assert_eq!(again.to_string(), tokens.to_string());
    }

    #[test]
    fn text_round_trips() {
        check(quote::quote! {
            #[doc = "a \"b\""]
            pub struct r#S<'a, T: Fn(u8) -> Vec<Vec<u8>>>(&'a T, [u8; 4]) where T: 'a;
        });
        check(quote::quote!(a::b == -1.5e3 << 2 && 'c' != '\''..r#"x"#));
        check(quote::quote!({ ([]) }));
    }

    #[test]
    fn span_maps_to_tokens() {
        let source = Source::of(quote::quote!(a: Vec<(B, C)>, d));
        let start = source.text().find("Vec").expect("the type");
        let end = source.text().find(", d").expect("the next field");
        let span = Span {
            start: u32::try_from(start).expect("a short text"),
            end: u32::try_from(end).expect("a short text"),
        };
        assert_eq!(source.tokens(span).to_string(), "Vec < (B , C) >");
    }

    #[test]
    fn undelimited_groups_keep_precedence() {
        let one = Group::new(Delimiter::None, quote::quote!(1 + 2));
        let ty = Group::new(Delimiter::None, quote::quote!(Vec<u8>));
        let source = Source::of(quote::quote!(a = #one * 3, b: #ty));
        assert_eq!(source.text().replace(' ', ""), "a=(1+2)*3,b:Vec<u8>");
    }
}
