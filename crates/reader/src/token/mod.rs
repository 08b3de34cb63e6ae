//! Tokens of Rust source, as a flat list in which each delimiter stores the index of its partner.
//!
//! [`lex`] creates the list in a single pass. It checks that delimiters match and literals are
//! terminated, skips function bodies (most of a program, and never part of an API), and records
//! marks wherever they occur. Readers walk the list with a [`Cursor`] and interpret the tokens.

mod cursor;
mod keyword;
mod lexer;
mod literal;
mod mark;
#[cfg(test)]
mod tests;

pub use cursor::{Cursor, Ident};
pub use lexer::{MAX_DEPTH, lex, lex_marked};
pub use literal::text_value;
pub(crate) use literal::{char_value, float_value, integer_value, with_plain_lines};
pub use mark::{Mark, MarkWords};

use crate::{Diagnostic, Span};

/// The tokens of a text.
#[derive(Debug)]
pub struct Tokens<'a> {
    text: &'a str,
    /// Terminated by [`Kind::End`].
    list: Vec<Token>,
    marks: Vec<Mark>,
    comments: Vec<Span>,
}

impl<'a> Tokens<'a> {
    /// A cursor at the first token.
    pub fn cursor(&'a self) -> Cursor<'a> {
        Cursor::new(self, 0)
    }

    /// The source text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the span of the whole text.
    pub fn span(&self) -> Span {
        self.list.last().map_or_else(Span::default, |end| Span {
            start: 0,
            end: end.end,
        })
    }

    /// Comments that start with [`MarkWords::comments`], without the slashes. Excludes comments in
    /// function bodies.
    pub fn marked_comments(&self) -> &[Span] {
        &self.comments
    }

    /// The marks in source order, including those in function bodies.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    start: u32,
    end: u32,
    /// Index of the matching delimiter.
    partner: u32,
    kind: Kind,
}

impl Token {
    fn span(self) -> Span {
        Span {
            start: self.start,
            end: self.end,
        }
    }
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword.
    Ident,
    /// `r#name`.
    RawIdent,
    /// `'name`.
    Lifetime,
    /// A literal.
    Literal(LiteralKind),
    /// An ASCII character. `::` is two adjacent tokens.
    Punct(u8),
    /// An opening delimiter.
    Open(Delimiter),
    /// A closing delimiter.
    Close(Delimiter),
    /// `///…` or `/**…*/`.
    OuterDoc,
    /// `//!…` or `/*!…*/`.
    InnerDoc,
    /// The end of the text.
    End,
}

/// The kinds of literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// `"…"`, `r"…"`, `r#"…"#`.
    Text,
    /// `'c'`.
    Char,
    /// `1`, `0x1F_u8`.
    Integer,
    /// `1.5`, `1e3`, `1f64`.
    Float,
    /// `b"…"`, `b'…'`, `c"…"` and their raw forms.
    Bytes,
}

/// The kinds of delimiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// `(…)`.
    Paren,
    /// `[…]`.
    Bracket,
    /// `{…}`.
    Brace,
}

pub(crate) fn warn_too_deep(span: Span) -> Diagnostic {
    Diagnostic::warning(span, "nested too deeply")
}
