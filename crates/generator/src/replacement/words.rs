//! Edits of words: names, and items in lists such as `"get;list"` or `["get", "list"]`.

use std::ops::Range;

use rbuilder_diagnostic::suggest::is_misspelling;
use rbuilder_reader::token::{Kind, LiteralKind, lex};

use super::{Found, Replacement};

/// Returns false if the two names aren't similar enough: help may suggest such names, too.
pub(super) fn is_misspelled(found: &Found<'_>) -> bool {
    let words = found.get("old").zip(found.get("new"));
    words.is_some_and(|(old, new)| is_misspelling(old, new))
}

pub(super) fn replace_word(found: &Found<'_>) -> Option<Replacement> {
    let (old, new) = (found.get("old")?, found.get("new")?);
    let start = found.place.start + find_word(found.placed(), old)?;
    Some(Replacement {
        range: start..start + old.len(),
        text: new.to_owned(),
    })
}

/// Replaces the only variable `{old}` in an expression. Fields with this name don't count.
pub(super) fn replace_variable(found: &Found<'_>) -> Option<Replacement> {
    let (old, new) = (found.get("old")?, found.get("new")?);
    let text = found.placed();
    let is_variable = |at: &usize| !text[..*at].trim_end().ends_with('.');
    let mut positions = find_words(text, old).filter(is_variable);
    let start = found.place.start + positions.next()?;
    positions.next().is_none().then(|| Replacement {
        range: start..start + old.len(),
        text: new.to_owned(),
    })
}

pub(super) fn remove_backquotes(found: &Found<'_>) -> Option<Replacement> {
    let new = found.get("new")?;
    let quoted = format!("`{new}`");
    let mut positions = found.placed().match_indices(&quoted);
    let start = found.place.start + positions.next()?.0;
    positions.next().is_none().then(|| Replacement {
        range: start..start + quoted.len(),
        text: new.to_owned(),
    })
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    let mut found = find_words(text, word);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Finds the occurrences of a word. Parts of longer words don't count.
fn find_words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_part =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        !word.is_empty()
            && !is_part(text[..*at].chars().next_back())
            && !is_part(text[at + word.len()..].chars().next())
    })
}

pub(super) fn replace_item(found: &Found<'_>) -> Option<Replacement> {
    let (old, new) = (found.get("old")?, found.get("new")?);
    // Would have to be escaped in the literal.
    if new.contains('"') {
        return None;
    }
    edit_items(found, |item| (item == old).then(|| new.to_owned()))
}

/// Replaces the plural in `{old}` as well as in `{old}/status`.
pub(super) fn replace_plural(found: &Found<'_>) -> Option<Replacement> {
    let (old, new) = (found.get("old")?, found.get("new")?);
    edit_items(found, |item| {
        let rest = item.strip_prefix(old)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{new}{rest}"))
    })
}

/// Replaces `{plural}/{old}` with `{plural}/{new}`, or with just `{new}` if that is the plural.
pub(super) fn replace_subresource(found: &Found<'_>) -> Option<Replacement> {
    let (plural, old, new) = (found.get("plural")?, found.get("old")?, found.get("new")?);
    let wrong = format!("{plural}/{old}");
    let right = if new == plural {
        new.to_owned()
    } else {
        format!("{plural}/{new}")
    };
    edit_items(found, |item| (item == wrong).then(|| right.clone()))
}

pub(super) fn remove_item(found: &Found<'_>) -> Option<Replacement> {
    let old = found.get("old")?;
    edit_items(found, |item| (item == old).then(String::new))
}

/// Removes all but the first of equal items. Operations are compared case-insensitively.
pub(super) fn remove_repeated(found: &Found<'_>) -> Option<Replacement> {
    let old = found.get("old")?;
    let is_old = |item: &str| item == old || item.to_uppercase() == old;
    let mut count = 0;
    edit_items(found, |item| {
        count += usize::from(is_old(item));
        (is_old(item) && count > 1).then(String::new)
    })
}

pub(super) fn remove_empty(found: &Found<'_>) -> Option<Replacement> {
    edit_items(found, |item| item.is_empty().then(String::new))
}

pub(super) fn keep_wildcard(found: &Found<'_>) -> Option<Replacement> {
    edit_items(found, |item| (item != "*").then(String::new))
}

#[derive(Debug)]
struct Item {
    /// Excludes surrounding whitespace.
    range: Range<usize>,
    /// The range to delete in order to remove the item: the whole literal if the item is all it
    /// contains.
    outer: Range<usize>,
    /// Index of the literal that contains the item.
    literal: usize,
}

