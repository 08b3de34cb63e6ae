//! Macros that pass items through, i.e. `macro_rules!` whose only rule emits the item passed to it,
//! perhaps with additional attributes or next to trait implementations.
//!
//! The item in such a call is read directly. Nothing is expanded: the rule is only compared with
//! its own pattern, so calls of any other macro stay unread.

use std::collections::BTreeSet;
use std::ops::Range;

use rbuilder_reader::grammar::{ItemKind, Items};
use rbuilder_reader::token::{Cursor, Delimiter, Kind, lex};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrapper {
    pub(super) added: String,
    /// True if the macro takes any number of items, false for a single struct or enum.
    is_list: bool,
}

/// Outside of delimiters, these words define something other than the item, or change how serde
/// writes it.
const REFUSED: &[&str] = &[
    "!",
    "CustomResource",
    "Deserialize",
    "JsonSchema",
    "Serialize",
    "enum",
    "mod",
    "struct",
    "type",
    "union",
    "use",
];

/// Attributes containing these are refused: variables, and arguments whose place is needed after
/// the item has been read.
const UNPLACED: &[&str] = &[
    "$",
    "conversion",
    "printcolumn",
    "rule",
    "scale",
    "selectable",
    "validation",
    "x_kube",
];

pub(super) fn read_wrapper(mut rules: Cursor<'_>) -> Option<Wrapper> {
    let pattern = flatten(rules.any_group()?);
    if !rules.eat_pair(b'=', b'>') {
        return None;
    }
    let result = flatten(rules.any_group()?);
    rules.eat(b';');
    if !rules.is_end() {
        return None;
    }
    let pattern = Pattern::read(&pattern);
    pattern.find_wrapper(&pattern.tokens, &result)
}

fn flatten(cursor: Cursor<'_>) -> Vec<&str> {
    let mut tokens = Vec::new();
    add_tokens(cursor, &mut tokens);
    tokens
}

fn add_tokens<'a>(mut cursor: Cursor<'a>, tokens: &mut Vec<&'a str>) {
    while !cursor.is_end() {
        let Kind::Open(delimiter) = cursor.kind() else {
            tokens.push(cursor.text());
            cursor.skip();
            continue;
        };
        let [open, close] = match delimiter {
            Delimiter::Paren => ["(", ")"],
            Delimiter::Bracket => ["[", "]"],
            Delimiter::Brace => ["{", "}"],
        };
        tokens.push(open);
        match cursor.any_group() {
            Some(inner) => add_tokens(inner, tokens),
            None => cursor.skip(),
        }
        tokens.push(close);
    }
}

/// The pattern of a rule, as the result would repeat it: `$x` instead of `$x:ident`.
struct Pattern<'a> {
    tokens: Vec<&'a str>,
    /// Variables of the fragment `vis`. Visibility doesn't matter here.
    visibilities: BTreeSet<&'a str>,
}

