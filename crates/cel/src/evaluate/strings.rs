//! CEL's string functions, and Kubernetes' functions for regular expressions.

use rbuilder_re2::Pattern;

use super::printf;
use super::text;
use super::value::Value;
use super::{Outcome, Stop};

pub(super) fn call<'v>(function: &str, args: &[Value<'v>], pattern: Option<&Pattern>) -> Option<Outcome<'v>> {
    let string = |text: String| Some(Ok(Value::string(text)));
    match (function, args) {
        ("strings.quote", [Value::String(text)]) => string(quote(text)),
        ("join", [Value::List(list)]) => Some(list.to_vec().and_then(|items| join(&items, ""))),
        ("join", [Value::List(list), Value::String(separator)]) => {
            Some(list.to_vec().and_then(|items| join(&items, separator)))
        }
        ("format", [Value::String(format), Value::List(list)]) => {
            let items = list.to_vec();
            Some(items.and_then(|items| printf::format(format, &items).map(Value::string)))
        }
        (_, [Value::String(text), rest @ ..]) => on_string(function, text, rest, pattern),
        _ => None,
    }
}

fn on_string<'v>(
    function: &str,
    text: &str,
    rest: &[Value<'v>],
    pattern: Option<&Pattern>,
) -> Option<Outcome<'v>> {
    let string = |text: String| Ok(Value::string(text));
    Some(match (function, rest) {
        ("contains", [Value::String(part)]) => Ok(Value::Bool(text.contains(&**part))),
        ("startsWith", [Value::String(part)]) => Ok(Value::Bool(text.starts_with(&**part))),
        ("endsWith", [Value::String(part)]) => Ok(Value::Bool(text.ends_with(&**part))),
        ("charAt", [Value::Int(index)]) => char_at(text, *index),
        ("indexOf", [Value::String(part)]) => index_of(text, part, 0),
        ("indexOf", [Value::String(part), Value::Int(offset)]) => index_of(text, part, *offset),
        ("lastIndexOf", [Value::String(part)]) => last_index_of(text, part),
        ("lastIndexOf", [Value::String(part), Value::Int(offset)]) => last_index_from(text, part, *offset),
        ("lowerAscii", []) => string(text.to_ascii_lowercase()),
        ("upperAscii", []) => string(text.to_ascii_uppercase()),
        ("trim", []) => string(text.trim_matches(is_go_space).to_owned()),
        ("replace", [Value::String(old), Value::String(new)]) => string(replace(text, old, new, -1)),
        ("replace", [Value::String(old), Value::String(new), Value::Int(count)]) => {
            string(replace(text, old, new, *count))
        }
        ("split", [Value::String(separator)]) => Ok(Value::strings(split(text, separator, -1))),
        ("split", [Value::String(separator), Value::Int(count)]) => {
            Ok(Value::strings(split(text, separator, *count)))
        }
        ("substring", [Value::Int(start)]) => substring(text, *start, None),
        ("substring", [Value::Int(start), Value::Int(end)]) => substring(text, *start, Some(*end)),
        ("find", [Value::String(regex)]) => find(text, regex, pattern),
        ("findAll", [Value::String(regex)]) => find_all(text, regex, -1, pattern),
        ("findAll", [Value::String(regex), Value::Int(count)]) => find_all(text, regex, *count, pattern),
        _ => return None,
    })
}

fn is_go_space(letter: char) -> bool {
    letter.is_whitespace()
}

fn out_of_range(index: i64) -> Stop {
    Stop::error(format!("index out of range: {index}"))
}

fn int<'v>(index: usize) -> Outcome<'v> {
    Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX)))
}

fn char_at<'v>(text: &str, index: i64) -> Outcome<'v> {
    // Go counts characters, so byte indices won't do.
    let letters: Vec<char> = text.chars().collect();
    match usize::try_from(index) {
        Ok(index) if index < letters.len() => Ok(Value::string(letters[index].to_string())),
        // The position after the last character is valid.
        Ok(index) if index == letters.len() => Ok(Value::string("")),
        _ => Err(out_of_range(index)),
    }
}

fn index_of<'v>(text: &str, part: &str, offset: i64) -> Outcome<'v> {
    let start = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    let letters: Vec<char> = text.chars().collect();
    let part: Vec<char> = part.chars().collect();
    if part.is_empty() {
        return int(start.min(letters.len()));
    }
    if start >= letters.len() {
        return Ok(Value::Int(-1));
    }
    let found = letters[start..]
        .windows(part.len())
        .position(|window| window == part);
    found.map_or(Ok(Value::Int(-1)), |index| int(start + index))
}

