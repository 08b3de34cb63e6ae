//! A fast reader for machine-written YAML: block mappings and sequences of scalars.
//!
//! Nearly all long inputs are CRDs printed by controller-gen, kubectl, Helm or `rbuilder`. The
//! general parser takes some 600 instructions per byte, because it has to be prepared for all of
//! YAML at each byte; this reader takes some 40. It only supports what such printers write and
//! returns `None` on anything else: anchors and tags, non-empty flow collections, repeated keys,
//! tabs between values, wrong indentation. The caller then parses the entire text with the general
//! parser, which therefore also produces all error messages.
//!
//! A wrong result would be worse than none. Any construct whose meaning isn't obvious is left to
//! the general parser, and tests compare the two on real and random texts.

mod scalar;
mod tree;

use std::ops::Range;

use serde_json::Value;

pub(crate) use tree::{Field, Tree};

/// Maximum depth: each level is a recursive call. Deeper texts are left to the general parser,
/// which has a separate limit.
const DEEPEST: usize = 64;

/// YAML limits keys without `?` to 1024 characters.
const LONGEST_KEY: usize = 1000;

pub(crate) fn read<T: Tree>(text: &str) -> Option<Vec<T>> {
    if has_control_characters(text) || has_special_characters(text) {
        return None;
    }
    if text.ends_with('\n') {
        return read_lines(text, text.len());
    }
    // An appended line feed would become part of a trailing block scalar.
    let is_blank = text.lines().next_back().is_none_or(|line| line.trim().is_empty());
    match crate::strip_last_block(text) {
        _ if is_blank => None,
        Some(_) => None,
        None => read_lines(&format!("{text}\n"), text.len()),
    }
}

/// Reads a stream whose last line ends with a line feed, so that every line has at least one
/// character. `length` excludes a line feed added for this purpose.
fn read_lines<T: Tree>(text: &str, length: usize) -> Option<Vec<T>> {
    let mut reader = Reader {
        text,
        length,
        next_line: 0,
    };
    let mut documents = Vec::new();
    loop {
        let line = match reader.peek()? {
            // Leave an empty stream to the general parser.
            Peeked::End if documents.is_empty() => return None,
            Peeked::End => return Some(documents),
            Peeked::Marker if !documents.is_empty() => return None,
            Peeked::Marker => {
                reader.skip_marker()?;
                continue;
            }
            Peeked::Line(line) => line,
        };
        documents.push(reader.collection(line.start, line.indent, 0)??);
        match reader.peek()? {
            Peeked::Line(_) => return None,
            Peeked::End => {}
            Peeked::Marker => {
                reader.skip_marker()?;
                // An empty document is null. Rare, so leave it to the general parser.
                if !matches!(reader.peek()?, Peeked::Line(_)) {
                    return None;
                }
            }
        }
    }
}

/// Returns whether a text has control characters, most of which are errors in the general parser.
fn has_control_characters(text: &str) -> bool {
    let is_control = |byte: u8| (byte < b' ' && byte != b'\n' && byte != b'\t') || byte == 0x7f;
    // Without an early exit, the compiler can check many bytes at once.
    text.bytes().fold(false, |found, byte| found | is_control(byte))
}

