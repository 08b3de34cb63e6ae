//! Edits keys, scalars and items in YAML.

use std::ops::Range;

use rbuilder_diagnostic::suggest::is_misspelling;
use rbuilder_generator::replacement::{Found, Replacement};
use rbuilder_yaml::parse;
use serde_json::{Value, json};

/// A key or scalar on a single line without escapes.
struct Token<'s> {
    inner: &'s str,
    /// `"`, `'`, or nothing.
    quote: &'s str,
}

impl<'s> Token<'s> {
    /// Reads the token at the place. `None` for a token after a tag such as `!!str`, and in a text
    /// with anchors.
    fn read(found: &Found<'s>) -> Option<Token<'s>> {
        let text = found.placed();
        let line = &found.source[line_start(found.source, found.place.start)..found.place.start];
        let is_tagged = line
            .trim_end()
            .rsplit(' ')
            .next()
            .is_some_and(|word| word.starts_with('!'));
        if text.is_empty() || text.contains(['\\', '\n', '\r']) || is_tagged || has_anchor(found.source) {
            return None;
        }
        let quote = &text[..usize::from(text.starts_with(['"', '\'']))];
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(['"', '\''])).then_some(Token { inner, quote })
    }

    /// Replaces the text but keeps its quotes, or adds quotes if the new text needs them.
    fn replace(&self, found: &Found<'_>, new: &str) -> Option<Replacement> {
        if new.contains(['"', '\'', '\\', '\n', '`']) {
            return None;
        }
        let is_plain = || parse::<Value>(&format!("[{new}]")).is_ok_and(|list| list == json!([new]));
        let quote = match self.quote {
            "" if !is_plain() => "\"",
            quote => quote,
        };
        Some(found.at_place(&format!("{quote}{new}{quote}")))
    }
}

/// Whether the text may have an anchor, whose value is used in several places.
fn has_anchor(text: &str) -> bool {
    text.match_indices('&').any(|(at, _)| {
        let is_start = text[..at].ends_with([' ', '\t', '\n', '[', '{', ',']);
        let next = text[at + 1..].chars().next();
        is_start && next.is_some_and(|next| !next.is_whitespace() && next != '&')
    })
}

pub(super) fn replace_key(found: &Found<'_>) -> Option<Replacement> {
    let (path, new) = (found.get("path")?, found.get("new")?);
    let token = Token::read(found)?;
    (path.ends_with(token.inner) && is_misspelling(token.inner, new)).then(|| token.replace(found, new))?
}

pub(super) fn replace_scalar(found: &Found<'_>) -> Option<Replacement> {
    let new = found.get("new")?;
    let token = Token::read(found)?;
    is_misspelling(token.inner, new).then(|| token.replace(found, new))?
}

pub(super) fn unquote(found: &Found<'_>) -> Option<Replacement> {
    let new = found.get("new")?;
    let token = Token::read(found)?;
    let is_same = !token.quote.is_empty() && token.inner.eq_ignore_ascii_case(new);
    is_same.then(|| found.at_place(new))
}

pub(super) fn quote(found: &Found<'_>) -> Option<Replacement> {
    let new = found.get("new")?;
    let token = Token::read(found)?;
    let is_same = token.quote.is_empty() && new == format!("\"{}\"", token.inner);
    is_same.then(|| found.at_place(new))
}

pub(super) fn replace_entry(found: &Found<'_>) -> Option<Replacement> {
    let (old, new) = (found.get("old")?, found.get("new")?);
    let is_entry = found.placed() == format!("version: {old}");
    (is_entry && !has_anchor(found.source)).then(|| found.at_place(&format!("version: {new}")))
}

pub(super) fn remove_item(found: &Found<'_>) -> Option<Replacement> {
    let line = line_start(found.source, found.place.start);
    let before = &found.source[line..found.place.start];
    let dash = before.trim_start_matches(' ');
    if dash.trim_end_matches(' ') == "-" && dash.len() > 1 {
        return remove_lines(found, before.len() - dash.len(), false);
    }
    let comma = found.source[..found.place.start]
        .trim_end()
        .strip_suffix(',')?
        .len();
    Token::read(found)?;
    let rest = found.source[found.place.end..].trim_start();
    let is_scalar = rest.starts_with([',', ']']);
    let removed = comma..found.place.end;
    let has_comment = found.source[removed.clone()].contains('#');
    (is_scalar && !has_comment).then_some(Replacement {
        range: removed,
        text: String::new(),
    })
}

pub(super) fn remove_field(found: &Found<'_>) -> Option<Replacement> {
    let line = line_start(found.source, found.place.start);
    let indentation = found.place.start - line;
    let is_first = found.source[line..found.place.start]
        .bytes()
        .all(|byte| byte == b' ');
    is_first.then(|| remove_lines(found, indentation, true))?
}

/// Removes the line at the place and the more indented lines below it. With `is_field`, this
/// includes a list with the same indentation as its field.
fn remove_lines(found: &Found<'_>, indentation: usize, is_field: bool) -> Option<Replacement> {
    let source = found.source;
    let start = line_start(source, found.place.start);
    let mut end = start;
    let mut at = start;
    for line in source[start..].split_inclusive('\n') {
        let content = line.trim_start_matches(' ');
        let is_inside = match (line.len() - content.len()).cmp(&indentation) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => at == start || is_field && is_item(content),
            std::cmp::Ordering::Less => false,
        };
        at += line.len();
        if content.trim().is_empty() {
            continue;
        }
        if !is_inside {
            break;
        }
        end = at;
    }
    let removed = &source[start..end];
    // Don't remove the user's comments. The `#` may also be part of a string.
    if removed.contains('#') || has_anchor(source) {
        return None;
    }
    Some(Replacement {
        range: removed_lines(source, start..end),
        text: String::new(),
    })
}

fn is_item(content: &str) -> bool {
    content
        .strip_prefix('-')
        .is_some_and(|rest| rest.starts_with([' ', '\r', '\n']) || rest.is_empty())
}

/// Range of whole lines. At the end of a text without a final newline, it includes the newline
/// before it, so that the result has no final newline either.
fn removed_lines(source: &str, lines: Range<usize>) -> Range<usize> {
    if source[lines.clone()].ends_with('\n') {
        return lines;
    }
    let before = source[..lines.start].trim_end_matches(['\r', '\n']);
    before.len()..lines.end
}

fn line_start(source: &str, at: usize) -> usize {
    source[..at].rfind('\n').map_or(0, |at| at + 1)
}
