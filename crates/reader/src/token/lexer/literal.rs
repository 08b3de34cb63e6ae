//! Literals and lifetimes, both of which may start with `'`.

use super::{Lexer, starts_word};
use crate::Diagnostic;
use crate::token::{Kind, LiteralKind};

impl Lexer<'_> {
    pub(super) fn skip_text(&mut self) -> Result<(), Diagnostic> {
        let start = self.at;
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => self.at += 1,
            }
        }
        Err(Diagnostic::error(
            self.span(start, start + 1),
            "unterminated string literal",
        ))
    }

    /// Skips a raw string, starting at its first `#` or `"`. If there's none, returns false without
    /// moving.
    pub(super) fn skip_raw_text(&mut self) -> Result<bool, Diagnostic> {
        let hashes = self.bytes[self.at..]
            .iter()
            .take_while(|&&byte| byte == b'#')
            .count();
        if self.peek(hashes) != b'"' {
            return Ok(false);
        }
        let mut from = self.at + hashes + 1;
        while let Some(quote) = self.text[from..].find('"') {
            let behind = from + quote + 1;
            let closing = &self.bytes[behind..];
            if closing.len() >= hashes && closing[..hashes].iter().all(|&byte| byte == b'#') {
                self.at = behind + hashes;
                return Ok(true);
            }
            from = behind;
        }
        Err(Diagnostic::error(
            self.span(self.at, self.at + hashes + 1),
            "unterminated string literal",
        ))
    }

    /// Reads `'a'`, `'\n'` or the lifetime `'a`. A prefix such as `b` may precede the tick.
    pub(super) fn tick(&mut self, start: usize, tick: usize) -> Result<(), Diagnostic> {
        self.at = tick + 1;
        let mut chars = self.text[self.at..].chars();
        let kind = match chars.next() {
            Some('\\') => {
                // Skip the escaped character, which may be `'`.
                let escaped = chars.next().map_or(0, char::len_utf8);
                self.at += 1 + escaped;
                let rest = &self.text[self.at..];
                let Some(end) = rest
                    .find(['\'', '\n'])
                    .filter(|end| rest.as_bytes()[*end] == b'\'')
                else {
                    return Err(Diagnostic::error(
                        self.span(tick, tick + 1),
                        "unterminated character literal",
                    ));
                };
                self.at += end + 1;
                Kind::Literal(LiteralKind::Char)
            }
            Some(letter) if chars.next() == Some('\'') => {
                self.at += letter.len_utf8() + 1;
                Kind::Literal(LiteralKind::Char)
            }
            Some(letter) if letter == '_' || letter.is_alphabetic() => {
                self.skip_word();
                if self.peek(0) == b'#' && &self.bytes[tick + 1..self.at] == b"r" {
                    self.at += 1;
                    self.skip_word();
                }
                Kind::Lifetime
            }
            _ => {
                return Err(Diagnostic::error(
                    self.span(tick, tick + 1),
                    "unterminated character literal",
                ));
            }
        };
        match kind {
            Kind::Literal(_) if start < tick => self.literal(start, LiteralKind::Bytes),
            kind => self.push(start, kind),
        }
        Ok(())
    }

    /// Reads a number including fraction, exponent and suffix.
    pub(super) fn number(&mut self, start: usize) {
        self.skip_word();
        let prefixed =
            self.bytes[start] == b'0' && matches!(self.bytes.get(start + 1), Some(b'x' | b'o' | b'b'));
        let mut float = false;
        if !prefixed {
            // `1.5` and `1.` are numbers. In `1..2`, `1.max(2)` and `x.0.1`, the dot isn't part of
            // the number.
            if self.peek(0) == b'.' && self.peek(1) != b'.' && !starts_word(self.peek(1)) {
                float = true;
                self.at += 1;
                self.skip_word();
            }
            if self.ends_in_exponent(start) && matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
                self.skip_word();
            }
            let rest = &self.bytes[start..self.at];
            float |= rest.ends_with(b"f32") || rest.ends_with(b"f64") || has_exponent(rest);
        }
        let kind = if float {
            LiteralKind::Float
        } else {
            LiteralKind::Integer
        };
        self.literal(start, kind);
    }

    pub(super) fn ends_in_exponent(&self, start: usize) -> bool {
        let (last, digits) = match self.bytes[start..self.at].split_last() {
            Some((last, digits)) => (*last, digits),
            None => return false,
        };
        matches!(last, b'e' | b'E')
            && digits
                .iter()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'.'))
    }
}

/// Excludes e.g. `1usize` and `1else`, where `e` is next to another letter.
fn has_exponent(number: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'_' | b'.');
    let rest = match number.iter().position(|byte| !is_digit(byte)) {
        Some(at) => &number[at..],
        None => return false,
    };
    matches!(rest, [b'e' | b'E', next, ..] if is_digit(next) || matches!(next, b'+' | b'-'))
}
