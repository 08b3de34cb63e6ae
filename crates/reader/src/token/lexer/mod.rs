//! Converts text to tokens.

mod literal;
mod trivia;

use crate::token::mark::{Mark, MarkWords};
use crate::token::{Delimiter, Kind, LiteralKind, Token, Tokens, warn_too_deep};
use crate::{Diagnostic, Span};

/// Maximum nesting of delimiters and angle brackets outside of function bodies. Real code stays
/// below 20.
pub const MAX_DEPTH: usize = 50;

/// Low estimate for typical code, so that the list never has to grow.
const BYTES_PER_TOKEN: usize = 6;

/// Tokenizes a text. Skips a byte order mark and a shebang.
///
/// # Errors
///
/// Returns an error if delimiters are unbalanced, a literal or comment is unterminated, or the
/// nesting exceeds [`MAX_DEPTH`].
pub fn lex(text: &str) -> Result<Tokens<'_>, Diagnostic> {
    lex_marked(text, &MarkWords::default())
}

/// Like [`lex`], but also records the requested marks and comments.
///
/// # Errors
///
/// Same as [`lex`].
pub fn lex_marked<'a>(text: &'a str, words: &MarkWords) -> Result<Tokens<'a>, Diagnostic> {
    if u32::try_from(text.len()).is_err() {
        let message = "the file is larger than 4 GiB";
        return Err(Diagnostic::error(Span::default(), message));
    }
    let mut lexer = Lexer::new(text, *words);
    lexer.skip_preamble();
    lexer.run()?;
    Ok(Tokens {
        text,
        list: lexer.list,
        marks: lexer.marks,
        comments: lexer.comments,
    })
}

struct Lexer<'a> {
    text: &'a str,
    words: MarkWords,
    bytes: &'a [u8],
    at: usize,
    list: Vec<Token>,
    marks: Vec<Mark>,
    comments: Vec<Span>,
    open: Vec<Open>,
    /// Set from the name of a function until its body.
    signature: Option<Signature>,
    /// Number of open delimiters around the current body.
    body: Option<usize>,
    /// Number of open delimiters around the current attribute.
    attribute: Option<usize>,
    /// Number of open delimiters around the arguments of the current `derive`.
    derive: Option<usize>,
}

struct Open {
    delimiter: Delimiter,
    start: u32,
    /// Index of its token. Meaningless within bodies, which have no tokens.
    index: u32,
}

