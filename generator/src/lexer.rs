//! A pass over source text before `syn` sees it.
//!
//! It blanks function bodies, which are most of a program and never hold an API type (line and column of
//! all else stay), notes where marker tokens stand, so that the reader can be held to having found each, and
//! measures nesting, so that no input can exhaust the parser's stack. It knows strings, characters, lifetimes
//! and comments, and nothing of Rust's grammar.

/// What the pass found.
pub(crate) struct Scan {
    /// The text with bodies, byte order mark and shebang as spaces; byte offsets are those of the input.
    pub(crate) text: String,
    /// Marker tokens in source order.
    pub(crate) marks: Vec<Mark>,
    /// Where nesting is deeper than the parser can take.
    pub(crate) too_deep: Option<usize>,
}

/// A token that a reader must not miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) kind: MarkKind,
    /// Byte offset of the token.
    pub(crate) at: usize,
    /// Whether it stands in the body of a function.
    pub(crate) in_body: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// `CustomResource` in a `derive(…)`.
    Kind,
    /// `rbac(…)` in an attribute.
    Rbac,
    /// `webhook(…)` in an attribute.
    Webhook,
}

impl MarkKind {
    /// How many bytes the token has.
    pub(crate) fn len(self) -> usize {
        match self {
            MarkKind::Kind => "CustomResource".len(),
            MarkKind::Rbac => "rbac".len(),
            MarkKind::Webhook => "webhook".len(),
        }
    }
}

/// Delimiters and `<` within each other; real code stays below 20 outside of functions. The parser takes some
/// 20 kB of stack for each `<` in a debug build, and a thread has 2 MB.
const MAX_DEPTH: usize = 50;
/// Tokens without a comma, a semicolon or a brace: operators and paths recurse in the parser too.
const MAX_STRETCH: usize = 1000;

