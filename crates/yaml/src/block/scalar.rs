//! Scalars: plain, quoted, and block scalars.

use std::ops::Range;

use serde_json::Value;

use super::{Reader, Tree, count_spaces, find_colon};

/// Length of the longest word with a special meaning (`infinity`), apart from numbers.
const LONGEST_WORD: usize = 8;

/// Words that are, or used to be in older versions of YAML, a boolean, a number or null.
const WORDS: [&str; 12] = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity",
];

impl<'a> Reader<'a> {
    /// Reads the scalar at `at`, the value of a key or a dash in the given column.
    pub(super) fn scalar<T: Tree>(&mut self, at: usize, column: usize) -> Option<T> {
        let (value, place) = match self.text.as_bytes()[at] {
            b'|' => self.block_scalar(at, column, Style::Literal)?,
            b'>' => self.block_scalar(at, column, Style::Folded)?,
            b'"' | b'\'' => self.quoted(at)?,
            b'{' if self.text[at..].starts_with("{}") => {
                self.end_value(at + 2)?;
                return T::from_fields(Vec::new(), at..at + 1);
            }
            b'[' if self.text[at..].starts_with("[]") => {
                self.end_value(at + 2)?;
                return Some(T::from_items(Vec::new(), at..at + 1));
            }
            _ => self.plain(at, column)?,
        };
        Some(T::from_scalar(value, place))
    }

    fn plain(&mut self, at: usize, column: usize) -> Option<(Value, Range<usize>)> {
        let line = &self.text[at..self.end_of_line(at)];
        if !may_begin_plain(line) {
            return None;
        }
        let comment = line.find(" #");
        let first = line[..comment.unwrap_or(line.len())].trim_end_matches(' ');
        if find_colon(first).is_some() || first.contains('\t') {
            return None;
        }
        self.next_line = at + line.len() + 1;
        let Some(start) = self.continuation(column)?.filter(|_| comment.is_none()) else {
            return Some((resolve(first)?, at..at + first.len()));
        };
        let mut folded = first.to_owned();
        let (mut next, mut end) = (Some(start), 0);
        while let Some((start, blank)) = next {
            let line = &self.text[start..self.end_of_line(start)];
            let content = line.trim_end_matches(' ');
            if find_colon(content).is_some() || content.contains(" #") || content.contains('\t') {
                return None;
            }
            fold(&mut folded, blank);
            folded.push_str(content);
            end = start + content.len();
            self.next_line = start + line.len() + 1;
            next = self.continuation(column)?;
        }
        Some((Value::String(folded), at..end))
    }

    /// Returns the start of the line that continues a plain scalar, and the number of blank lines
    /// before it.
    fn continuation(&self, column: usize) -> Option<Option<(usize, usize)>> {
        let (mut at, mut blank) = (self.next_line, 0);
        loop {
            let rest = &self.text[at..];
            let spaces = count_spaces(rest);
            match rest.as_bytes().get(spaces) {
                None | Some(b'#') => return Some(None),
                Some(b'\n') => blank += 1,
                Some(b'\t') => return None,
                Some(_) => return Some((spaces > column).then_some((at + spaces, blank))),
            }
            at += spaces + 1;
        }
    }

    fn quoted(&mut self, at: usize) -> Option<(Value, Range<usize>)> {
        let quote = self.text.as_bytes()[at];
        let mut value = String::new();
        let mut start = at + 1;
        loop {
            let line = &self.text[start..self.end_of_line(start)];
            let closed = find_quote(line, quote);
            let content = match closed {
                Some(length) => &line[..length],
                None => line.trim_end_matches(' '),
            };
            // A backslash at the end of a line joins it with the next one, without a space.
            let is_joined = closed.is_none() && quote == b'"' && ends_in_escape(content);
            match quote {
                b'\'' => push_single(&mut value, content),
                _ => push_double(&mut value, &content[..content.len() - usize::from(is_joined)])?,
            }
            if let Some(length) = closed {
                let end = start + length + 1;
                self.end_value(end)?;
                return Some((Value::String(value), at..end));
            }
            // Unescaped whitespace before a line break is dropped.
            if content.ends_with('\t') || (is_joined && content.len() < line.len()) {
                return None;
            }
            let (next, blank) = self.next_quoted_line(start + line.len() + 1)?;
            match is_joined {
                true => value.extend(std::iter::repeat_n('\n', blank)),
                false => fold(&mut value, blank),
            }
            start = next;
        }
    }

