//! Finds the attribute arguments that enclose a place.

use std::ops::Range;

use rbuilder_reader::Span;
use rbuilder_reader::token::{Cursor, Delimiter, Kind, lex};

#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Without the delimiters.
    pub(super) inner: Range<usize>,
    pub(super) args: Vec<Argument>,
    /// The attribute that the group belongs to, or `None` for a nested group such as `(…)` in
    /// `#[kube(scale(…))]`.
    pub(super) attribute: Option<Range<usize>>,
}

/// Either `name`, `name = value` or `name(…)`.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) range: Range<usize>,
    /// The value after `=`.
    pub(super) value: Option<Range<usize>>,
}

impl Group {
    /// Returns `None` if several arguments have this name, as any of them could be meant.
    pub(super) fn find(&self, name: &str) -> Option<&Argument> {
        let mut found = self.args.iter().filter(|arg| arg.name == name);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    pub(super) fn position(&self, place: &Range<usize>) -> Option<usize> {
        self.args
            .iter()
            .position(|arg| arg.range.start <= place.start && place.end <= arg.range.end)
    }
}

/// Returns the groups that enclose a place, innermost last. Empty outside of attributes.
pub(super) fn groups_around(source: &str, place: &Range<usize>) -> Vec<Group> {
    let Ok(tokens) = lex(source) else {
        return Vec::new();
    };
    let mut groups = Vec::new();
    let mut cursor = tokens.cursor();
    // The attribute whose brackets enclose the place.
    let mut attribute = None;
    while let Some((inner, delimiter, outer)) = find_group(cursor, place) {
        if delimiter == Delimiter::Bracket && is_attribute(source, outer.start) {
            groups.clear();
            attribute = Some(attribute_start(source, outer.start)..outer.end);
        } else if attribute.is_some() {
            let own = attribute
                .clone()
                .filter(|whole| outer.end + 1 == whole.end && groups.is_empty());
            groups.push(Group {
                inner: outer.start + 1..outer.end - 1,
                args: read_arguments(inner),
                attribute: own,
            });
        }
        cursor = inner;
    }
    if attribute.is_none() {
        groups.clear();
    }
    groups
}

/// Finds the group at this level that encloses a place. Returns its content, its delimiter and its
/// range.
fn find_group<'a>(
    mut cursor: Cursor<'a>,
    place: &Range<usize>,
) -> Option<(Cursor<'a>, Delimiter, Range<usize>)> {
    while !cursor.is_end() {
        let start = cursor.span().range().start;
        let Kind::Open(delimiter) = cursor.kind() else {
            cursor.skip();
            continue;
        };
        let inner = cursor.group(delimiter)?;
        let end = cursor.previous_span().range().end;
        if start < place.start && place.end < end {
            return Some((inner, delimiter, start..end));
        }
    }
    None
}

fn is_attribute(source: &str, bracket: usize) -> bool {
    let before = source[..bracket].trim_end();
    before.ends_with('#')
        || before
            .strip_suffix('!')
            .is_some_and(|before| before.trim_end().ends_with('#'))
}

fn attribute_start(source: &str, bracket: usize) -> usize {
    source[..bracket].rfind('#').unwrap_or(bracket)
}

fn read_arguments(mut cursor: Cursor<'_>) -> Vec<Argument> {
    let mut args = Vec::new();
    while !cursor.is_end() {
        let start = cursor;
        let name = match cursor.kind() {
            Kind::Ident | Kind::RawIdent => cursor.text().to_owned(),
            _ => String::new(),
        };
        let mut value: Option<Cursor<'_>> = None;
        while !cursor.is_end() && !cursor.is_punct(b',') {
            let is_value = value.is_none() && cursor.is_punct(b'=') && !cursor.is_pair(b'=', b'=');
            cursor.skip();
            if is_value {
                value = Some(cursor);
            }
        }
        args.push(Argument {
            name,
            range: cursor.span_since(start).range(),
            value: value.map(|value| cursor.span_since(value).range()),
        });
        cursor.eat(b',');
    }
    args
}

/// Returns the start of the function that encloses a place: before `pub`, `async` and `fn`, but
/// after the attributes.
pub(super) fn function_start(source: &str, place: &Range<usize>) -> Option<usize> {
    const QUALIFIERS: [&str; 6] = ["pub", "default", "const", "async", "unsafe", "extern"];
    let tokens = lex(source).ok()?;
    let mut cursor = tokens.cursor();
    loop {
        // The start of the current item's qualifiers.
        let mut start: Option<Span> = None;
        let mut function = None;
        let (inner, delimiter) = loop {
            if cursor.is_end() {
                return None;
            }
            let here = cursor;
            match cursor.kind() {
                Kind::Ident if QUALIFIERS.contains(&cursor.text()) => {
                    start = start.or(Some(cursor.span()));
                    cursor.skip();
                    // E.g. the `(crate)` of `pub(crate)`.
                    cursor.group(Delimiter::Paren);
                }
                Kind::Ident if cursor.is_word("fn") => {
                    cursor.skip();
                    if cursor.is_ident() && function.is_none() {
                        function = Some(start.unwrap_or(here.span()));
                    }
                }
                Kind::Open(delimiter) => {
                    let inner = cursor.group(delimiter)?;
                    let range = here.span().range().start..cursor.previous_span().range().end;
                    if range.start < place.start && place.end < range.end {
                        break (inner, delimiter);
                    }
                    if delimiter == Delimiter::Brace {
                        (start, function) = (None, None);
                    }
                }
                Kind::Literal(_) => cursor.skip(),
                _ => {
                    let is_end = cursor.is_punct(b';');
                    cursor.skip();
                    if is_end {
                        (start, function) = (None, None);
                    } else if function.is_none() {
                        start = None;
                    }
                }
            }
        };
        match (delimiter, function) {
            (Delimiter::Brace, Some(function)) => return Some(function.range().start),
            (Delimiter::Brace, None) => cursor = inner,
            _ => return None,
        }
    }
}