impl<'a> Pattern<'a> {
    fn read(written: &[&'a str]) -> Self {
        let mut tokens = Vec::new();
        let mut visibilities = BTreeSet::new();
        let mut at = 0;
        while at < written.len() {
            match &written[at..] {
                ["$", name, ":", kind, ..] => {
                    if *kind == "vis" {
                        visibilities.insert(*name);
                    }
                    tokens.extend(["$", name]);
                    at += 4;
                }
                rest => {
                    tokens.push(rest[0]);
                    at += 1;
                }
            }
        }
        Pattern { tokens, visibilities }
    }

    /// Finds the pattern in the result of the rule. The rest of the result must not affect schemas.
    fn find_wrapper(&self, pattern: &[&'a str], result: &[&str]) -> Option<Wrapper> {
        if let ["$", "(", inner @ .., ")", "*"] = pattern
            && !inner.starts_with(&["#"])
            && is_balanced(inner)
        {
            return self.find_repeated(inner, result);
        }
        if !pattern.iter().any(|token| matches!(*token, "struct" | "enum")) && !is_variable(pattern) {
            return None;
        }
        let starts = (0..result.len()).filter(|at| is_balanced(&result[..*at]));
        let mut found = starts.filter_map(|at| {
            let (added, end) = self.match_item(pattern, result, at)?;
            let is_idle = is_idle(&result[..at]) && is_idle(&result[end..]);
            is_idle.then_some(Wrapper {
                added,
                is_list: is_variable(pattern),
            })
        });
        found.next()
    }

    /// Like [`Pattern::find_wrapper`], but for a list of items in `$(…)*`.
    fn find_repeated(&self, pattern: &[&'a str], result: &[&str]) -> Option<Wrapper> {
        let starts = (0..result.len()).filter(|at| is_balanced(&result[..*at]));
        let mut found = starts.filter_map(|at| {
            let ["$", "(", rest @ ..] = &result[at..] else {
                return None;
            };
            let close = (0..rest.len()).find(|end| rest[*end] == ")" && is_balanced(&rest[..*end]))?;
            // Skip `$(` in front, and `)*` after it.
            let end = at + 2 + close + 2;
            let is_idle =
                result.get(end - 1) == Some(&"*") && is_idle(&result[..at]) && is_idle(&result[end..]);
            let wrapper = self.find_wrapper(pattern, &rest[..close]).filter(|_| is_idle)?;
            Some(Wrapper {
                is_list: true,
                ..wrapper
            })
        });
        found.next()
    }

    /// Matches attributes and the pattern, starting at token `at`. Returns the attributes that
    /// aren't in the pattern, and the end of the item.
    fn match_item(&self, pattern: &[&str], result: &[&str], at: usize) -> Option<(String, usize)> {
        let mut added = String::new();
        let mut at = at + read_attributes(&result[at..], &mut added)?;
        let mut pattern = pattern;
        if let ["$", "(", "#", "[", "$", name, "]", ")", "*", rest @ ..] = pattern {
            let written = ["$", "(", "#", "[", "$", name, "]", ")", "*"];
            if !result[at..].starts_with(&written) {
                return None;
            }
            at += written.len();
            pattern = rest;
        }
        at += read_attributes(&result[at..], &mut added)?;
        let wanted = self.essence(pattern);
        let found = self.essence(&result[at..]);
        let matches = !wanted.is_empty()
            && wanted.len() <= found.len()
            && wanted
                .iter()
                .zip(&found)
                .all(|((wanted, _), (found, _))| wanted == found);
        matches.then(|| (added, at + found[wanted.len() - 1].1))
    }

    /// Returns the tokens that matter, each with the position after it. Visibilities and commas are
    /// dropped, because macros often add or omit them.
    fn essence<'t>(&self, tokens: &[&'t str]) -> Vec<(&'t str, usize)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            at += match &tokens[at..] {
                ["pub", "(", "crate" | "super" | "self", ")", ..] => 4,
                ["$", "(", ",", ")", "?" | "*", ..] => 5,
                ["$", name, ..] if self.visibilities.contains(name) => 2,
                ["pub" | ",", ..] => 1,
                rest => {
                    found.push((rest[0], at + 1));
                    1
                }
            };
        }
        found
    }
}

fn is_variable(tokens: &[&str]) -> bool {
    matches!(tokens, ["$", name] if *name != "(")
}

fn is_balanced(tokens: &[&str]) -> bool {
    let mut depth = 0_usize;
    for token in tokens {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            _ => {}
        }
    }
    depth == 0
}

/// Appends the leading attributes and returns their number of tokens, or `None` if one of them
/// depends on the call.
fn read_attributes(tokens: &[&str], to: &mut String) -> Option<usize> {
    let mut at = 0;
    loop {
        let length = match &tokens[at..] {
            ["#", "[", rest @ ..] => {
                2 + 1 + (0..rest.len()).find(|end| rest[*end] == "]" && is_balanced(&rest[..*end]))?
            }
            [doc, ..] if doc.starts_with("///") || doc.starts_with("/**") => 1,
            _ => return Some(at),
        };
        let attribute = &tokens[at..at + length];
        if attribute.iter().any(|token| UNPLACED.contains(token)) {
            return None;
        }
        for token in attribute {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            if to.ends_with(is_word) && token.starts_with(is_word) {
                to.push(' ');
            }
            to.push_str(token);
        }
        to.push('\n');
        at += length;
    }
}