/// Returns whether a text has other characters that YAML escapes when printing, or that some
/// parsers treat as line breaks.
fn has_special_characters(text: &str) -> bool {
    let is_special = |letter: char| {
        matches!(
            letter,
            '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
    };
    // The first bytes of these characters in UTF-8.
    memchr::memchr3_iter(0xc2, 0xe2, 0xef, text.as_bytes())
        .any(|at| text[at..].chars().next().is_some_and(is_special))
}

/// A line that is neither blank nor a comment.
#[derive(Clone, Copy)]
struct Line {
    /// Offset of the first character that is not a space.
    start: usize,
    indent: usize,
}

enum Peeked {
    Line(Line),
    /// `---`
    Marker,
    End,
}

struct Reader<'a> {
    text: &'a str,
    /// Upper bound of all places.
    length: usize,
    /// Offset of the first line that hasn't been consumed by a value.
    next_line: usize,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<Peeked> {
        loop {
            let line = &self.text[self.next_line..];
            if line.is_empty() {
                return Some(Peeked::End);
            }
            let indent = count_spaces(line);
            // In bounds, because the text ends with a line feed.
            match line.as_bytes()[indent] {
                b'\n' => self.next_line += indent + 1,
                b'#' => self.next_line = self.end_of_line(self.next_line) + 1,
                // `...` ends a document, and `%` starts a directive.
                b'\t' | b'%' => return None,
                b'.' if line.starts_with("...") => return None,
                b'-' if line.starts_with("---") => return Some(Peeked::Marker),
                _ => {
                    let start = self.next_line + indent;
                    return Some(Peeked::Line(Line { start, indent }));
                }
            }
        }
    }

    /// Skips the line with a marker. Returns `None` if the line contains anything else.
    fn skip_marker(&mut self) -> Option<()> {
        self.next_line += "---".len();
        self.end_value(self.next_line)
    }

    fn end_of_line(&self, at: usize) -> usize {
        memchr::memchr(b'\n', &self.text.as_bytes()[at..]).map_or(self.text.len(), |length| at + length)
    }

    /// Skips the rest of the line from `at`, which may only contain spaces and a comment.
    fn end_value(&mut self, at: usize) -> Option<()> {
        let end = self.end_of_line(at);
        let rest = &self.text[at..end];
        let spaces = count_spaces(rest);
        if spaces < rest.len() && (spaces == 0 || !rest[spaces..].starts_with('#')) {
            return None;
        }
        self.next_line = end + 1;
        Some(())
    }

    /// Reads the mapping or sequence whose first entry is at `start`, in the given column. Returns
    /// `Some(None)` if a scalar is there instead.
    fn collection<T: Tree>(&mut self, start: usize, column: usize, depth: usize) -> Option<Option<T>> {
        let key = match self.is_item(start) {
            true => None,
            false => match self.key(start)? {
                Some(key) => Some(key),
                None => return Some(None),
            },
        };
        if depth > DEEPEST {
            return None;
        }
        match key {
            Some(key) => self.mapping(start, key, column, depth).map(Some),
            None => self.sequence(start, column, depth).map(Some),
        }
    }

    /// Reads a mapping whose first key has already been read.
    fn mapping<T: Tree>(&mut self, start: usize, first: Key, column: usize, depth: usize) -> Option<T> {
        let mut fields = Vec::new();
        let mut key = first;
        loop {
            let value = self.value(key.end, column, true, depth)?;
            fields.push(Field {
                name: key.name,
                place: key.place,
                value,
            });
            match self.peek()? {
                Peeked::Line(line) if line.indent > column => return None,
                // An item at this position belongs to no list.
                Peeked::Line(line) if line.indent == column && self.is_item(line.start) => return None,
                Peeked::Line(line) if line.indent == column => key = self.key(line.start)??,
                _ => return T::from_fields(fields, start..start),
            }
        }
    }

    /// Reads a sequence with its dashes in the given column.
    fn sequence<T: Tree>(&mut self, start: usize, column: usize, depth: usize) -> Option<T> {
        let mut items = Vec::new();
        let mut dash = start;
        loop {
            items.push(self.item(dash, column, depth)?);
            match self.peek()? {
                Peeked::Line(line) if line.indent > column => return None,
                Peeked::Line(line) if line.indent == column && self.is_item(line.start) => dash = line.start,
                _ => return Some(T::from_items(items, start..start)),
            }
        }
    }

    fn item<T: Tree>(&mut self, dash: usize, column: usize, depth: usize) -> Option<T> {
        let after = dash + 1;
        let start = after + count_spaces(&self.text[after..]);
        if !matches!(self.text.as_bytes()[start], b'\n' | b'#')
            // Further entries are aligned with the first one, which is on the line of the dash.
            && let Some(nested) = self.collection(start, column + (start - dash), depth + 1)?
        {
            return Some(nested);
        }
        self.value(after, column, false, depth)
    }

    fn is_item(&self, at: usize) -> bool {
        let rest = &self.text.as_bytes()[at..];
        rest[0] == b'-' && matches!(rest[1], b' ' | b'\n')
    }

    /// Reads the value after a colon or a dash, on the same line or the following ones. `column` is
    /// the column of the key or the dash.
    fn value<T: Tree>(&mut self, after: usize, column: usize, is_field: bool, depth: usize) -> Option<T> {
        let at = after + count_spaces(&self.text[after..]);
        if !matches!(self.text.as_bytes()[at], b'\n' | b'#') {
            return self.scalar(at, column);
        }
        self.end_value(after)?;
        let line_end = self.next_line - 1;
        match self.peek()? {
            Peeked::Line(line) if line.indent > column => {
                match self.collection(line.start, line.indent, depth + 1)? {
                    Some(nested) => Some(nested),
                    None => self.scalar(line.start, column),
                }
            }
            // The items of a field's list may be in the same column as the key.
            Peeked::Line(line) if is_field && line.indent == column && self.is_item(line.start) => {
                self.collection(line.start, line.indent, depth + 1)?
            }
            _ => {
                // The place at which the general parser detects a missing value.
                let place = if is_field { after - 1 } else { line_end };
                Some(T::from_scalar(Value::Null, place..place))
            }
        }
    }

    /// Reads the key at `at`. The inner value is `None` for a scalar instead of a key; the outer
    /// one if the decision is left to the general parser.
    fn key(&self, at: usize) -> Option<Option<Key>> {
        let line = &self.text[at..self.end_of_line(at)];
        let (length, name) = match line.as_bytes()[0] {
            quote @ (b'"' | b'\'') => {
                let inner = &line[1..];
                let Some(length) = inner.find(char::from(quote)) else {
                    return Some(None);
                };
                let is_key = inner[length + 1..].starts_with(':');
                let name = &inner[..length];
                if !is_key {
                    return Some(None);
                }
                // Escapes are rare in keys, so leave them to the general parser.
                if name.contains('\\') || name.contains('\t') {
                    return None;
                }
                (length + 2, name)
            }
            _ => {
                let Some(length) = find_colon(line) else {
                    return Some(None);
                };
                let name = &line[..length];
                // Keys that may be something other than a string are left to the general parser.
                if !scalar::is_string(name)
                    || name.ends_with(' ')
                    || name.contains(" #")
                    || name.contains('\t')
                {
                    return None;
                }
                (length, name)
            }
        };
        let end = length + 1;
        let is_ended = end == line.len() || line[end..].starts_with(' ');
        if !is_ended || length > LONGEST_KEY {
            return None;
        }
        Some(Some(Key {
            name: name.to_owned(),
            place: at..at + length,
            end: at + end,
        }))
    }
}

struct Key {
    name: String,
    place: Range<usize>,
    /// Offset after the colon.
    end: usize,
}

fn count_spaces(text: &str) -> usize {
    text.bytes().take_while(|byte| *byte == b' ').count()
}

/// Returns the position of the first colon followed by a space, a tab or the end of the line.
fn find_colon(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    memchr::memchr_iter(b':', bytes).find(|at| matches!(bytes.get(at + 1), None | Some(b' ' | b'\t')))
}

#[cfg(test)]
mod tests;
