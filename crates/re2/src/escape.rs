//! Escapes and character classes.

use super::class::{self, Class, Item, MAX_RUNE};
use super::flags::Flags;

pub(crate) struct Input<'a> {
    pub(crate) rest: &'a str,
}

impl<'a> Input<'a> {
    pub(crate) fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    pub(crate) fn take(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Consumes everything up to and including the mark. Consumes nothing if there's no mark.
    pub(crate) fn take_until(&mut self, mark: &str) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_once(mark)?;
        self.rest = rest;
        Some(taken)
    }

    /// The text consumed since an earlier state of the input.
    pub(crate) fn since(&self, former: &'a str) -> &'a str {
        &former[..former.len() - self.rest.len()]
    }

    fn take_octal(&mut self) -> Option<u32> {
        let digit = self.rest.chars().next()?.to_digit(8)?;
        self.next();
        Some(digit)
    }
}

/// Reads an escape, starting after the backslash.
pub(crate) fn read_escape(input: &mut Input<'_>) -> Result<u32, String> {
    let start = input.rest;
    let Some(letter) = input.next() else {
        return Err("it ends with a single `\\`; write `\\\\` for the character itself".to_owned());
    };
    let rune = match letter {
        'a' => Some(7),
        'f' => Some(12),
        'n' => Some(10),
        'r' => Some(13),
        't' => Some(9),
        'v' => Some(11),
        'x' => read_hex(input),
        // A nonzero digit only starts an octal number if another digit follows. On its own, it
        // would be a back-reference.
        '0' => Some(read_octal(0, input)),
        '1'..='7' => match input.take_octal() {
            Some(second) => Some(read_octal_end(u32::from(letter) - 48, second, input)),
            None => return Err("back-references are not supported".to_owned()),
        },
        letter if letter.is_ascii() && !letter.is_ascii_alphanumeric() => Some(u32::from(letter)),
        _ => None,
    };
    rune.ok_or_else(|| explain_escape(letter, input.since(start)))
}

fn read_octal(first: u32, input: &mut Input<'_>) -> u32 {
    match input.take_octal() {
        Some(second) => read_octal_end(first, second, input),
        None => first,
    }
}

fn read_octal_end(first: u32, second: u32, input: &mut Input<'_>) -> u32 {
    let number = first * 8 + second;
    input.take_octal().map_or(number, |third| number * 8 + third)
}

/// Reads the number after `\x`: two digits, or any number of digits in braces.
fn read_hex(input: &mut Input<'_>) -> Option<u32> {
    if !input.take("{") {
        let high = input.next()?.to_digit(16)?;
        return Some(high * 16 + input.next()?.to_digit(16)?);
    }
    let mut number = input.next()?.to_digit(16)?;
    loop {
        match input.next()? {
            '}' => return Some(number),
            digit => number = number * 16 + digit.to_digit(16)?,
        }
        if number > MAX_RUNE {
            return None;
        }
    }
}

fn explain_escape(letter: char, written: &str) -> String {
    match letter {
        'k' | '8' | '9' => "back-references are not supported".to_owned(),
        'u' | 'U' => format!("`\\{letter}` is not supported; write `\\x{{…}}`"),
        'x' => format!(
            "`\\{written}` is not a character; write two hexadecimal digits, or some in braces up to `\\x{{10FFFF}}`"
        ),
        'Z' => "`\\Z` is not supported; write `\\z`".to_owned(),
        'G' | 'K' | 'X' | 'R' | 'h' | 'H' | 'N' | 'V' | 'E' | 'C' | 'c' | 'e' | 'b' | 'B' | 'A' | 'z'
        | 'Q' => {
            format!("`\\{letter}` is not supported here")
        }
        letter if letter.is_ascii() => {
            format!("unknown escape `\\{letter}`; write `{letter}` for the character itself")
        }
        letter => format!("`\\{letter}`: only ASCII punctuation can be escaped; write `{letter}`"),
    }
}

/// Reads e.g. `\d`, `\pL` or `\p{Greek}`, after the backslash. Returns `None` for other escapes.
pub(crate) fn read_class_escape(input: &mut Input<'_>) -> Result<Option<Item>, String> {
    let start = input.rest;
    let Some(letter) = input.next() else {
        return Ok(None);
    };
    if matches!(letter, 'p' | 'P') {
        return read_unicode_class(input, letter == 'P').map(Some);
    }
    let found = class::perl_class(letter);
    if found.is_none() {
        // Restore the input, so that the caller can try other escapes.
        input.rest = start;
    }
    Ok(found)
}

fn read_unicode_class(input: &mut Input<'_>, is_negated: bool) -> Result<Item, String> {
    let start = input.rest;
    let name = if input.take("{") {
        match input.take_until("}") {
            Some(name) => name,
            None => return Err("`\\p{` has no closing `}`".to_owned()),
        }
    } else {
        input.next();
        input.since(start)
    };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !is_negated),
        None => (name, is_negated),
    };
    match class::find_table(name) {
        Some(table) => Ok(Item::Table { table, negated }),
        None if name.is_empty() => {
            Err("`\\p` needs the name of a Unicode category or script: `\\p{L}`, `\\p{Greek}`".to_owned())
        }
        None => Err(format!("unknown Unicode category or script `{name}`")),
    }
}

