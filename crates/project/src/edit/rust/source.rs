//! A Rust file as text and syntax tree, and the insertion of lines between its items.

use std::cell::OnceCell;
use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;

/// syn is recursive; brackets nested any deeper might overflow the stack.
const DEEPEST: usize = 200;

const BOM: &str = "\u{feff}";

pub(super) struct Source<'t> {
    pub(super) text: &'t str,
    pub(super) file: syn::File,
    head: usize,
    /// Ranges of the inner attributes and items, in order.
    parts: OnceCell<Vec<Range<usize>>>,
}

/// Text to insert at a byte offset. `\n` is converted to the file's line ending.
pub(super) struct Addition {
    at: usize,
    lines: String,
}

impl Addition {
    pub(super) fn new(at: usize, lines: impl Into<String>) -> Addition {
        Addition {
            at,
            lines: lines.into(),
        }
    }
}

impl<'t> Source<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Source<'t>, String> {
        let head = head_length(text);
        // syn and proc-macro2 strip a byte order mark and a `#!` line before they count bytes,
        // which would shift all spans. Replace both with spaces of the same length.
        let blank: String = text[..head]
            .bytes()
            .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
            .collect();
        let failed = |message: String, span: proc_macro2::Span| {
            format!("it does not parse: {message} at line {}", span.start().line)
        };
        let tokens: TokenStream = (blank + &text[head..])
            .parse()
            .map_err(|error: proc_macro2::LexError| failed(error.to_string(), error.span()))?;
        if is_too_deep(tokens.clone()) {
            return Err(format!("it is nested more than {DEEPEST} levels deep"));
        }
        let file =
            syn::parse2(tokens).map_err(|error: syn::Error| failed(error.to_string(), error.span()))?;
        Ok(Source {
            text,
            file,
            head,
            parts: OnceCell::new(),
        })
    }

    pub(super) fn with(&self, mut additions: Vec<Addition>) -> String {
        additions.sort_by_key(|addition| addition.at);
        let mut edited = String::with_capacity(self.text.len() + 256);
        let mut done = 0;
        for Addition { at, lines } in additions {
            edited.push_str(&self.text[done..at]);
            edited.push_str(&lines.replace('\n', self.line_end(at)));
            done = at;
        }
        edited.push_str(&self.text[done..]);
        edited
    }

    /// Line ending used near a position, since a file may mix them.
    fn line_end(&self, at: usize) -> &'static str {
        let before = self.text[..at].rfind('\n');
        let nearest = before.or_else(|| self.text[at..].find('\n').map(|end| at + end));
        match nearest {
            Some(end) if self.text[..end].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }

    pub(super) fn indent_at(&self, at: usize) -> &'t str {
        let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let rest = self.text[line..].trim_start_matches(BOM);
        &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
    }

    /// Adds lines after an item, at the start of the first line outside of items and comments.
    pub(super) fn lines_after(&self, item: usize, lines: &str) -> Addition {
        let parts = self.parts();
        let index = self.file.attrs.len() + item;
        for part in index..parts.len() {
            let end = parts.get(part + 1).map_or(self.text.len(), |next| next.start);
            if let Some(at) = line_starts(self.text, parts[part].end..end).first() {
                return Addition::new(*at, lines);
            }
        }
        self.lines_at_end(lines)
    }

    pub(super) fn lines_at_end(&self, lines: &str) -> Addition {
        let is_open = self.text.len() > self.head && !self.text.ends_with('\n');
        let gap = if is_open { "\n" } else { "" };
        Addition::new(self.text.len(), format!("{gap}{lines}"))
    }

    /// Adds lines above an item and its comments, or below the item if nothing can be inserted
    /// before its line.
    pub(super) fn lines_before(&self, item: usize, lines: &str) -> Addition {
        let parts = self.parts();
        let (attributes, index) = (self.file.attrs.len(), self.file.attrs.len() + item);
        for part in (attributes..=index).rev() {
            let start = match part.checked_sub(1) {
                Some(before) => parts[before].end,
                None => self.head,
            };
            if let Some(at) = self.above_comments(start..parts[part].start, part == 0) {
                return Addition::new(at, lines);
            }
        }
        self.lines_after(item, lines)
    }

    /// Finds where the comments of the next item start. Comments at the top of the file are its
    /// heading and stay there.
    fn above_comments(&self, gap: Range<usize>, is_first: bool) -> Option<usize> {
        let mut starts = line_starts(self.text, gap.clone());
        if is_first {
            starts.insert(0, gap.start);
        }
        let last = *starts.last()?;
        let mut at = last;
        for start in starts.iter().rev().skip(1) {
            if self.text[*start..at].trim().is_empty() {
                return Some(at);
            }
            at = *start;
        }
        Some(if is_first { last } else { at })
    }

    fn parts(&self) -> &[Range<usize>] {
        self.parts.get_or_init(|| {
            let attributes = self
                .file
                .attrs
                .iter()
                .map(|attribute| byte_range(attribute.span()));
            let items = self.file.items.iter().map(|item| byte_range(item.span()));
            attributes.chain(items).collect()
        })
    }
}

pub(super) fn byte_range(span: proc_macro2::Span) -> Range<usize> {
    span.byte_range()
}

/// Finds line starts in whitespace and comments, except within a comment, where nothing can be
/// inserted.
pub(super) fn line_starts(text: &str, gap: Range<usize>) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = gap.start;
    while at < gap.end {
        let rest = &text[at..gap.end];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += comment_length(rest);
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            if rest.starts_with('\n') {
                starts.push(at);
            }
        }
    }
    starts
}

/// Length of the block comment at the start of `text`. Block comments nest.
fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of a byte order mark and a `#!` line.
fn head_length(text: &str) -> usize {
    let mark = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let Some(mut rest) = text[mark..].strip_prefix("#!") else {
        return mark;
    };
    loop {
        rest = rest.trim_start();
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if rest.starts_with("/*") {
            rest = &rest[comment_length(rest)..];
        } else {
            break;
        }
    }
    // `#![…]` is an attribute, even with whitespace or comments after the `#!`.
    if rest.starts_with('[') {
        return mark;
    }
    text[mark..].find('\n').map_or(text.len(), |end| mark + end + 1)
}

/// Whether brackets or chained operators nest too deeply for the parser's stack.
fn is_too_deep(tokens: TokenStream) -> bool {
    let mut open = vec![tokens.into_iter()];
    let mut operators = 0;
    while let Some(level) = open.last_mut() {
        match level.next() {
            None => {
                open.pop();
            }
            Some(TokenTree::Group(group)) => {
                operators = 0;
                open.push(group.stream().into_iter());
            }
            Some(TokenTree::Punct(_)) => operators += 1,
            Some(_) => operators = 0,
        }
        if open.len() > DEEPEST || operators > DEEPEST {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_offsets_in_the_original_text() {
        for head in [
            "",
            "\u{feff}",
            "#!/usr/bin/env x\n",
            "\u{feff}#!/bin/x\r\n",
            "#! /* a */ [allow(x)]\n",
        ] {
            let text = format!("{head}// ä\nmod a;\n");
            let source = Source::parse(&text).expect(&text);
            assert_eq!(&text[byte_range(source.file.items[0].span())], "mod a;", "{text}");
        }
    }

    #[test]
    fn rejects_deep_nesting() {
        for text in ["(".repeat(5000) + &")".repeat(5000), "!".repeat(5000)] {
            let text = format!("const A: bool = {text};");
            assert!(Source::parse(&text).is_err());
        }
    }
}