/// Runs the pass.
pub(crate) fn scan(source: &str) -> Scan {
    let mut scanner = Scanner::new(source);
    scanner.skip_preamble();
    while let Some(token) = scanner.next_token() {
        scanner.note(&token);
    }
    Scan {
        // Only whole runs between ASCII braces are overwritten, with ASCII.
        text: String::from_utf8(scanner.out).unwrap_or_default(),
        marks: scanner.marks,
        too_deep: scanner.too_deep,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Ident(&'a str),
    Punct(u8),
    Literal,
}

struct Scanner<'a> {
    source: &'a str,
    bytes: &'a [u8],
    out: Vec<u8>,
    at: usize,
    start: usize,
    previous: [Token<'a>; 2],
    signature: Signature,
    body: Option<Body>,
    depth: usize,
    /// `<` that are open, or that were comparisons.
    angles: usize,
    /// How many there were outside of each delimiter that is open.
    outer_angles: Vec<usize>,
    stretch: usize,
    /// Depth of the bracket of the attribute we are in.
    attribute: Option<usize>,
    /// Depth of the parenthesis of the `derive` we are in.
    derive: Option<usize>,
    marks: Vec<Mark>,
    too_deep: Option<usize>,
}

/// Whether we are between `fn name` and its body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signature {
    Outside,
    /// The depth at which `fn` stood.
    Inside(usize),
}

struct Body {
    /// Just behind the opening brace.
    start: usize,
    /// The depth outside of it.
    depth: usize,
}

impl<'a> Scanner<'a> {
    fn new(source: &'a str) -> Self {
        Scanner {
            source,
            bytes: source.as_bytes(),
            out: source.as_bytes().to_vec(),
            at: 0,
            start: 0,
            previous: [Token::Literal; 2],
            signature: Signature::Outside,
            body: None,
            depth: 0,
            angles: 0,
            outer_angles: Vec::new(),
            stretch: 0,
            attribute: None,
            derive: None,
            marks: Vec::new(),
            too_deep: None,
        }
    }

    /// A byte order mark, and a first line that begins with `#!` and is no attribute.
    fn skip_preamble(&mut self) {
        if self.source.starts_with('\u{feff}') {
            self.at = 3;
        }
        let rest = &self.source[self.at..];
        if rest.starts_with("#!") && !rest[2..].trim_start().starts_with('[') {
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
        self.blank(0, self.at);
    }

    fn blank(&mut self, start: usize, end: usize) {
        for byte in &mut self.out[start..end] {
            if !matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn next_token(&mut self) -> Option<Token<'a>> {
        loop {
            self.start = self.at;
            let byte = *self.bytes.get(self.at)?;
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'/' if self.peek(1) == b'*' => self.skip_block_comment(),
                b'"' => {
                    self.skip_string();
                    return Some(Token::Literal);
                }
                b'\'' => return Some(self.character_or_lifetime()),
                b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => return Some(self.word()),
                b'0'..=b'9' => {
                    self.skip_word();
                    return Some(Token::Literal);
                }
                _ => {
                    self.at += 1;
                    return Some(Token::Punct(byte));
                }
            }
        }
    }

    fn skip_line(&mut self) {
        self.at += self.bytes[self.at..]
            .iter()
            .position(|&b| b == b'\n')
            .unwrap_or(self.bytes.len() - self.at);
    }

    fn skip_block_comment(&mut self) {
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
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
        self.at = self.bytes.len();
    }

    /// From the opening quote to behind the closing one.
    fn skip_string(&mut self) {
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.bytes.len();
    }

    /// `'a'`, `'\n'`, or the lifetime `'a`.
    fn character_or_lifetime(&mut self) -> Token<'a> {
        let rest = &self.source[self.at + 1..];
        let mut chars = rest.chars();
        match chars.next() {
            Some('\\') => {
                self.at += 2;
                while self.at < self.bytes.len() && !matches!(self.bytes[self.at], b'\'' | b'\n') {
                    // `'\''`: the escaped quote does not end it.
                    self.at += if self.at == self.start + 2 {
                        self.width()
                    } else {
                        1
                    };
                }
                self.at = (self.at + 1).min(self.bytes.len());
            }
            Some(c) if chars.next() == Some('\'') => self.at += 2 + c.len_utf8(),
            _ => {
                self.at += 1;
                self.skip_word();
            }
        }
        Token::Literal
    }

    fn width(&self) -> usize {
        self.source[self.at..].chars().next().map_or(1, char::len_utf8)
    }

    fn skip_word(&mut self) {
        while matches!(self.peek(0), b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | 0x80..) {
            self.at += 1;
        }
    }

    /// An identifier, or a string with a prefix: `r#"…"#`, `b"…"`, `c"…"`, `br"…"`, `b'…'`.
    fn word(&mut self) -> Token<'a> {
        self.skip_word();
        let word = &self.source[self.start..self.at];
        match (word, self.peek(0)) {
            ("b" | "c", b'"') => self.skip_string(),
            ("b", b'\'') => return self.character_or_lifetime_after_prefix(),
            ("r" | "br" | "cr", b'"' | b'#') if self.skip_raw_string() => {}
            ("r", b'#') => {
                self.at += 1;
                self.skip_word();
                return Token::Ident(&self.source[self.start + 2..self.at]);
            }
            _ => return Token::Ident(word),
        }
        Token::Literal
    }

    fn character_or_lifetime_after_prefix(&mut self) -> Token<'a> {
        self.start = self.at;
        self.character_or_lifetime()
    }

    /// From the first `#` or `"`; leaves the position alone when no raw string begins here.
    fn skip_raw_string(&mut self) -> bool {
        let hashes = self.bytes[self.at..].iter().take_while(|&&b| b == b'#').count();
        if self.peek(hashes) != b'"' {
            return false;
        }
        let mut close = String::from("\"");
        close.extend(std::iter::repeat_n('#', hashes));
        let body = self.at + hashes + 1;
        self.at = self.source[body..]
            .find(&close)
            .map_or(self.bytes.len(), |end| body + end + close.len());
        true
    }

    fn note(&mut self, token: &Token<'a>) {
        match *token {
            Token::Ident(word) => self.note_word(word),
            Token::Punct(open @ (b'{' | b'(' | b'[')) => self.open(open),
            Token::Punct(b'}' | b')' | b']') => self.close(),
            Token::Punct(b';') => self.end_statement(),
            Token::Punct(b',') => self.stretch = 0,
            Token::Punct(b'<') => self.angles += 1,
            Token::Punct(b'>') if !matches!(self.previous[1], Token::Punct(b'-' | b'=')) => {
                self.angles = self.angles.saturating_sub(1);
            }
            _ => {}
        }
        self.stretch += 1;
        let outside = self.body.is_none();
        if outside && (self.depth + self.angles > MAX_DEPTH || self.stretch > MAX_STRETCH) {
            self.too_deep.get_or_insert(self.start);
        }
        self.previous = [self.previous[1], *token];
    }

    fn note_word(&mut self, word: &str) {
        if self.body.is_none() && self.previous[1] == Token::Ident("fn") {
            self.signature = Signature::Inside(self.depth);
        }
        let kind = match word {
            "CustomResource" if self.derive.is_some() => MarkKind::Kind,
            "rbac" if self.opens_in_attribute() => MarkKind::Rbac,
            "webhook" if self.opens_in_attribute() => MarkKind::Webhook,
            _ => return,
        };
        self.marks.push(Mark {
            kind,
            at: self.start,
            in_body: self.body.is_some(),
        });
    }

    /// Whether the word just read is in an attribute and has arguments.
    fn opens_in_attribute(&self) -> bool {
        self.attribute.is_some() && self.bytes[self.at..].trim_ascii_start().starts_with(b"(")
    }

    fn open(&mut self, delimiter: u8) {
        match (delimiter, self.previous) {
            (b'[', [_, Token::Punct(b'#')]) | (b'[', [Token::Punct(b'#'), Token::Punct(b'!')]) => {
                self.attribute.get_or_insert(self.depth);
            }
            (b'(', [_, Token::Ident("derive")]) if self.attribute.is_some() => {
                self.derive.get_or_insert(self.depth);
            }
            (b'{', _) if self.signature == Signature::Inside(self.depth) => {
                self.signature = Signature::Outside;
                self.body = Some(Body {
                    start: self.at,
                    depth: self.depth,
                });
            }
            _ => {}
        }
        self.depth += 1;
        self.outer_angles.push(self.angles);
        self.stretch = 0;
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.attribute.is_some_and(|depth| self.depth <= depth) {
            self.attribute = None;
        }
        if self.derive.is_some_and(|depth| self.depth <= depth) {
            self.derive = None;
        }
        if let Some(body) = self.body.take_if(|body| self.depth <= body.depth) {
            self.blank(body.start, self.start);
        }
        self.angles = self.outer_angles.pop().unwrap_or(0);
        self.stretch = 0;
    }

    fn end_statement(&mut self) {
        if self.signature == Signature::Inside(self.depth) {
            self.signature = Signature::Outside;
        }
        self.angles = self.outer_angles.last().copied().unwrap_or(0);
        self.stretch = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_become_blank() {
        let cases = [
            ("fn f() { a }", "fn f() {   }"),
            (
                "fn f() -> [u8; 2] where T: Fn() { { } }",
                "fn f() -> [u8; 2] where T: Fn() {     }",
            ),
            (
                "fn f() { \"}\" } struct S { a: u8 }",
                "fn f() {     } struct S { a: u8 }",
            ),
            ("fn f() { '}' }", "fn f() {     }"),
            ("fn f() { '\\'' } s", "fn f() {      } s"),
            ("fn f<'a>() { x } y", "fn f<'a>() {   } y"),
            ("fn f() { r#\"}\"# } s", "fn f() {        } s"),
            ("fn f() { b'}' } s", "fn f() {      } s"),
            ("fn f() { /* } /* } */ } */ } s", "fn f() {                   } s"),
            ("fn f() { // }\n } s", "fn f() {     \n } s"),
            ("fn f() { é } s", "fn f() {    } s"),
            (
                "trait T { fn f(); fn g() { x } }",
                "trait T { fn f(); fn g() {   } }",
            ),
            ("struct S { f: fn(i32) -> i32 }", "struct S { f: fn(i32) -> i32 }"),
            ("const X: S = S { a: 1 };", "const X: S = S { a: 1 };"),
            (
                "\u{feff}#!/usr/bin/env x\nfn f() {}",
                "                   \nfn f() {}",
            ),
            ("#![allow(x)]\nfn r#fn() { a }", "#![allow(x)]\nfn r#fn() {   }"),
            ("fn f() {", "fn f() {"),
        ];
        for (input, expected) in cases {
            let scan = scan(input);
            assert_eq!(scan.text, expected);
            assert_eq!(scan.text.len(), input.len(), "offsets move in {input}");
        }
    }

    #[test]
    fn marks_are_found_in_code_only() {
        let cases = [
            (
                "#[derive(Clone, CustomResource)] struct S;",
                vec![(MarkKind::Kind, false)],
            ),
            (
                "#[derive(kube::CustomResource)] struct S;",
                vec![(MarkKind::Kind, false)],
            ),
            ("use kube::CustomResource;", vec![]),
            ("#[rbac(groups = \"a\")] fn f() {}", vec![(MarkKind::Rbac, false)]),
            (
                "#[rbuilder::rbac (x)] #[cfg_attr(x, rbac(y))] fn f() {}",
                vec![(MarkKind::Rbac, false); 2],
            ),
            ("mod rbac; use rbuilder::rbac; fn rbac() {}", vec![]),
            (
                "#[webhook(mutating)] fn f() {} #[rbuilder::webhook(validating)] fn webhook() {}",
                vec![(MarkKind::Webhook, false); 2],
            ),
            (
                "// #[rbac(x)]\n/* #[rbac(x)] */ const S: &str = \"#[rbac(x)]\";",
                vec![],
            ),
            (
                "fn f() { #[derive(CustomResource)] struct S; }",
                vec![(MarkKind::Kind, true)],
            ),
            (
                "m! { #[derive(CustomResource)] struct S; }",
                vec![(MarkKind::Kind, false)],
            ),
        ];
        for (input, expected) in cases {
            let marks: Vec<_> = scan(input)
                .marks
                .iter()
                .map(|mark| (mark.kind, mark.in_body))
                .collect();
            assert_eq!(marks, expected, "{input}");
        }
    }

    #[test]
    fn deep_nesting_is_noticed() {
        let nest =
            |open: &str, close: &str, times: usize| format!("{}{}", open.repeat(times), close.repeat(times));
        let cases = [
            (nest("(", ")", 35), false),
            (nest("(", ")", 200), true),
            (format!("type T = {};", nest("Box<", ">", 200)), true),
            (format!("type T = {};", "Box<(".repeat(30)), true),
            (format!("const X: bool = {}true;", "!".repeat(5000)), true),
            (format!("use {}a;", "a::".repeat(5000)), true),
            (format!("fn f() {{ {} }}", nest("(", ")", 200)), false),
            (format!("enum E {{ {} }}", "A, ".repeat(5000)), false),
        ];
        for (input, expected) in cases {
            assert_eq!(scan(&input).too_deep.is_some(), expected, "{}", &input[..40]);
        }
    }
}