    /// Returns the start of the next line of a quoted scalar, and the number of blank lines before it.
    fn next_quoted_line(&self, mut at: usize) -> Option<(usize, usize)> {
        let mut blank = 0;
        loop {
            let rest = &self.text[at..];
            let spaces = count_spaces(rest);
            match rest.as_bytes().get(spaces)? {
                b'\n' => blank += 1,
                b'\t' => return None,
                // Unlike YAML, Go's parser accepts lines indented less than the key.
                _ if spaces == 0 && rest.starts_with(['-', '.']) => return None,
                _ => return Some((at + spaces, blank)),
            }
            at += spaces + 1;
        }
    }

    fn block_scalar(&mut self, at: usize, column: usize, style: Style) -> Option<(Value, Range<usize>)> {
        let chomping = Some(self.text.as_bytes()[at + 1]).filter(|byte| matches!(byte, b'-' | b'+'));
        self.end_value(at + 1 + usize::from(chomping.is_some()))?;
        let first = self.first_line_of_block(column)?;
        let start = self.next_line + first.indent;
        let mut value = "\n".repeat(first.blank);
        let (mut blank, mut is_first, mut was_deep) = (0, true, false);
        while let Some(line) = self.take_block_line(first.indent) {
            let BlockLine::Text(line) = line else {
                blank += 1;
                continue;
            };
            let is_deep = line.starts_with([' ', '\t']);
            match style {
                _ if is_first => {}
                // Line breaks around more deeply indented lines are kept.
                Style::Folded if !is_deep && !was_deep => fold(&mut value, blank),
                _ => value.extend(std::iter::repeat_n('\n', blank + 1)),
            }
            value.push_str(line);
            (blank, is_first, was_deep) = (0, false, is_deep);
        }
        match chomping {
            Some(b'-') => {}
            Some(_) => value.extend(std::iter::repeat_n('\n', blank + 1)),
            None => value.push('\n'),
        }
        // When the general parser ends the scalar, it has already consumed the indentation of the
        // next line.
        let end = self.next_line + count_spaces(&self.text[self.next_line..]);
        Some((Value::String(value), start..end.min(self.length)))
    }

    /// Consumes the next line if it belongs to a block scalar with the given indentation.
    fn take_block_line(&mut self, indent: usize) -> Option<BlockLine<'a>> {
        let rest = &self.text[self.next_line..];
        let spaces = count_spaces(rest);
        let is_blank = *rest.as_bytes().get(spaces)? == b'\n';
        let end = self.end_of_line(self.next_line);
        let line = match (is_blank, spaces <= indent) {
            (true, true) => BlockLine::Blank,
            (false, true) if spaces < indent => return None,
            _ => BlockLine::Text(&self.text[self.next_line + indent..end]),
        };
        self.next_line = end + 1;
        Some(line)
    }

    /// Advances to the first line of a block scalar with content, which determines the indentation.
    fn first_line_of_block(&mut self, column: usize) -> Option<FirstLine> {
        let (mut blank, mut longest) = (0, 0);
        loop {
            let rest = &self.text[self.next_line..];
            let indent = count_spaces(rest);
            match rest.as_bytes().get(indent)? {
                b'\n' => longest = longest.max(indent),
                // A blank line with more spaces is an error, and empty scalars are rare.
                _ if indent <= column || longest > indent => return None,
                b'\t' => return None,
                _ => return Some(FirstLine { indent, blank }),
            }
            blank += 1;
            self.next_line += indent + 1;
        }
    }
}

