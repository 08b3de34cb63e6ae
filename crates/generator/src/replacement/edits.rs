//! Edits arguments, attributes, and comments that are Go markers.

use std::ops::Range;

use super::arguments::{Argument, Group, function_start, groups_around};
use super::words::{count_items, replace_word};
use super::{Found, Replacement};

/// Sets `{name}`, the argument at the place or one in its list, to `{value}`.
pub(super) fn set_value(found: &Found<'_>) -> Option<Replacement> {
    let (name, value) = (found.get("name")?, found.get("value")?);
    let arg = argument_at(found)?;
    let range = if arg.name == name {
        arg.value?
    } else {
        list_of(found, &arg)?.find(name)?.value.clone()?
    };
    Some(Replacement {
        range,
        text: format!("\"{value}\""),
    })
}

/// Replaces a field in the path of the printer column at the place.
pub(super) fn replace_in_column(found: &Found<'_>) -> Option<Replacement> {
    let list = list_of(found, &argument_at(found)?)?;
    replace_word(&found.at(list.find("json_path")?.value.clone()?))
}

fn list_of(found: &Found<'_>, arg: &Argument) -> Option<Group> {
    let last = arg.range.end.checked_sub(1)?;
    let group = groups_around(found.source, &(last..last)).pop()?;
    (arg.range.start <= group.inner.start && group.inner.end == last).then_some(group)
}

/// Sets `{name}` next to the argument at the place.
pub(super) fn set_beside(found: &Found<'_>) -> Option<Replacement> {
    let (name, value) = (found.get("name")?, found.get("value")?);
    let group = groups_around(found.source, &found.place).pop()?;
    let range = group.find(name)?.value.clone()?;
    // Only safe if both are lists with a single item: other items would need the old value.
    let is_single = |place: &Range<usize>| count_items(&found.at(place.clone())) == Some(1);
    let resources = group.find("resources")?.value.clone()?;
    (is_single(&range) && is_single(&resources)).then(|| Replacement {
        range,
        text: format!("\"{value}\""),
    })
}

pub(super) fn set_operations(found: &Found<'_>) -> Option<Replacement> {
    let group = groups_around(found.source, &found.place).pop()?;
    let resources = group.args.iter().find(|arg| arg.name == "resources");
    let is_single = |arg: &Argument| Some(count_items(&found.at(arg.value.clone()?))? == 1);
    resources
        .is_none_or(|arg| is_single(arg) == Some(true))
        .then(|| set_value(found))?
}

/// Turns `resources = "deployments.apps"` into a group and a plural.
pub(super) fn split_group(found: &Found<'_>) -> Option<Replacement> {
    let (name, plural) = (found.get("group")?, found.get("plural")?);
    let group = groups_around(found.source, &found.place).pop()?;
    let resources = group.find("resources")?;
    let text = |range: &Range<usize>| found.source.get(range.clone());
    (count_items(&found.at(resources.value.clone()?)) == Some(1)).then_some(())?;
    let written = format!("groups = \"{name}\"");
    match group.args.iter().find(|arg| arg.name == "groups") {
        None => Some(Replacement {
            range: resources.range.clone(),
            text: format!("{written}, resources = \"{plural}\""),
        }),
        Some(groups) => (text(&groups.range) == Some(&written)).then(|| Replacement {
            range: resources.value.clone().unwrap_or_default(),
            text: format!("\"{plural}\""),
        }),
    }
}

/// Converts `"3"` to `3`.
pub(super) fn unquote(found: &Found<'_>) -> Option<Replacement> {
    let (written, value) = (found.get("found")?, found.get("value")?);
    let plain = written.trim_matches('"');
    let is_same = plain.trim() == value && written != plain && found.placed().trim_matches('"') == plain;
    is_same.then(|| found.at_place(value))
}

/// Turns `name = true` into `name`.
pub(super) fn remove_value(found: &Found<'_>) -> Option<Replacement> {
    let name = found.get("new")?;
    let arg = argument_at(found).filter(|arg| arg.name == name)?;
    (found.source.get(arg.value?)? != "false").then(|| Replacement {
        range: arg.range,
        text: name.to_owned(),
    })
}

/// Turns `{old} = …` into `{outer}({new} = …)`.
pub(super) fn wrap_argument(found: &Found<'_>) -> Option<Replacement> {
    let (outer, new) = (found.get("outer")?, found.get("new")?);
    let arg = argument_at(found)?;
    let value = found.source.get(arg.value?)?;
    Some(Replacement {
        range: arg.range,
        text: format!("{outer}({new} = {value})"),
    })
}

