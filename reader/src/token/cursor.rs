//! A place in a list of tokens, from which readers go on.

use super::keyword::is_reserved;
use super::{Delimiter, Kind, LiteralKind, Token, Tokens};
use crate::{Diagnostic, Span};

/// A place among tokens. Copies are cheap: to look ahead, read on with a copy.
///
/// A cursor inside of delimiters never leaves them: the closing one is its end.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    tokens: &'a Tokens<'a>,
    at: u32,
}

/// A name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ident<'a> {
    /// The name, without `r#`.
    pub text: &'a str,
    /// Its place, `r#` included.
    pub span: Span,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(tokens: &'a Tokens<'a>, at: u32) -> Self {
        Cursor { tokens, at }
    }

    fn token(self) -> Token {
        self.tokens.list[self.at as usize]
    }

    /// The token after the next, where the next is not a delimiter and not the end.
    fn second(self) -> Token {
        let last = self.tokens.list.len() - 1;
        self.tokens.list[(self.at as usize + 1).min(last)]
    }

    /// The sort of the next token.
    pub fn kind(self) -> Kind {
        self.token().kind
    }

    /// The place of the next token.
    pub fn span(self) -> Span {
        self.token().span()
    }

    /// The place of the last token passed; that of the next one at the very beginning.
    pub fn previous_span(self) -> Span {
        self.tokens.list[self.at.saturating_sub(1) as usize].span()
    }

    /// The next token as written.
    pub fn text(self) -> &'a str {
        &self.tokens.text[self.span().range()]
    }

    /// The source text of a place.
    pub fn text_of(self, span: Span) -> &'a str {
        &self.tokens.text[span.range()]
    }

    /// Returns true if nothing is left before the closing delimiter.
    pub fn is_end(self) -> bool {
        matches!(self.kind(), Kind::Close(_) | Kind::End)
    }

    /// Passes the next token, or all of a group in delimiters; stays at an end.
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

    /// Passes this character, if it is next.
    pub fn eat(&mut self, punct: u8) -> bool {
        let found = self.is_punct(punct);
        self.at += u32::from(found);
        found
    }

    /// Returns true if the next two tokens are these characters with nothing between: `::`, `->`.
    pub fn is_pair(self, first: u8, second: u8) -> bool {
        self.is_punct(first) && {
            let next = self.second();
            next.kind == Kind::Punct(second) && next.start == self.token().end
        }
    }

    /// Passes two characters with nothing between, if they are next.
    pub fn eat_pair(&mut self, first: u8, second: u8) -> bool {
        let found = self.is_pair(first, second);
        self.at += 2 * u32::from(found);
        found
    }

    /// Passes a character that must be next.
    ///
    /// # Errors
    ///
    /// If another token is next.
    pub fn expect(&mut self, punct: u8) -> Result<(), Diagnostic> {
        if self.eat(punct) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{}`", char::from(punct))))
        }
    }

    /// Returns true if the next token is this word, and not `r#` and the word.
    pub fn is_word(self, word: &str) -> bool {
        self.kind() == Kind::Ident && self.text() == word
    }

    /// Returns true if the token after the next is this word.
    pub(crate) fn is_second_word(self, word: &str) -> bool {
        let second = self.second();
        second.kind == Kind::Ident && &self.tokens.text[second.span().range()] == word
    }

    /// The sort of the token after the next.
    pub(crate) fn second_kind(self) -> Kind {
        self.second().kind
    }

    /// Passes this word, if it is next.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += u32::from(found);
        found
    }

    /// Reads any identifier, keywords included.
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

    /// Passes a lifetime, if one is next; its name begins with the tick.
    pub fn lifetime(&mut self) -> Option<Ident<'a>> {
        (self.kind() == Kind::Lifetime).then(|| {
            let (text, span) = (self.text(), self.span());
            self.at += 1;
            Ident { text, span }
        })
    }

    /// Reads a name, which is not a keyword.
    ///
    /// # Errors
    ///
    /// If no name is next.
    pub fn ident(&mut self) -> Result<Ident<'a>, Diagnostic> {
        let here = *self;
        match self.any_ident() {
            Some(ident) if here.kind() == Kind::Ident && is_reserved(ident.text) => {
                *self = here;
                let message = format!("expected identifier, found keyword `{}`", ident.text);
                Err(Diagnostic::error(ident.span, message))
            }
            Some(ident) => Ok(ident),
            None => Err(self.expected("identifier")),
        }
    }

    /// Returns true if the next token can be a name.
    pub fn is_ident(self) -> bool {
        match self.kind() {
            Kind::RawIdent => true,
            Kind::Ident => !is_reserved(self.text()),
            _ => false,
        }
    }

    /// Returns true if the next token opens this delimiter.
    pub fn is_group(self, delimiter: Delimiter) -> bool {
        self.kind() == Kind::Open(delimiter)
    }

    /// Passes what stands in this delimiter, if it is next, and returns a cursor within.
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

    /// Passes what stands in any delimiter, if one is next, and returns a cursor within.
    pub fn any_group(&mut self) -> Option<Cursor<'a>> {
        match self.kind() {
            Kind::Open(delimiter) => self.group(delimiter),
            _ => None,
        }
    }

    /// Passes a literal, if one is next; returns what it is and how it is written.
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

    /// Returns the error that something else should be here.
    pub fn expected(self, what: &str) -> Diagnostic {
        let message = if self.is_end() {
            format!("unexpected end of input, expected {what}")
        } else {
            format!("expected {what}")
        };
        Diagnostic::error(self.span(), message)
    }

    /// Returns the place from the next token of `start` to the last one passed here.
    pub fn span_since(self, start: Cursor<'_>) -> Span {
        start.span().to(self.previous_span())
    }

    /// Returns true if this cursor stands where another does.
    pub(crate) fn is_at(self, other: Cursor<'_>) -> bool {
        self.at == other.at
    }
}
