//! Writes text as a YAML scalar: plain, single-quoted, double-quoted or as a block.

mod resolve;

#[derive(Clone, Copy)]
pub(super) enum Place {
    Key,
    Value {
        /// How far continuation lines are indented.
        indent: usize,
    },
}

/// Text beyond this column is folded at the next space.
const WIDTH: usize = 80;

/// Returns true if the key fits on one line with its value. Any other key needs `? key`.
pub(super) fn is_simple_key(key: &str) -> bool {
    key.len() <= 128 && !key.contains(['\n', '\r'])
}

/// Returns true if a string can certainly be plain and on a single line, as a key or as a value.
/// This fast path covers most keys and many values. Booleans, nulls and other special words have at
/// most five letters, so they never take it.
pub(super) fn is_plain_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    (6..=128).contains(&bytes.len())
        && bytes[0].is_ascii_alphabetic()
        && bytes.iter().all(|&byte| IS_OF_WORD[usize::from(byte)])
}

pub(super) fn is_plain(text: &str) -> bool {
    !resolve::is_not_a_string(text) && Traits::of(text).plain_allowed()
}

/// Chooses the same style as go-yaml.
pub(super) fn write_scalar(out: &mut String, text: &str, place: Place) {
    if is_plain_word(text) {
        return out.push_str(text);
    }
    let traits = Traits::of(text);
    match place {
        Place::Value { indent } if traits.has_break => {
            if traits.block_allowed() {
                write_block(out, text, indent)
            } else {
                write_double(out, text, place)
            }
        }
        _ if traits.has_break || resolve::is_not_a_string(text) => write_double(out, text, place),
        _ if traits.plain_allowed() => write_folded(out, text, place, ""),
        _ if traits.single_allowed() => write_folded(out, text, place, "'"),
        _ => write_double(out, text, place),
    }
}

#[derive(Default)]
struct Traits {
    outer_space: bool,
    trailing_space: bool,
    break_then_space: bool,
    space_then_break: bool,
    has_break: bool,
    special: bool,
    indicator: bool,
}

impl Traits {
    fn of(text: &str) -> Traits {
        let bytes = text.as_bytes();
        let (first, last) = (bytes.first().copied(), bytes.last().copied());
        let is_outer = |byte: Option<u8>| matches!(byte, Some(b' ' | b'\n'));
        let mut traits = Traits {
            outer_space: is_outer(first) || is_outer(last),
            trailing_space: last == Some(b' '),
            indicator: starts_as_syntax(text),
            ..Traits::default()
        };
        // Few strings have a special byte. Without an early exit, the compiler can vectorize the
        // loop.
        if !bytes.iter().fold(false, |found, &byte| found | is_telling(byte)) {
            return traits;
        }
        // Whether a special byte matters depends on its neighbors.
        for (at, &byte) in bytes.iter().enumerate().filter(|(_, byte)| is_telling(**byte)) {
            let previous = at.checked_sub(1).map(|before| bytes[before]);
            let next = bytes.get(at + 1);
            match byte {
                b'\n' => {
                    traits.has_break = true;
                    traits.space_then_break |= previous == Some(b' ');
                    traits.break_then_space |= next == Some(&b' ');
                }
                b':' => traits.indicator |= next.is_none_or(|next| matches!(next, b' ' | b'\t')),
                b'#' => traits.indicator |= matches!(previous, Some(b' ' | b'\t')),
                0x80.. => {
                    let c = text.get(at..).and_then(|rest| rest.chars().next());
                    traits.special |= c.is_some_and(|c| !is_printable(c));
                }
                _ => traits.special = true,
            }
        }
        traits
    }

    fn plain_allowed(&self) -> bool {
        !(self.outer_space || self.indicator || self.has_break) && self.single_allowed()
    }

    fn single_allowed(&self) -> bool {
        !(self.break_then_space || self.space_then_break || self.special)
    }

    fn block_allowed(&self) -> bool {
        !(self.trailing_space || self.space_then_break || self.special)
    }
}

fn is_telling(byte: u8) -> bool {
    !matches!(byte, b' '..=b'~') || byte == b':' || byte == b'#'
}

/// Bytes that never need quotes in a word that starts with a letter.
const IS_OF_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'_' | b'.' | b'/');
        byte += 1;
    }
    table
};

fn starts_as_syntax(text: &str) -> bool {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return false };
    let blank_follows = chars.next().is_none_or(|next| matches!(next, ' ' | '\t'));
    text.starts_with("---")
        || text.starts_with("...")
        || "#,[]{}&*!|>'\"%@`".contains(first)
        || "?:-".contains(first) && blank_follows
}

/// go-yaml escapes everything beyond the Basic Multilingual Plane.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}')
        && !matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