fn last_index_of<'v>(text: &str, part: &str) -> Outcome<'v> {
    let length = text.chars().count();
    if part.is_empty() {
        return int(length);
    }
    // Without this, searching an empty text would start at -1, which is out of range.
    if text.len() < part.len() {
        return Ok(Value::Int(-1));
    }
    last_index_from(text, part, i64::try_from(length).unwrap_or(i64::MAX) - 1)
}

fn last_index_from<'v>(text: &str, part: &str, offset: i64) -> Outcome<'v> {
    let start = usize::try_from(offset).map_err(|_| out_of_range(offset))?;
    let letters: Vec<char> = text.chars().collect();
    let part: Vec<char> = part.chars().collect();
    if part.is_empty() {
        return int(start.min(letters.len()));
    }
    if start >= letters.len() || part.len() > letters.len() {
        return Ok(Value::Int(-1));
    }
    let start = start.min(letters.len() - part.len());
    let found = (0..=start)
        .rev()
        .find(|index| letters[*index..].starts_with(&part));
    found.map_or(Ok(Value::Int(-1)), int)
}

/// A negative `count` replaces all occurrences. An empty `old` matches around each character.
fn replace(text: &str, old: &str, new: &str, count: i64) -> String {
    match usize::try_from(count) {
        Ok(count) => text.replacen(old, new, count),
        Err(_) => text.replace(old, new),
    }
}

/// A negative `count` means unlimited parts. An empty separator splits into characters.
fn split(text: &str, separator: &str, count: i64) -> Vec<String> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    if most == 0 {
        return Vec::new();
    }
    if !separator.is_empty() {
        return text.splitn(most, separator).map(str::to_owned).collect();
    }
    let mut rest = text;
    let mut parts = Vec::new();
    while let Some(letter) = rest.chars().next() {
        if parts.len() + 1 == most {
            parts.push(rest.to_owned());
            break;
        }
        parts.push(letter.to_string());
        rest = &rest[letter.len_utf8()..];
    }
    parts
}

fn substring<'v>(text: &str, start: i64, end: Option<i64>) -> Outcome<'v> {
    let letters: Vec<char> = text.chars().collect();
    if let Some(end) = end
        && start > end
    {
        return Err(Stop::error(format!(
            "invalid substring range. start: {start}, end: {end}"
        )));
    }
    let inside = |index: i64| {
        usize::try_from(index)
            .ok()
            .filter(|index| *index <= letters.len())
            .ok_or_else(|| out_of_range(index))
    };
    let from = inside(start)?;
    let to = end.map_or(Ok(letters.len()), inside)?;
    Ok(Value::string(letters[from..to].iter().collect::<String>()))
}

fn join<'v>(items: &[Value<'v>], separator: &str) -> Outcome<'v> {
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        let Value::String(text) = item else {
            let shown = text::show(item);
            return Err(Stop::error(format!("join: invalid input: {shown}")));
        };
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
    }
    Ok(Value::string(joined))
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        let escape = match letter {
            '\x07' => "\\a",
            '\x08' => "\\b",
            '\x0c' => "\\f",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\x0b' => "\\v",
            '\\' => "\\\\",
            '"' => "\\\"",
            letter => {
                quoted.push(letter);
                continue;
            }
        };
        quoted.push_str(escape);
    }
    quoted.push('"');
    quoted
}

fn find<'v>(text: &str, regex: &str, pattern: Option<&Pattern>) -> Outcome<'v> {
    let found = text::with_pattern(regex, pattern, |pattern| pattern.find_from(text, 0))?;
    Ok(Value::string(found.map_or("", |range| &text[range])))
}

/// Finds all matches like Go's `FindAllString`, where an empty match adjacent to a preceding match
/// doesn't count.
fn find_all<'v>(text: &str, regex: &str, count: i64, pattern: Option<&Pattern>) -> Outcome<'v> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let found = text::with_pattern(regex, pattern, |pattern| {
        let mut found = Vec::new();
        let (mut position, mut last_end) = (0, None);
        while found.len() < most && position <= text.len() {
            let Some(range) = pattern.find_from(text, position)? else {
                break;
            };
            let is_counted = !(range.is_empty() && last_end == Some(range.start));
            // Advance by one character after an empty match, or we'd loop forever.
            position = match range.end > position {
                true => range.end,
                false => position + text[position..].chars().next().map_or(1, char::len_utf8),
            };
            last_end = Some(range.end);
            if is_counted {
                found.push(text[range].to_owned());
            }
        }
        Some(found)
    })?;
    Ok(Value::strings(found))
}
