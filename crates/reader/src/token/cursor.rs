//! A position in a list of tokens.

use super::keyword::is_reserved;
use super::{Delimiter, Kind, LiteralKind, Token, Tokens};
use crate::{Diagnostic, Span};

/// A position in a list of tokens. Cheap to copy, so readers look ahead with a copy.
///
/// Cursors never leave the delimiters that they are in, but end at the closing delimiter.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    tokens: &'a Tokens<'a>,
    at: u32,
}

/// An identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ident<'a> {
    /// The name, without `r#`.
    pub text: &'a str,
    /// Location of the name, including `r#`.
    pub span: Span,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(tokens: &'a Tokens<'a>, at: u32) -> Self {
        Cursor { tokens, at }
    }

    fn token(self) -> Token {
        self.tokens.list[self.at as usize]
    }

    /// The token after next. The next token must not be a delimiter or the end.
    fn second(self) -> Token {
        let last = self.tokens.list.len() - 1;
        self.tokens.list[(self.at as usize + 1).min(last)]
    }

    /// Kind of the next token.
    pub fn kind(self) -> Kind {
        self.token().kind
    }

    /// Location of the next token.
    pub fn span(self) -> Span {
        self.token().span()
    }

    /// Location of the previous token, or of the next one at the very start.
    pub fn previous_span(self) -> Span {
        self.tokens.list[self.at.saturating_sub(1) as usize].span()
    }

    /// Source text of the next token.
    pub fn text(self) -> &'a str {
        &self.tokens.text[self.span().range()]
    }

    /// Source text of a span.
    pub fn text_of(self, span: Span) -> &'a str {
        &self.tokens.text[span.range()]
    }

    /// Returns true if the next token is the closing delimiter or the end of the text.
    pub fn is_end(self) -> bool {
        matches!(self.kind(), Kind::Close(_) | Kind::End)
    }

    /// Skips the next token, or an entire group if it's an opening delimiter. No-op at the end.
    pub fn skip(&mut self) {
        match self.token() {
            Token {
                kind: Kind::Close(_) | Kind::End,
                ..
            } => {}
            Token {
                kind: Kind::Open(_),
                partner,
                ..
            } => self.at = partner + 1,
            _ => self.at += 1,
        }
    }

    /// Returns true if the next token is this character.
    pub fn is_punct(self, punct: u8) -> bool {
        self.kind() == Kind::Punct(punct)
    }

    /// Consumes this character if it's next.
    pub fn eat(&mut self, punct: u8) -> bool {
        let found = self.is_punct(punct);
        self.at += u32::from(found);
        found
    }

    /// Returns true if the next two tokens are these characters without any space in between, as in
    /// `::` or `->`.
    pub fn is_pair(self, first: u8, second: u8) -> bool {
        self.is_punct(first) && {
            let next = self.second();
            next.kind == Kind::Punct(second) && next.start == self.token().end
        }
    }

    /// Consumes two adjacent characters if they're next.
    pub fn eat_pair(&mut self, first: u8, second: u8) -> bool {
        let found = self.is_pair(first, second);
        self.at += 2 * u32::from(found);
        found
    }

    /// Consumes a mandatory character.
    ///
    /// # Errors
    ///
    /// Returns an error if another token is next.
    pub fn expect(&mut self, punct: u8) -> Result<(), Diagnostic> {
        if self.eat(punct) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{}`", char::from(punct))))
        }
    }

    /// Whether the next token is this word, without `r#`.
    pub fn is_word(self, word: &str) -> bool {
        self.kind() == Kind::Ident && self.text() == word
    }

    pub(crate) fn is_second_word(self, word: &str) -> bool {
        let second = self.second();
        second.kind == Kind::Ident && &self.tokens.text[second.span().range()] == word
    }

    pub(crate) fn second_kind(self) -> Kind {
        self.second().kind
    }

    /// Consumes this word if it's next.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += u32::from(found);
        found
    }

    /// Reads an identifier or keyword.
    pub fn any_ident(&mut self) -> Option<Ident<'a>> {
        let token = self.token();
        let text = &self.tokens.text[token.span().range()];
        let text = match token.kind {
            Kind::Ident => text,
            Kind::RawIdent => &text[2..],
            _ => return None,
        };
        self.at += 1;
        Some(Ident {
            text,
            span: token.span(),
        })
    }

    /// Reads the next lifetime, if any. Its name starts with `'`.
    pub fn lifetime(&mut self) -> Option<Ident<'a>> {
        (self.kind() == Kind::Lifetime).then(|| {
            let (text, span) = (self.text(), self.span());
            self.at += 1;
            Ident { text, span }
        })
    }

    /// Reads an identifier that isn't a keyword.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none.
    pub fn ident(&mut self) -> Result<Ident<'a>, Diagnostic> {
        let here = *self;
        match self.any_ident() {
            // Raw identifiers such as `r#type` aren't keywords.
            Some(ident) if here.kind() == Kind::Ident && is_reserved(ident.text) => {
                *self = here;
                let message = format!("expected identifier, found keyword `{}`", ident.text);
                Err(Diagnostic::error(ident.span, message))
            }
            Some(ident) => Ok(ident),
            None => Err(self.expected("identifier")),
        }
    }

    /// Returns true if the next token is an identifier that isn't a keyword.
    pub fn is_ident(self) -> bool {
        match self.kind() {
            Kind::RawIdent => true,
            Kind::Ident => !is_reserved(self.text()),
            _ => false,
        }
    }

    /// Whether the next token opens a group with this delimiter.
    pub fn is_group(self, delimiter: Delimiter) -> bool {
        self.kind() == Kind::Open(delimiter)
    }

    /// Skips the next group with this delimiter, if any, and returns a cursor at its content.
    pub fn group(&mut self, delimiter: Delimiter) -> Option<Cursor<'a>> {
        if !self.is_group(delimiter) {
            return None;
        }
        let inner = Cursor {
            at: self.at + 1,
            ..*self
        };
        self.skip();
        Some(inner)
    }

    /// Skips the next group with any delimiter, if any, and returns a cursor at its content.
    pub fn any_group(&mut self) -> Option<Cursor<'a>> {
        match self.kind() {
            Kind::Open(delimiter) => self.group(delimiter),
            _ => None,
        }
    }

    /// Reads the next literal, if any. Returns its kind and source text.
    pub fn literal(&mut self) -> Option<(LiteralKind, &'a str)> {
        match self.kind() {
            Kind::Literal(kind) => {
                let text = self.text();
                self.at += 1;
                Some((kind, text))
            }
            _ => None,
        }
    }

    /// Creates the error "expected …" for the next token.
    pub fn expected(self, what: &str) -> Diagnostic {
        let message = if self.is_end() {
            format!("unexpected end of input, expected {what}")
        } else {
            format!("expected {what}")
        };
        Diagnostic::error(self.span(), message)
    }

    /// The span from the next token of `start` to the previous token of this cursor.
    pub fn span_since(self, start: Cursor<'_>) -> Span {
        start.span().to(self.previous_span())
    }

    /// The span from the next token to the last one.
    pub fn span_to_end(self) -> Span {
        let mut end = self;
        while !end.is_end() {
            end.skip();
        }
        end.span_since(self)
    }

    pub(crate) fn is_at(self, other: Cursor<'_>) -> bool {
        self.at == other.at
    }
}