pub(super) fn rename_argument(found: &Found<'_>) -> Option<Replacement> {
    let (old, new) = (found.get("old")?, found.get("new")?);
    let group = groups_around(found.source, &found.place).pop()?;
    let arg = &group.args[group.position(&found.place)?];
    let is_free = group
        .args
        .iter()
        .all(|arg| arg.name != new && arg.name.strip_prefix("exclusive_") != Some(old));
    (arg.name == old && is_free).then(|| Replacement {
        range: arg.range.start..arg.range.start + old.len(),
        text: new.to_owned(),
    })
}

/// Moves the argument to a separate attribute `{attribute}`.
pub(super) fn move_argument(found: &Found<'_>) -> Option<Replacement> {
    let attribute = found.get("attribute")?;
    let groups = groups_around(found.source, &found.place);
    let [group] = &groups[..] else { return None };
    let whole = group.attribute.clone()?;
    let position = group.position(&found.place)?;
    let moved = format!(
        "#[{attribute}({})]",
        &found.source[group.args[position].range.clone()]
    );
    let text = match group.args.len() {
        1 => moved,
        _ => {
            let removed = remove_from(found.source, group, position)?;
            let mut rest = found.source[whole.clone()].to_owned();
            rest.replace_range(removed.start - whole.start..removed.end - whole.start, "");
            format!(
                "{rest}{}{}{moved}",
                found.line_end(),
                indentation(found.source, whole.start)?
            )
        }
    };
    Some(Replacement { range: whole, text })
}

/// Adds an argument after the one at the place, unless the list already has one of this name.
pub(super) fn add_argument(found: &Found<'_>) -> Option<Replacement> {
    let argument = found.get("new")?;
    let group = groups_around(found.source, &found.place).pop()?;
    let after = group.args[group.position(&found.place)?].range.end;
    let name = argument.split(' ').next();
    let is_new = group.args.iter().all(|arg| Some(&*arg.name) != name);
    is_new.then(|| Replacement {
        range: after..after,
        text: format!(", {argument}"),
    })
}

fn argument_at(found: &Found<'_>) -> Option<Argument> {
    let group = groups_around(found.source, &found.place).pop()?;
    let position = group.position(&found.place)?;
    group.args.into_iter().nth(position)
}

pub(super) fn remove_argument(found: &Found<'_>) -> Option<Replacement> {
    let groups = groups_around(found.source, &found.place);
    let position = groups.last()?.position(&found.place)?;
    remove(found, &groups, position)
}

/// Removes `{name}`, an argument around the place or next to it.
pub(super) fn remove_named(found: &Found<'_>) -> Option<Replacement> {
    let name = found.get("name")?;
    let mut groups = groups_around(found.source, &found.place);
    while let Some(group) = groups.last() {
        let position = group.position(&found.place)?;
        if group.args[position].name == name {
            return remove(found, &groups, position);
        }
        let beside = group.args.iter().position(|arg| arg.name == name);
        if let Some(beside) = beside {
            // With several items, the others may depend on the argument.
            return (count_items(found) == Some(1)).then(|| remove(found, &groups, beside))?;
        }
        groups.pop();
    }
    None
}

/// Removes a code from `allow(…)`, or the entire marker along with the last code.
pub(super) fn remove_allowed(found: &Found<'_>) -> Option<Replacement> {
    let mut groups = groups_around(found.source, &found.place);
    let group = groups.last()?;
    let position = group.position(&found.place)?;
    let is_code = |(other, arg): (usize, &Argument)| other != position && arg.value.is_none();
    if !group.args.iter().enumerate().any(is_code) {
        groups.pop();
        let position = groups.last()?.position(&found.place)?;
        return remove(found, &groups, position);
    }
    remove(found, &groups, position)
}

/// Removes an argument, and everything that would be empty without it.
fn remove(found: &Found<'_>, groups: &[Group], position: usize) -> Option<Replacement> {
    let (group, around) = groups.split_last()?;
    let range = if group.args.len() > 1 {
        remove_from(found.source, group, position)?
    } else if let Some(whole) = &group.attribute {
        line_of(found.source, whole)
    } else {
        let parent = around.last()?;
        return remove(found, around, parent.position(&group.inner)?);
    };
    Some(Replacement {
        range,
        text: String::new(),
    })
}