/// Returns true if the items in this part of the result don't affect the schema of the passed item.
fn is_idle(tokens: &[&str]) -> bool {
    let mut outside = Vec::new();
    let mut before = "";
    for token in tokens {
        match *token {
            // A repetition contains items; other groups contain parts of an item.
            "(" => outside.push(before == "$"),
            "[" | "{" => outside.push(false),
            ")" | "]" | "}" => drop(outside.pop()),
            token if outside.iter().all(|is_outside| *is_outside) && REFUSED.contains(&token) => {
                return false;
            }
            _ => {}
        }
        before = token;
    }
    true
}

/// Returns the byte ranges of the items in a call, or `None` if the call contains anything else.
pub(super) fn find_items(call: &str, wrapper: &Wrapper) -> Option<Vec<Range<usize>>> {
    let tokens = lex(call).ok()?;
    let mut cursor = tokens.cursor();
    while !matches!(cursor.kind(), Kind::Open(_) | Kind::End) {
        cursor.skip();
    }
    let mut items = Items::new(cursor.any_group()?, None);
    let mut found = Vec::new();
    while let Some(item) = items.read().ok()? {
        if !wrapper.is_list && !matches!(item.kind, ItemKind::Type(_)) {
            return None;
        }
        found.push(super::attributes::whole_span(&item).range());
    }
    (wrapper.is_list || found.len() == 1).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::macro_rules::visit_macros;

    #[test]
    fn recognizes_rules_that_pass_items_through() {
        let fields = "struct $name:ident { $($(#[$fm:meta])* $fv:vis $f:ident : $t:ty),* $(,)? }";
        let emitted = "struct $name { $($(#[$fm])* $fv $f : $t,)* }";
        for (rule, expected) in [
            ("($item:item) => { $item };", Some("")),
            (
                "($($item:item)*) => { $(#[derive(Clone)] $item)* fn f() {} }",
                Some("#[derive(Clone)]\n"),
            ),
            (
                "($(#[$m:meta])* $v:vis struct $name:ident $body:tt) => { #[derive(Clone, A)] $(#[$m])* #[b] pub struct $name $body impl T for $name {} };",
                Some("#[derive(Clone,A)]\n#[b]\n"),
            ),
            (
                &format!(
                    "($(#[$m:meta])* pub {fields}) => {{ impl A for $name {{}} $(#[$m])* pub(crate) {emitted} }}"
                ),
                Some(""),
            ),
            // The attributes depend on the call, or the macro emits a different item.
            (
                "($k:literal, $(#[$m:meta])* struct $n:ident $b:tt) => { #[kube(kind = $k)] $(#[$m])* struct $n $b }",
                None,
            ),
            ("($(#[$m:meta])* struct $n:ident $b:tt) => { struct $n $b }", None),
            (
                &format!("($(#[$m:meta])* {fields}) => {{ $(#[$m])* struct $name {{ $($fv $f : $t,)* }} }}"),
                None,
            ),
            (
                &format!(
                    "($(#[$m:meta])* {fields}) => {{ $(#[$m])* struct $name {{ $($(#[$fm])* $fv $f : Option<$t>,)* }} }}"
                ),
                None,
            ),
            ("($item:item) => { $item struct Other; }", None),
            (
                "($(#[$m:meta])* struct $n:ident $b:tt) => { $(#[$m])* struct $n $b impl JsonSchema for $n {} }",
                None,
            ),
            ("($item:item) => { other! { $item } }", None),
            ("($item:item) => { mod inner { $item } }", None),
            ("($item:item) => { $item }; (x) => {}", None),
            ("($name:ident) => { struct $name; }", None),
            ("() => {}", None),
        ] {
            let text = format!("mod m {{ macro_rules! wrap {{ {rule} }} }}");
            let mut found = Vec::new();
            visit_macros(&text, |name, rules| {
                found.push((name.to_owned(), read_wrapper(rules)))
            });
            let [(name, wrapper)] = found.as_slice() else {
                panic!("{text}: {found:?}");
            };
            assert_eq!(name, "wrap");
            assert_eq!(
                wrapper.as_ref().map(|wrapper| &*wrapper.added),
                expected,
                "{rule}"
            );
        }
    }
}