#[derive(Clone, Copy)]
enum Style {
    Literal,
    Folded,
}

enum BlockLine<'a> {
    Blank,
    Text(&'a str),
}

struct FirstLine {
    indent: usize,
    blank: usize,
}

/// Adds the line break between two lines of a folded scalar.
fn fold(value: &mut String, blank: usize) {
    match blank {
        0 => value.push(' '),
        _ => value.extend(std::iter::repeat_n('\n', blank)),
    }
}

fn may_begin_plain(text: &str) -> bool {
    match text.as_bytes()[0] {
        b'-' | b'?' | b':' => text
            .as_bytes()
            .get(1)
            .is_some_and(|next| next.is_ascii_alphanumeric() || *next == b'-'),
        first => !b",[]{}#&*!|>'\"%@`\t".contains(&first),
    }
}

/// Returns whether a plain scalar is certainly a string. False for some strings, too.
pub(super) fn is_string(text: &str) -> bool {
    let Some(first) = text.bytes().next() else {
        return false;
    };
    match first {
        b'a'..=b'z' | b'A'..=b'Z' => {
            text.len() > LONGEST_WORD || !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
        }
        b'_' | b'/' | b'$' | b'(' | b'^' | b';' | b'\\' | 0x80.. => true,
        // `.spec.replicas` and `-v`, but not `.inf` and `-1`.
        b'.' | b'-' => {
            text.as_bytes()[1..].first().is_some_and(u8::is_ascii_alphabetic) && is_string(&text[1..])
        }
        _ => false,
    }
}

fn resolve(text: &str) -> Option<Value> {
    let is_number = text.len() < 19 && text.bytes().all(|byte| byte.is_ascii_digit());
    Some(match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        _ if is_string(text) => Value::String(text.to_owned()),
        _ if is_number && (text == "0" || !text.starts_with('0')) => text.parse::<u64>().ok()?.into(),
        // By themselves, these would be document markers.
        _ if text.starts_with("...") || text.starts_with("---") => return None,
        _ => crate::resolve::resolve(text)?,
    })
}

fn find_quote(line: &str, quote: u8) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut at = 0;
    loop {
        at += match quote {
            b'\'' => memchr::memchr(b'\'', &bytes[at..])?,
            _ => memchr::memchr2(b'"', b'\\', &bytes[at..])?,
        };
        match bytes[at] {
            b'\\' => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            _ => return Some(at),
        }
        if at > bytes.len() {
            return None;
        }
    }
}

/// Returns whether the last character is an unescaped backslash.
fn ends_in_escape(text: &str) -> bool {
    let slashes = text.len() - text.trim_end_matches('\\').len();
    slashes % 2 == 1
}

fn push_single(value: &mut String, content: &str) {
    for (index, part) in content.split("''").enumerate() {
        if index > 0 {
            value.push('\'');
        }
        value.push_str(part);
    }
}

/// Adds the content of a double-quoted scalar. Returns `None` for rare escapes.
fn push_double(value: &mut String, content: &str) -> Option<()> {
    let mut rest = content;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        value.push_str(&rest[..at]);
        let escape = *rest.as_bytes().get(at + 1)?;
        let digits = match escape {
            b'x' => 2,
            b'u' => 4,
            _ => 0,
        };
        let end = at + 2 + digits;
        value.push(match escape {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'"' | b'\\' | b'/' | b' ' => char::from(escape),
            b'x' | b'u' => {
                let code = rest.get(at + 2..end).filter(|code| !code.starts_with('+'))?;
                char::from_u32(u32::from_str_radix(code, 16).ok()?)?
            }
            _ => return None,
        });
        rest = &rest[end..];
    }
    value.push_str(rest);
    Some(())
}