/// Breaks long lines at single spaces. For plain text, `quote` is empty.
fn write_folded(out: &mut String, text: &str, place: Place, quote: &str) {
    out.push_str(quote);
    // The start of the text yet to be written. Runs are copied as a whole.
    let mut start = 0;
    let is_quoted = !quote.is_empty();
    if let Some((mut column, indent)) = start_of_folding(out, text, place, is_quoted) {
        while let Some(space) = next_fold(text, start, column, is_quoted) {
            write_run(out, &text[start..space], is_quoted);
            start = space + 1;
            break_line(out, indent);
            column = indent;
        }
    }
    write_run(out, &text[start..], is_quoted);
    out.push_str(quote);
}

/// Returns the space at which to break the line that starts with `text[start..]` at `column`.
fn next_fold(text: &str, start: usize, column: usize, is_quoted: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let behind = start + bytes_in_columns(&text[start..], (WIDTH + 1).saturating_sub(column), is_quoted);
    let mut spaces = (behind..bytes.len()).filter(|at| bytes[*at] == b' ');
    spaces.find(|at| folds(bytes, *at, is_quoted))
}

/// Returns how many bytes fill `columns` columns, or the length of a shorter text.
fn bytes_in_columns(text: &str, columns: usize, is_quoted: bool) -> usize {
    match text.as_bytes().get(..columns) {
        // Most text is ASCII, with a column for each byte.
        Some(line) if line.is_ascii() && !(is_quoted && line.contains(&b'\'')) => return columns,
        _ => {}
    }
    let mut column = 0;
    for (at, c) in text.char_indices() {
        if column >= columns {
            return at;
        }
        // Single quotes are doubled.
        column += if is_quoted && c == '\'' { 2 } else { 1 };
    }
    text.len()
}

/// Returns the column at which a value starts and the indentation of continuation lines, or `None`
/// if it fits on one line.
fn start_of_folding(out: &str, text: &str, place: Place, is_quoted: bool) -> Option<(usize, usize)> {
    let Place::Value { indent } = place else {
        return None;
    };
    // Most values are a single word; don't compute a column for them.
    if !text.contains(' ') {
        return None;
    }
    let column = column(out);
    // Single quotes are doubled.
    let longest = text.len() * if is_quoted { 2 } else { 1 };
    (column + longest > WIDTH).then_some((column, indent))
}

/// Returns true if the line can be broken at this space, i.e. it isn't next to another space or at
/// either end of quoted text.
fn folds(bytes: &[u8], at: usize, is_quoted: bool) -> bool {
    let (previous, next) = (at.checked_sub(1).map(|before| bytes[before]), bytes.get(at + 1));
    previous != Some(b' ') && next.is_some_and(|next| *next != b' ') && !(is_quoted && previous.is_none())
}

/// Writes a run, doubling single quotes within single-quoted text.
fn write_run(out: &mut String, run: &str, is_quoted: bool) {
    let mut rest = run;
    while is_quoted && let Some(at) = rest.find('\'') {
        out.push_str(&rest[..=at]);
        out.push('\'');
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

fn write_double(out: &mut String, text: &str, place: Place) {
    out.push('"');
    let mut column = column(out);
    let mut after_space = false;
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let next = rest.peek().map(|(_, next)| *next);
        match place {
            Place::Value { indent }
                if c == ' ' && at > 0 && next.is_some() && !after_space && column > WIDTH =>
            {
                break_line(out, indent);
                column = indent;
                // Escape a second space, which a parser would otherwise take for indentation.
                if next == Some(' ') {
                    out.push('\\');
                    column += 1;
                }
            }
            _ => {
                let start = out.len();
                write_escaped(out, c);
                column += out[start..].chars().count();
            }
        }
        after_space = c == ' ';
    }
    out.push('"');
}

fn write_escaped(out: &mut String, c: char) {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' | '\\' => c,
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ if is_printable(c) => return out.push(c),
        _ => {
            let code = u32::from(c);
            let escape = match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
            return out.push_str(&escape);
        }
    };
    out.push('\\');
    out.push(short);
}

/// Writes a literal block. The chomping indicator determines how trailing line breaks are treated.
fn write_block(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    // Without an indentation indicator, parsers would treat leading spaces as indentation.
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    match text.strip_suffix('\n') {
        None => out.push('-'),
        Some(body) if body.is_empty() || body.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    // The caller ends the last line.
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            push_spaces(out, indent);
            out.push_str(line);
        }
    }
}

fn break_line(out: &mut String, indent: usize) {
    out.push('\n');
    push_spaces(out, indent);
}

pub(super) fn push_spaces(out: &mut String, mut count: usize) {
    const SPACES: &str = "                                                                ";
    while count > SPACES.len() {
        out.push_str(SPACES);
        count -= SPACES.len();
    }
    out.push_str(&SPACES[..count]);
}

fn column(out: &str) -> usize {
    let line = out.bytes().rev().take_while(|byte| *byte != b'\n');
    line.filter(|byte| !is_continuation(*byte)).count()
}

fn is_continuation(byte: u8) -> bool {
    matches!(byte, 0x80..0xc0)
}
