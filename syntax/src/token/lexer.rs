//! Text to tokens.

use super::mark::{Mark, MarkKind};
use super::{Delimiter, Kind, LiteralKind, Malformed, Token, Tokens};
use crate::Span;

/// Delimiters or angle brackets within each other, outside the bodies of functions; real code stays below 20.
pub const MAX_DEPTH: usize = 50;

/// Bytes of text for each token, at the least, in code as people write it.
const BYTES_PER_TOKEN: usize = 6;

/// Reads a text: delimiters match, literals and comments end, nothing is nested deeper than [`MAX_DEPTH`].
///
/// A byte order mark and a first line that begins with `#!` are passed over.
pub fn lex(text: &str) -> Result<Tokens<'_>, Malformed> {
    if u32::try_from(text.len()).is_err() {
        let message = "a text of four gigabytes or more is not read";
        return Err(Malformed::new(Span::default(), message));
    }
    let mut lexer = Lexer::new(text);
    lexer.skip_preamble();
    lexer.run()?;
    Ok(Tokens {
        text,
        list: lexer.list,
        marks: lexer.marks,
    })
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    list: Vec<Token>,
    marks: Vec<Mark>,
    open: Vec<Open>,
    /// Between `fn name` and the body.
    signature: Option<Signature>,
    /// How many delimiters are open around the body of the function we are in.
    body: Option<usize>,
    /// How many are open around the attribute we are in.
    attribute: Option<usize>,
    /// How many are open around the arguments of the `derive` we are in.
    derive: Option<usize>,
}

/// A delimiter that waits for its partner.
struct Open {
    delimiter: Delimiter,
    start: u32,
    /// Its token, where it has one.
    index: u32,
}