struct Signature {
    /// Number of open delimiters at `fn`.
    depth: usize,
    /// Number of open `<`. Inside, braces are const arguments rather than a body.
    angles: usize,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str, words: MarkWords) -> Self {
        Lexer {
            text,
            words,
            bytes: text.as_bytes(),
            at: 0,
            list: Vec::with_capacity(text.len() / BYTES_PER_TOKEN + 1),
            marks: Vec::new(),
            comments: Vec::new(),
            open: Vec::new(),
            signature: None,
            body: None,
            attribute: None,
            derive: None,
        }
    }

    fn run(&mut self) -> Result<(), Diagnostic> {
        while let Some(&byte) = self.bytes.get(self.at) {
            let start = self.at;
            match byte {
                b' ' | b'\n' | b'\t' | b'\r' | 0x0b | 0x0c => self.skip_spaces(),
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
            let message = format!("unclosed delimiter `{}`", open.delimiter.opening());
            return Err(Diagnostic::error(span, message));
        }
        let end = self.bytes.len();
        self.body = None;
        self.push(end, Kind::End);
        Ok(())
    }

    fn skip_spaces(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0b | 0x0c));
        self.at += length.unwrap_or(rest.len());
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Never truncates, because texts of 4 GiB or more are rejected.
    #[allow(clippy::cast_possible_truncation)]
    fn span(&self, start: usize, end: usize) -> Span {
        Span {
            start: start as u32,
            end: end as u32,
        }
    }

    /// Adds a token up to the current position, unless inside a body.
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

    fn stray(&self, start: usize) -> Diagnostic {
        let letter = self.text[start..].chars().next().unwrap_or_default();
        let span = self.span(start, start + letter.len_utf8());
        Diagnostic::error(span, format!("unexpected character `{}`", letter.escape_debug()))
    }

    /// Skips letters, digits, `_`, and any other non-ASCII characters except white space.
    fn skip_word(&mut self) {
        loop {
            let rest = &self.bytes[self.at..];
            let length = rest.iter().position(|byte| !IN_WORD[usize::from(*byte)]);
            self.at += length.unwrap_or(rest.len());
            if self.peek(0) < 0x80 {
                return;
            }
            let letter = self.text[self.at..].chars().next().unwrap_or_default();
            if is_space(letter) {
                return;
            }
            self.at += letter.len_utf8();
        }
    }

    /// Reads an identifier or a prefixed literal, e.g. `r#"…"#` or `b'…'`.
    fn word(&mut self, start: usize) -> Result<(), Diagnostic> {
        self.skip_word();
        let word = &self.bytes[start..self.at];
        // `fn` and all literal prefixes have at most two letters.
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

    /// Starts a signature if a name follows `fn`. Otherwise, it's a type such as `fn()`.
    fn function(&mut self, start: usize) -> Result<(), Diagnostic> {
        self.push(start, Kind::Ident);
        if self.body.is_none() && starts_word(self.next_byte()?) {
            self.signature = Some(Signature {
                depth: self.open.len(),
                angles: 0,
            });
        }
        Ok(())
    }

    fn word_in_attribute(&mut self, start: usize) -> Result<(), Diagnostic> {
        let word = &self.text[start..self.at];
        let find = |words: &'static [&'static str]| words.iter().find(|known| **known == word);
        let found = if self.derive.is_some() {
            find(self.words.derives)
        } else if word == "derive" {
            if self.next_byte()? == b'(' {
                self.derive = Some(self.open.len());
            }
            None
        } else {
            match find(self.words.attributes) {
                Some(word) if self.next_byte()? == b'(' => Some(word),
                _ => None,
            }
        };
        if let Some(word) = found {
            let at = self.span(start, start).start;
            let in_body = self.body.is_some();
            self.marks.push(Mark { word, at, in_body });
        }
        Ok(())
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

    fn attribute(&mut self) {
        let here = self.at;
        // Ignore unterminated comments; the main loop reports them.
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
            // The `>` in `->` and `=>` isn't a closing bracket.
            b'>' if start == 0 || !matches!(self.bytes[start - 1], b'-' | b'=') => {
                signature.angles = signature.angles.saturating_sub(1);
            }
            b';' => self.signature = None,
            _ => {}
        }
    }

    fn open(&mut self, delimiter: Delimiter) -> Result<(), Diagnostic> {
        let start = self.at;
        self.at += 1;
        let depth = self.open.len();
        let Span { start: from, end } = self.span(start, self.at);
        // Function bodies have no tokens, so their depth is irrelevant.
        if self.body.is_none() && depth >= MAX_DEPTH {
            return Err(warn_too_deep(Span { start: from, end }));
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

    fn close(&mut self, delimiter: Delimiter) -> Result<(), Diagnostic> {
        let start = self.at;
        self.at += 1;
        let Some(open) = self.open.pop() else {
            let message = format!("unexpected closing delimiter `{}`", delimiter.closing());
            return Err(Diagnostic::error(self.span(start, self.at), message));
        };
        if open.delimiter != delimiter {
            let (left, right) = (open.delimiter.opening(), delimiter.closing());
            let message = format!("mismatched closing delimiter `{right}` for `{left}`");
            return Err(Diagnostic::error(self.span(start, self.at), message));
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
        // The group around the `fn` ends here, so there won't be a body.
        if self
            .signature
            .as_ref()
            .is_some_and(|signature| depth < signature.depth)
        {
            self.signature = None;
        }
        Ok(())
    }

    /// Reads a word or white space that starts with a non-ASCII character.
    fn foreign(&mut self, start: usize) -> Result<(), Diagnostic> {
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

/// ASCII only. Callers must check other characters themselves.
const IN_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8, b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9');
        byte += 1;
    }
    table
};

fn starts_word(byte: u8) -> bool {
    matches!(byte, b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..)
}

/// Non-ASCII `Pattern_White_Space`, which Rust skips.
fn is_space(letter: char) -> bool {
    matches!(
        letter,
        '\u{85}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
    )
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
