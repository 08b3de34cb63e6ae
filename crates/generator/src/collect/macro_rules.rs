//! The macros defined in a file.

use rbuilder_reader::token::{Cursor, lex};

/// Calls `visit` with the name and rules of each `macro_rules!`. No-op if `text` can't be lexed.
pub(super) fn visit_macros(text: &str, mut visit: impl FnMut(&str, Cursor<'_>)) {
    if text.contains("macro_rules!")
        && let Ok(tokens) = lex(text)
    {
        walk(tokens.cursor(), &mut visit);
    }
}

fn walk(mut cursor: Cursor<'_>, visit: &mut impl FnMut(&str, Cursor<'_>)) {
    // Recursion is bounded by the lexer, which limits the depth of groups.
    while !cursor.is_end() {
        let mut ahead = cursor;
        if ahead.eat_word("macro_rules")
            && ahead.eat(b'!')
            && let Some(name) = ahead.any_ident()
            && let Some(rules) = ahead.any_group()
        {
            visit(name.text, rules);
            cursor = ahead;
        } else if let Some(inner) = cursor.any_group() {
            walk(inner, visit);
        } else {
            cursor.skip();
        }
    }
}
