//! Splits a CEL expression into tokens.

use std::ops::Range;

use super::Diagnostic;
use super::ast::Literal;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Ident(String),
    /// `` `field-name` ``, after a dot.
    Escaped(String),
    Literal(Literal),
    /// An operator or a bracket.
    Symbol(&'static str),
}

/// The lexer takes the first match, so longer symbols must come first.
const SYMBOLS: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "?", ":", "+", "-", "*", "/", "%", "(", ")", "[", "]",
    "{", "}", ".", ",",
];

pub(crate) fn read_tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, Diagnostic> {
    let mut lexer = Lexer { text, position: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        if lexer.rest().is_empty() {
            return Ok(tokens);
        }
        let start = lexer.position;
        let token = lexer.token()?;
        tokens.push((token, start..lexer.position));
    }
}

struct Lexer<'t> {
    text: &'t str,
    position: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.position + ahead)
            .copied()
            .unwrap_or(0)
    }

    fn error<T>(&self, start: usize, message: impl Into<String>) -> Result<T, Diagnostic> {
        Err(Diagnostic::error(start..self.position.max(start), message))
    }

    fn take(&mut self, fits: impl Fn(u8) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| fits(*byte)).count();
        self.position += length;
        &rest[..length]
    }

    fn skip_space(&mut self) {
        loop {
            self.take(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c));
            if !self.rest().starts_with("//") {
                return;
            }
            let line = self.rest();
            self.position += line.find('\n').unwrap_or(line.len());
        }
    }

    fn token(&mut self) -> Result<Token, Diagnostic> {
        let start = self.position;
        if self.is_string() {
            return self.string_literal();
        }
        let byte = self.byte(0);
        if byte.is_ascii_alphabetic() || byte == b'_' {
            let name = self.take(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            return Ok(match name {
                "true" => Token::Literal(Literal::Bool(true)),
                "false" => Token::Literal(Literal::Bool(false)),
                "null" => Token::Literal(Literal::Null),
                "in" => Token::Symbol("in"),
                name => Token::Ident(name.to_owned()),
            });
        }
        if byte.is_ascii_digit() || byte == b'.' && self.byte(1).is_ascii_digit() {
            return self.number();
        }
        if byte == b'`' {
            self.position += 1;
            let name = self.take(|byte| byte != b'`' && byte != b'\n');
            if name.is_empty() || self.byte(0) != b'`' {
                return self.error(start, "unterminated quoted name");
            }
            self.position += 1;
            return Ok(Token::Escaped(name.to_owned()));
        }
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol)) {
            self.position += symbol.len();
            return Ok(Token::Symbol(symbol));
        }
        let letter = self.rest().chars().next().unwrap_or_default();
        self.position += letter.len_utf8();
        self.error(start, format!("unexpected character `{letter}`"))
    }

    /// String literals may have the prefixes `r` and `b`, in any order.
    fn is_string(&self) -> bool {
        let prefix = self
            .rest()
            .bytes()
            .take(2)
            .take_while(|byte| matches!(byte, b'r' | b'R' | b'b' | b'B'))
            .count();
        matches!(self.byte(prefix), b'"' | b'\'')
    }

    fn string_literal(&mut self) -> Result<Token, Diagnostic> {
        let start = self.position;
        let prefix = self.take(|byte| byte.is_ascii_alphabetic());
        let raw = prefix.contains(['r', 'R']);
        let bytes = prefix.contains(['b', 'B']);
        let quote = &self.rest()[..1];
        let triple = quote.repeat(3);
        let long = self.rest().starts_with(&triple);
        let end = if long { triple.as_str() } else { quote };
        self.position += end.len();
        let mut text: Vec<u8> = Vec::new();
        while !self.rest().starts_with(end) {
            match self.rest().chars().next() {
                None => return self.error(start, "unterminated string"),
                Some('\n' | '\r') if !long => {
                    return self.error(
                        start,
                        "unterminated string; a multi-line string needs triple quotes",
                    );
                }
                Some('\\') if !raw => self.escape(&mut text, bytes)?,
                Some(letter) => {
                    push(&mut text, letter);
                    self.position += letter.len_utf8();
                }
            }
        }
        self.position += end.len();
        Ok(Token::Literal(if bytes {
            Literal::Bytes(text)
        } else {
            Literal::String(String::from_utf8_lossy(&text).into_owned())
        }))
    }

    fn escape(&mut self, text: &mut Vec<u8>, bytes: bool) -> Result<(), Diagnostic> {
        let start = self.position;
        let letter = self.byte(1);
        self.position += 2;
        let (digits, radix) = match letter {
            b'x' | b'X' => (2, 16),
            b'u' if !bytes => (4, 16),
            b'U' if !bytes => (8, 16),
            b'0'..=b'3' => {
                self.position -= 1;
                (3, 8)
            }
            _ => {
                let plain = match letter {
                    b'a' => '\x07',
                    b'b' => '\x08',
                    b'f' => '\x0c',
                    b'n' => '\n',
                    b'r' => '\r',
                    b't' => '\t',
                    b'v' => '\x0b',
                    b'"' | b'\'' | b'\\' | b'?' | b'`' => char::from(letter),
                    _ => {
                        self.position = self.position.min(self.text.len());
                        while !self.text.is_char_boundary(self.position) {
                            self.position += 1;
                        }
                        return self.error(start, "unknown escape sequence; write `\\\\` for a backslash");
                    }
                };
                push(text, plain);
                return Ok(());
            }
        };
        let code = self
            .rest()
            .get(..digits)
            .and_then(|code| u32::from_str_radix(code, radix).ok());
        // Escape sequences denote bytes in a bytes literal, but characters in a string.
        let byte = code.and_then(|code| u8::try_from(code).ok());
        match (code.and_then(char::from_u32), byte) {
            (_, Some(byte)) if bytes => {
                text.push(byte);
                self.position += digits;
                Ok(())
            }
            (Some(letter), _) => {
                push(text, letter);
                self.position += digits;
                Ok(())
            }
            (None, _) => self.error(start, "the escape sequence is not a Unicode character"),
        }
    }

    fn number(&mut self) -> Result<Token, Diagnostic> {
        let start = self.position;
        if self.rest().starts_with("0x") {
            self.position += 2;
            let digits = self.take(|byte| byte.is_ascii_hexdigit());
            let value = u64::from_str_radix(digits, 16);
            return self.whole(start, value.ok());
        }
        self.take(|byte| byte.is_ascii_digit());
        let mut fraction = false;
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            fraction = true;
            self.position += 1;
            self.take(|byte| byte.is_ascii_digit());
        }
        let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
        if matches!(self.byte(0), b'e' | b'E') && self.byte(1 + sign).is_ascii_digit() {
            fraction = true;
            self.position += 1 + sign;
            self.take(|byte| byte.is_ascii_digit());
        }
        if fraction {
            let value = self.text[start..self.position].parse();
            return Ok(Token::Literal(Literal::Double(value.unwrap_or(f64::INFINITY))));
        }
        let value = self.text[start..self.position].parse::<u64>();
        self.whole(start, value.ok())
    }

    fn whole(&mut self, start: usize, value: Option<u64>) -> Result<Token, Diagnostic> {
        let Some(value) = value else {
            return self.error(start, "number out of range: it has more than 64 bits");
        };
        if matches!(self.byte(0), b'u' | b'U') {
            self.position += 1;
            return Ok(Token::Literal(Literal::Uint(value)));
        }
        // `-9223372036854775808` is lexed as a minus sign followed by a number that exceeds
        // `i64::MAX` by one.
        match i64::try_from(value) {
            Ok(value) => Ok(Token::Literal(Literal::Int(value))),
            Err(_) if value == 1 << 63 => Ok(Token::Literal(Literal::Int(i64::MIN))),
            Err(_) => self.error(start, "number out of range: it has more than 64 bits"),
        }
    }
}

fn push(text: &mut Vec<u8>, letter: char) {
    text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}
