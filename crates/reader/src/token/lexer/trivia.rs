//! White space and comments, plus the byte order mark and shebang at the start of a file.

use super::Lexer;
use crate::Diagnostic;
use crate::token::Kind;

impl Lexer<'_> {
    /// Skips a byte order mark and a shebang, as opposed to `#![…]`.
    pub(super) fn skip_preamble(&mut self) {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        if !self.bytes[self.at..].starts_with(b"#!") {
            return;
        }
        let start = self.at;
        self.at += 2;
        // Ignore unterminated comments; the main loop reports them.
        let attribute = self.skip_trivia().is_ok() && self.peek(0) == b'[';
        self.at = start;
        if !attribute {
            self.skip_line();
        }
    }

    pub(super) fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    /// Skips white space and all comments, including doc comments.
    pub(super) fn skip_trivia(&mut self) -> Result<(), Diagnostic> {
        loop {
            match self.peek(0) {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'/' if self.peek(1) == b'*' => self.skip_block_comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// The next non-trivia byte, or 0 at the end.
    pub(super) fn next_byte(&mut self) -> Result<u8, Diagnostic> {
        let here = self.at;
        self.skip_trivia()?;
        let byte = self.peek(0);
        self.at = here;
        Ok(byte)
    }

    /// `///` and `//!` are doc comments; `//` and `////` aren't.
    pub(super) fn line_comment(&mut self, start: usize) {
        let kind = match (self.peek(2), self.peek(3)) {
            (b'/', b'/') => None,
            (b'/', _) => Some(Kind::OuterDoc),
            (b'!', _) => Some(Kind::InnerDoc),
            _ => None,
        };
        self.skip_line();
        if let Some(kind) = kind {
            self.push(start, kind);
        } else if self.body.is_none() {
            self.note_comment(start + 2);
        }
    }

    /// Records a comment if it starts with the requested character.
    fn note_comment(&mut self, start: usize) {
        let Some(wanted) = self.words.comments else { return };
        let text = &self.bytes[start..self.at];
        let first = text.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
        if first == Some(&wanted) {
            let span = self.span(start, self.at);
            self.comments.push(span);
        }
    }

    /// `/**` and `/*!` are doc comments; `/*`, `/***` and `/**/` aren't.
    pub(super) fn block_comment(&mut self, start: usize) -> Result<(), Diagnostic> {
        let kind = match (self.peek(2), self.peek(3)) {
            (b'*', b'*' | b'/') => None,
            (b'*', _) => Some(Kind::OuterDoc),
            (b'!', _) => Some(Kind::InnerDoc),
            _ => None,
        };
        self.skip_block_comment()?;
        if let Some(kind) = kind {
            self.push(start, kind);
        }
        Ok(())
    }

    pub(super) fn skip_block_comment(&mut self) -> Result<(), Diagnostic> {
        let start = self.at;
        let mut depth = 0;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.at += 1,
            }
        }
        Err(Diagnostic::error(
            self.span(start, start + 2),
            "unterminated comment",
        ))
    }
}