/// Edits the items at the place. `edit` returns `None` to leave an item unchanged. An item is
/// removed if the new text is empty or equal to another item.
fn edit_items(found: &Found<'_>, mut edit: impl FnMut(&str) -> Option<String>) -> Option<Replacement> {
    let items = read_items(found)?;
    let text = |item: &Item| &found.source[item.range.clone()];
    let edited: Vec<Option<String>> = items.iter().map(|item| edit(text(item))).collect();
    let mut kept: Vec<String> = Vec::new();
    let mut edits = Vec::new();
    for (item, new) in items.iter().zip(&edited) {
        let written = new.as_deref().unwrap_or_else(|| text(item));
        let is_other = |(other, new): (&Item, &Option<String>)| new.is_none() && text(other) == written;
        let is_repeated = new.is_some()
            && (kept.iter().any(|kept| kept == written) || items.iter().zip(&edited).any(is_other));
        let is_removed = new.is_some() && (written.is_empty() || is_repeated);
        if !is_removed {
            kept.push(written.to_owned());
        }
        edits.push((item, new.as_deref().map(|new| if is_removed { "" } else { new })));
    }
    if kept.is_empty() {
        return None;
    }
    join(found, &edits)
}

/// Combines the edits into a single replacement that spans from the first edit to the last.
fn join(found: &Found<'_>, edits: &[(&Item, Option<&str>)]) -> Option<Replacement> {
    let mut splices: Vec<(Range<usize>, &str)> = Vec::new();
    for (position, (item, new)) in edits.iter().enumerate() {
        match new {
            None => {}
            Some("") => splices.push((removed_range(edits, position)?, "")),
            Some(new) => splices.push((item.range.clone(), new)),
        }
    }
    let whole = splices.first()?.0.start..splices.iter().map(|(range, _)| range.end).max()?;
    let mut text = String::new();
    let mut at = whole.start;
    for (range, new) in splices {
        text.push_str(found.source.get(at..range.start).unwrap_or_default());
        text.push_str(new);
        at = at.max(range.end);
    }
    Some(Replacement { range: whole, text })
}

/// Includes the separator between the item and a neighbor that stays.
fn removed_range(edits: &[(&Item, Option<&str>)], position: usize) -> Option<Range<usize>> {
    let item = edits[position].0;
    let is_kept = |new: &Option<&str>| *new != Some("");
    let is_alone = item.range != item.outer;
    let before = edits[..position]
        .iter()
        .rev()
        .find(|(other, new)| is_kept(new) && (is_alone || other.literal == item.literal));
    if let Some((before, _)) = before {
        let end = if before.literal == item.literal {
            before.range.end
        } else {
            before.outer.end
        };
        return Some(end..item.outer.end);
    }
    let (after, _) = edits.get(position + 1)?;
    if after.literal == item.literal {
        Some(item.range.start..after.range.start)
    } else {
        is_alone.then_some(item.outer.start..after.outer.start)
    }
}

/// Parses the place, which is either a string or an array of strings.
fn read_items(found: &Found<'_>) -> Option<Vec<Item>> {
    let tokens = lex(found.placed()).ok()?;
    let mut cursor = tokens.cursor();
    if let Some(inner) = cursor.any_group() {
        if !cursor.is_end() {
            return None;
        }
        cursor = inner;
    }
    let mut items = Vec::new();
    let mut literal = 0;
    while !cursor.is_end() {
        if cursor.kind() != Kind::Literal(LiteralKind::Text) {
            return None;
        }
        let range = cursor.span().range();
        let start = found.place.start;
        items.extend(split_literal(
            found,
            start + range.start..start + range.end,
            literal,
        )?);
        literal += 1;
        cursor.skip();
        if !cursor.eat(b',') && !cursor.is_end() {
            return None;
        }
    }
    Some(items)
}

/// Splits a literal at its semicolons. Returns `None` if it contains escapes.
fn split_literal(found: &Found<'_>, range: Range<usize>, literal: usize) -> Option<Vec<Item>> {
    let text = &found.source[range.clone()];
    let start = range.start + text.find('"')? + 1;
    let end = range.start + text.rfind('"')?;
    let content = found.source.get(start..end)?;
    if content.contains('\\') {
        return None;
    }
    let parts: Vec<&str> = content.split(';').collect();
    let is_alone = parts.len() == 1;
    let mut at = start;
    let items = parts.iter().map(|part| {
        let trimmed = part.trim();
        let first = at + (part.len() - part.trim_start().len()).min(part.len());
        let inner = first..first + trimmed.len();
        at += part.len() + 1;
        Item {
            outer: if is_alone { range.clone() } else { inner.clone() },
            range: inner,
            literal,
        }
    });
    Some(items.collect())
}

pub(super) fn count_items(found: &Found<'_>) -> Option<usize> {
    read_items(found).map(|items| items.len())
}