/// Returns the range of an argument and one adjacent comma, unless there is a comment in between.
fn remove_from(source: &str, group: &Group, position: usize) -> Option<Range<usize>> {
    let own = &group.args[position].range;
    let (range, between) = match (group.args.get(position + 1), position.checked_sub(1)) {
        (Some(next), _) => (own.start..next.range.start, own.end..next.range.start),
        (None, Some(before)) => {
            let end = group.args[before].range.end;
            (end..own.end, end..own.start)
        }
        (None, None) => (own.clone(), own.end..own.end),
    };
    let between = source.get(between)?;
    (!between.contains("//") && !between.contains("/*")).then_some(range)
}

/// Returns the whole line of an attribute, or just the attribute if it shares the line.
fn line_of(source: &str, attribute: &Range<usize>) -> Range<usize> {
    let start = source[..attribute.start].rfind('\n').map_or(0, |at| at + 1);
    let end = source[attribute.end..]
        .find('\n')
        .map(|at| attribute.end + at + 1);
    let is_blank = |range: Range<usize>| source[range].trim().is_empty();
    match end {
        Some(end) if is_blank(start..attribute.start) && is_blank(attribute.end..end) => start..end,
        _ => {
            let rest = &source[attribute.end..];
            let spaces = rest.len() - rest.trim_start_matches(' ').len();
            attribute.start..attribute.end + spaces
        }
    }
}

/// Returns the indentation before a position, or `None` if anything other than whitespace (or a
/// byte order mark) precedes the position on its line.
fn indentation(source: &str, at: usize) -> Option<&str> {
    let start = source[..at].rfind('\n').map_or(0, |at| at + 1);
    let before = source[start..at].trim_start_matches('\u{feff}');
    before
        .chars()
        .all(|letter| matches!(letter, ' ' | '\t'))
        .then_some(before)
}

pub(super) fn mark_function(found: &Found<'_>) -> Option<Replacement> {
    let marker = found.get("new")?;
    let start = function_start(found.source, &found.place)?;
    let indentation = indentation(found.source, start)?;
    Some(Replacement {
        range: start..start,
        text: format!("{marker}{}{indentation}", found.line_end()),
    })
}

/// Replaces a comment that is a Go marker with the attribute.
pub(super) fn replace_comment(found: &Found<'_>) -> Option<Replacement> {
    let attribute = found.get("new")?;
    let start = comment_start(found)?;
    let end = found.place.start + found.placed().trim_end().len();
    let indentation = indentation(found.source, start)?;
    let item = Following::read(found.source.get(end..)?)?;
    let is_member = attribute.starts_with("#[kube(") || item.derive.is_none();
    let is_function = ["#[rbac(", "#[webhook("]
        .iter()
        .any(|name| attribute.starts_with(name));
    if is_function != item.is_function() {
        return None;
    }
    if is_function || is_member {
        return Some(Replacement {
            range: start..end,
            text: attribute.to_owned(),
        });
    }
    // A helper attribute must come after its derive.
    let derive = end + item.derive?;
    let between = found.source[end..derive].trim_start_matches(['\r', '\n', ' ', '\t']);
    Some(Replacement {
        range: start..derive,
        text: format!("{between}{}{indentation}{attribute}", found.line_end()),
    })
}

/// Returns the start of a `//` or `///` comment, or `None` for other comments.
fn comment_start(found: &Found<'_>) -> Option<usize> {
    let before = &found.source[..found.place.start];
    let is_line = |slashes: &&str| found.placed().starts_with(*slashes) || before.ends_with(*slashes);
    let slashes = ["///", "//"].into_iter().find(is_line)?;
    // The place includes the slashes only if the comment is a description.
    match found.placed().starts_with(slashes) {
        true => Some(found.place.start),
        false => Some(found.place.start - slashes.len()),
    }
}

/// What comes after a comment.
struct Following<'s> {
    /// The end of the last line with a derive.
    derive: Option<usize>,
    /// The first line that is neither a comment nor an attribute.
    line: &'s str,
}

impl<'s> Following<'s> {
    fn read(text: &'s str) -> Option<Self> {
        let mut derive = None;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let plain = line.trim();
            if plain.starts_with("#[derive(") && plain.ends_with(")]") {
                derive = Some(at + line.trim_end().len());
            }
            at += line.len();
            if plain.is_empty() || plain.starts_with("//") || plain.starts_with("#[") && plain.ends_with(']')
            {
                continue;
            }
            let is_item = plain.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
            return is_item.then_some(Following { derive, line: plain });
        }
        None
    }

    fn is_function(&self) -> bool {
        self.line.split_whitespace().any(|word| word == "fn")
    }
}