/// Reads a class, starting after the `[`.
pub(crate) fn read_class(input: &mut Input<'_>, flags: Flags) -> Result<Class, String> {
    let start = input.rest;
    let mut class = Class {
        negated: input.take("^"),
        fold: flags.fold,
        items: Vec::new(),
    };
    // A leading `]` is a literal character, so it doesn't end the class.
    let mut is_first = true;
    while is_first || !input.take("]") {
        is_first = false;
        let item = read_item(input, start)?;
        class.items.push(item);
    }
    Ok(class)
}

fn read_item(input: &mut Input<'_>, class: &str) -> Result<Item, String> {
    if let Some(item) = read_posix_class(input)? {
        return Ok(item);
    }
    let start = input.rest;
    if input.take("\\") {
        if let Some(item) = read_class_escape(input)? {
            return Ok(item);
        }
        input.rest = start;
    }
    let low = read_character(input, class)?;
    let after = input.rest.strip_prefix('-');
    let high = match after {
        // A trailing `-` is a literal character.
        Some(after) if !after.is_empty() && !after.starts_with(']') => {
            input.rest = after;
            read_character(input, class)?
        }
        _ => low,
    };
    if high < low {
        let range = input.since(start);
        return Err(format!("the range `{range}` ends before it begins"));
    }
    Ok(Item::Range(low, high))
}

/// Reads e.g. `[:alpha:]`. Returns `None` for anything else.
fn read_posix_class(input: &mut Input<'_>) -> Result<Option<Item>, String> {
    let start = input.rest;
    if !input.take("[:") {
        return Ok(None);
    }
    let Some(name) = input.take_until(":]") else {
        // Unterminated, so the `[` is a literal character.
        input.rest = start;
        return Ok(None);
    };
    let item = class::posix_class(name).ok_or_else(|| {
        let names: Vec<&str> = class::POSIX.iter().map(|(name, _)| *name).collect();
        format!("unknown class `[:{name}:]`; expected one of {}", names.join(", "))
    })?;
    Ok(Some(item))
}

fn read_character(input: &mut Input<'_>, class: &str) -> Result<u32, String> {
    if input.take("\\") {
        return read_escape(input);
    }
    match input.next() {
        Some(character) => Ok(u32::from(character)),
        None => Err(format!("the class `[{}` has no closing `]`", shorten_text(class))),
    }
}

pub(crate) fn shorten_text(text: &str) -> String {
    const LONGEST: usize = 20;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