struct Signature {
    /// How many delimiters were open at `fn`.
    depth: usize,
    /// How many `<` are open: a brace between them is an argument, not a body.
    angles: usize,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Lexer {
            text,
            bytes: text.as_bytes(),
            at: 0,
            list: Vec::with_capacity(text.len() / BYTES_PER_TOKEN + 1),
            marks: Vec::new(),
            open: Vec::new(),
            signature: None,
            body: None,
            attribute: None,
            derive: None,
        }
    }

    /// A byte order mark, and a first line that begins with `#!` and is no attribute.
    fn skip_preamble(&mut self) {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        if !self.bytes[self.at..].starts_with(b"#!") {
            return;
        }
        let start = self.at;
        self.at += 2;
        // An unended comment is complained about when it is met again.
        let attribute = self.skip_trivia().is_ok() && self.peek(0) == b'[';
        self.at = start;
        if !attribute {
            self.skip_line();
        }
    }

    fn run(&mut self) -> Result<(), Malformed> {
        while let Some(&byte) = self.bytes.get(self.at) {
            let start = self.at;
            match byte {
                b' ' | b'\n' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.line_comment(start),
                b'/' if self.peek(1) == b'*' => self.block_comment(start)?,
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(start)?,
                b'"' => {
                    self.skip_text()?;
                    self.literal(start, LiteralKind::Text);
                }
                b'0'..=b'9' => self.number(start),
                b'(' => self.open(Delimiter::Paren)?,
                b'[' => self.open(Delimiter::Bracket)?,
                b'{' => self.open(Delimiter::Brace)?,
                b')' => self.close(Delimiter::Paren)?,
                b']' => self.close(Delimiter::Bracket)?,
                b'}' => self.close(Delimiter::Brace)?,
                b'\'' => self.tick(start, start)?,
                b'!' | b'#' | b'$' | b'%' | b'&' | b'*' | b'+' | b',' | b'-' | b'.' | b'/' | b':' | b';'
                | b'<' | b'=' | b'>' | b'?' | b'@' | b'^' | b'|' | b'~' => self.punct(byte),
                0x80.. => self.foreign(start)?,
                _ => return Err(self.stray(start)),
            }
        }
        if let Some(open) = self.open.last() {
            let span = self.span(open.start as usize, open.start as usize + 1);
            let message = format!("`{}` is never closed", open.delimiter.opening());
            return Err(Malformed::new(span, message));
        }
        let end = self.bytes.len();
        self.body = None;
        self.push(end, Kind::End);
        Ok(())
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The text is shorter than 4 GB, so nothing is cut off.
    #[allow(clippy::cast_possible_truncation)]
    fn span(&self, start: usize, end: usize) -> Span {
        Span {
            start: start as u32,
            end: end as u32,
        }
    }

    /// Adds the token from `start` to here, unless it is in a body.
    fn push(&mut self, start: usize, kind: Kind) {
        if self.body.is_none() {
            let Span { start, end } = self.span(start, self.at);
            self.list.push(Token {
                start,
                end,
                partner: 0,
                kind,
            });
        }
    }

    fn literal(&mut self, start: usize, kind: LiteralKind) {
        self.push(start, Kind::Literal(kind));
    }

    fn stray(&self, start: usize) -> Malformed {
        let letter = self.text[start..].chars().next().unwrap_or_default();
        let span = self.span(start, start + letter.len_utf8());
        Malformed::new(span, format!("unexpected character `{}`", letter.escape_debug()))
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    /// Spaces and comments, documentation included.
    fn skip_trivia(&mut self) -> Result<(), Malformed> {
        loop {
            match self.peek(0) {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'/' if self.peek(1) == b'*' => self.skip_block_comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// The next byte that is neither space nor comment; 0 at the end.
    fn next_byte(&mut self) -> Result<u8, Malformed> {
        let here = self.at;
        self.skip_trivia()?;
        let byte = self.peek(0);
        self.at = here;
        Ok(byte)
    }

    /// `///` and `//!` document; `//` and `////` do not.
    fn line_comment(&mut self, start: usize) {
        let kind = match (self.peek(2), self.peek(3)) {
            (b'/', b'/') => None,
            (b'/', _) => Some(Kind::OuterDoc),
            (b'!', _) => Some(Kind::InnerDoc),
            _ => None,
        };
        self.skip_line();
        if let Some(kind) = kind {
            self.push(start, kind);
        }
    }

    /// `/**` and `/*!` document; `/*`, `/***` and `/**/` do not.
    fn block_comment(&mut self, start: usize) -> Result<(), Malformed> {
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

    fn skip_block_comment(&mut self) -> Result<(), Malformed> {
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
        Err(Malformed::new(
            self.span(start, start + 2),
            "this comment never ends",
        ))
    }

    /// From the opening quote to behind the closing one.
    fn skip_text(&mut self) -> Result<(), Malformed> {
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
        Err(Malformed::new(
            self.span(start, start + 1),
            "this text never ends",
        ))
    }

    /// From the first `#` or `"` to behind the last; does not move where no raw text begins.
    fn skip_raw_text(&mut self) -> Result<bool, Malformed> {
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
        Err(Malformed::new(
            self.span(self.at, self.at + hashes + 1),
            "this text never ends",
        ))
    }

    /// `'a'`, `'\n'`, or the lifetime `'a`. A prefix may stand before the tick.
    fn tick(&mut self, start: usize, tick: usize) -> Result<(), Malformed> {
        self.at = tick + 1;
        let mut chars = self.text[self.at..].chars();
        let kind = match chars.next() {
            Some('\\') => {
                // The escaped character may be a tick itself.
                let escaped = chars.next().map_or(0, char::len_utf8);
                self.at += 1 + escaped;
                let rest = &self.text[self.at..];
                let Some(end) = rest
                    .find(['\'', '\n'])
                    .filter(|end| rest.as_bytes()[*end] == b'\'')
                else {
                    return Err(Malformed::new(
                        self.span(tick, tick + 1),
                        "this character never ends",
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
                return Err(Malformed::new(
                    self.span(tick, tick + 1),
                    "this character never ends",
                ));
            }
        };
        match kind {
            Kind::Literal(_) if start < tick => self.literal(start, LiteralKind::Bytes),
            kind => self.push(start, kind),
        }
        Ok(())
    }

    fn skip_word(&mut self) {
        while matches!(self.peek(0), b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | 0x80..) {
            self.at += 1;
        }
        // Spaces of other scripts end a word as the common ones do.
        let word_end = self.at;
        if self.bytes[word_end.saturating_sub(1)] >= 0x80 {
            self.end_before_foreign_space();
        }
    }

    /// Moves back to the first space among the characters beyond ASCII that were just passed.
    fn end_before_foreign_space(&mut self) {
        let passed = self.bytes[..self.at].iter().rev();
        let mut start = self.at - passed.take_while(|&&byte| byte >= 0x80).count();
        while start < self.at && !self.text.is_char_boundary(start) {
            start += 1;
        }
        if let Some((offset, _)) = self.text[start..self.at]
            .char_indices()
            .find(|(_, letter)| is_space(*letter))
        {
            self.at = start + offset;
        }
    }

    /// An identifier, or a literal with a prefix: `r#"…"#`, `b"…"`, `c"…"`, `br"…"`, `b'…'`.
    fn word(&mut self, start: usize) -> Result<(), Malformed> {
        self.skip_word();
        let word = &self.bytes[start..self.at];
        if word.len() <= 2 {
            match (word, self.peek(0)) {
                (b"fn", _) => return self.function(start),
                (b"b" | b"c", b'"') => {
                    self.skip_text()?;
                    self.literal(start, LiteralKind::Bytes);
                    return Ok(());
                }
                (b"b", b'\'') => return self.tick(start, self.at),
                (b"r", b'"' | b'#') if self.skip_raw_text()? => {
                    self.literal(start, LiteralKind::Text);
                    return Ok(());
                }
                (b"br" | b"cr", b'"' | b'#') if self.skip_raw_text()? => {
                    self.literal(start, LiteralKind::Bytes);
                    return Ok(());
                }
                (b"r", b'#') if starts_word(self.peek(1)) => {
                    self.at += 1;
                    self.skip_word();
                    self.push(start, Kind::RawIdent);
                    return Ok(());
                }
                _ => {}
            }
        }
        self.push(start, Kind::Ident);
        if self.attribute.is_some() {
            self.word_in_attribute(start)?;
        }
        Ok(())
    }

    /// `fn`: a name behind it makes it the beginning of a signature.
    fn function(&mut self, start: usize) -> Result<(), Malformed> {
        self.push(start, Kind::Ident);
        if self.body.is_none() && starts_word(self.next_byte()?) {
            self.signature = Some(Signature {
                depth: self.open.len(),
                angles: 0,
            });
        }
        Ok(())
    }

    fn word_in_attribute(&mut self, start: usize) -> Result<(), Malformed> {
        let word = &self.text[start..self.at];
        let kind = if self.derive.is_some() {
            (word == MarkKind::Kind.word()).then_some(MarkKind::Kind)
        } else if word == "derive" {
            if self.next_byte()? == b'(' {
                self.derive = Some(self.open.len());
            }
            None
        } else {
            match MarkKind::of_attribute(word) {
                Some(kind) if self.next_byte()? == b'(' => Some(kind),
                _ => None,
            }
        };
        if let Some(kind) = kind {
            let at = self.span(start, start).start;
            let in_body = self.body.is_some();
            self.marks.push(Mark { kind, at, in_body });
        }
        Ok(())
    }

    /// Digits, a fraction and an exponent, letters of a suffix.
    fn number(&mut self, start: usize) {
        self.skip_word();
        let prefixed =
            self.bytes[start] == b'0' && matches!(self.bytes.get(start + 1), Some(b'x' | b'o' | b'b'));
        let mut float = false;
        if !prefixed {
            // `1.5` and `1.` are numbers; `1..2`, `1.max(2)` and `x.0.1` go on behind the number.
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

    fn ends_in_exponent(&self, start: usize) -> bool {
        let (last, digits) = match self.bytes[start..self.at].split_last() {
            Some((last, digits)) => (*last, digits),
            None => return false,
        };
        matches!(last, b'e' | b'E')
            && digits
                .iter()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b'_' | b'.'))
    }

    fn punct(&mut self, byte: u8) {
        let start = self.at;
        self.at += 1;
        self.push(start, Kind::Punct(byte));
        match byte {
            b'#' if self.attribute.is_none() => self.attribute(),
            b'<' | b'>' | b';' => self.punct_of_signature(byte, start),
            _ => {}
        }
    }

    /// `#` is the beginning of an attribute if `[` or `![` follows.
    fn attribute(&mut self) {
        let here = self.at;
        // An unended comment is complained about when it is met again.
        let mut found = self.skip_trivia().is_ok();
        if self.peek(0) == b'!' {
            self.at += 1;
            found &= self.skip_trivia().is_ok();
        }
        if found && self.peek(0) == b'[' {
            self.attribute = Some(self.open.len());
        }
        self.at = here;
    }

    fn punct_of_signature(&mut self, byte: u8, start: usize) {
        let depth = self.open.len();
        let Some(signature) = self
            .signature
            .as_mut()
            .filter(|signature| signature.depth == depth)
        else {
            return;
        };
        match byte {
            b'<' => signature.angles += 1,
            b'>' if start == 0 || !matches!(self.bytes[start - 1], b'-' | b'=') => {
                signature.angles = signature.angles.saturating_sub(1);
            }
            b';' => self.signature = None,
            _ => {}
        }
    }

    fn open(&mut self, delimiter: Delimiter) -> Result<(), Malformed> {
        let start = self.at;
        self.at += 1;
        let depth = self.open.len();
        let Span { start: from, end } = self.span(start, self.at);
        if self.body.is_none() && depth >= MAX_DEPTH {
            return Err(Malformed::too_deep(Span { start: from, end }));
        }
        let index = self.span(0, self.list.len()).end;
        self.push(start, Kind::Open(delimiter));
        self.open.push(Open {
            delimiter,
            start: from,
            index,
        });
        let is_body = |signature: &Signature| signature.depth == depth && signature.angles == 0;
        if delimiter == Delimiter::Brace && self.signature.as_ref().is_some_and(is_body) {
            self.signature = None;
            self.body = Some(depth);
        }
        Ok(())
    }

    fn close(&mut self, delimiter: Delimiter) -> Result<(), Malformed> {
        let start = self.at;
        self.at += 1;
        let Some(open) = self.open.pop() else {
            let message = format!("`{}` closes nothing", delimiter.closing());
            return Err(Malformed::new(self.span(start, self.at), message));
        };
        if open.delimiter != delimiter {
            let (left, right) = (open.delimiter.opening(), delimiter.closing());
            let message = format!("`{right}` cannot close `{left}`");
            return Err(Malformed::new(self.span(start, self.at), message));
        }
        let depth = self.open.len();
        if self.body == Some(depth) {
            self.body = None;
        }
        if self.body.is_none() {
            let index = self.span(0, self.list.len()).end;
            self.push(start, Kind::Close(delimiter));
            self.list[index as usize].partner = open.index;
            self.list[open.index as usize].partner = index;
        }
        if self.attribute.is_some_and(|around| depth <= around) {
            self.attribute = None;
        }
        if self.derive.is_some_and(|around| depth <= around) {
            self.derive = None;
        }
        if self
            .signature
            .as_ref()
            .is_some_and(|signature| depth < signature.depth)
        {
            self.signature = None;
        }
        Ok(())
    }

    /// What begins with a character beyond ASCII: a word or a space.
    fn foreign(&mut self, start: usize) -> Result<(), Malformed> {
        let letter = self.text[start..].chars().next().unwrap_or_default();
        if is_space(letter) {
            self.at += letter.len_utf8();
            Ok(())
        } else if letter.is_alphabetic() {
            self.word(start)
        } else {
            Err(self.stray(start))
        }
    }
}

/// Whether a byte can begin a name.
fn starts_word(byte: u8) -> bool {
    matches!(byte, b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..)
}

/// Unicode's `Pattern_White_Space` beyond ASCII, which is what Rust passes over.
fn is_space(letter: char) -> bool {
    matches!(
        letter,
        '\u{85}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
    )
}

/// Whether a decimal number has `e` and digits behind it; the `e` of a suffix like `usize` has a letter before.
fn has_exponent(number: &[u8]) -> bool {
    let digits = number
        .iter()
        .position(|byte| !(byte.is_ascii_digit() || matches!(byte, b'_' | b'.')));
    digits.is_some_and(|at| matches!(number[at], b'e' | b'E'))
}

impl Delimiter {
    fn opening(self) -> char {
        match self {
            Delimiter::Paren => '(',
            Delimiter::Bracket => '[',
            Delimiter::Brace => '{',
        }
    }

    fn closing(self) -> char {
        match self {
            Delimiter::Paren => ')',
            Delimiter::Bracket => ']',
            Delimiter::Brace => '}',
        }
    }
}
