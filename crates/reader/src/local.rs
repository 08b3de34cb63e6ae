//! Items inside function bodies.

use crate::Span;
use crate::token::{Cursor, Delimiter, Kind};

/// Finds items between the statements of a body. Locations include their attributes.
pub fn find_local_items(mut body: Cursor<'_>) -> Vec<Span> {
    let mut found = Vec::new();
    let mut is_start = true;
    while !body.is_end() {
        let start = body;
        if is_start && pass_item(&mut body) {
            found.push(body.span_since(start));
            continue;
        }
        is_start = body.is_punct(b';') || body.is_group(Delimiter::Brace);
        body.skip();
    }
    found
}

/// Skips the next item with its attributes, if there is one. Macro calls don't count as items here.
pub(crate) fn pass_item(cursor: &mut Cursor<'_>) -> bool {
    let mut ahead = *cursor;
    if !pass_front(&mut ahead) {
        return false;
    }
    let Some(end) = end_of_item(ahead) else {
        return false;
    };
    while !ahead.is_end() {
        let is_last = ahead.is_punct(b';') || end == End::Braces && ahead.is_group(Delimiter::Brace);
        ahead.skip();
        if is_last {
            *cursor = ahead;
            return true;
        }
    }
    false
}

/// Skips an item's attributes and visibility. Returns false if they're malformed.
fn pass_front(cursor: &mut Cursor<'_>) -> bool {
    loop {
        if cursor.kind() == Kind::OuterDoc {
            cursor.skip();
        } else if cursor.eat(b'#') {
            if cursor.group(Delimiter::Bracket).is_none() {
                return false;
            }
        } else {
            break;
        }
    }
    if cursor.eat_word("pub") {
        cursor.group(Delimiter::Paren);
    }
    true
}

/// The token that ends an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Semicolon,
    /// A closing brace, or alternatively a semicolon.
    Braces,
}

/// How the item that starts with the next keyword ends, or `None` if no item starts here.
fn end_of_item(mut cursor: Cursor<'_>) -> Option<End> {
    if cursor.kind() != Kind::Ident {
        return None;
    }
    let word = cursor.any_ident()?.text;
    match word {
        "use" | "type" | "static" => Some(End::Semicolon),
        "const" if cursor.is_group(Delimiter::Brace) => None,
        "const"
            if !["fn", "unsafe", "async", "extern"]
                .iter()
                .any(|word| cursor.is_word(word)) =>
        {
            Some(End::Semicolon)
        }
        "struct" | "enum" | "trait" | "mod" | "fn" | "impl" => Some(End::Braces),
        "union" if cursor.is_ident() => Some(End::Braces),
        "const" | "unsafe" | "async" | "extern" => {
            let is_other = ["fn", "unsafe", "async", "extern", "impl", "trait", "crate"];
            let follows = is_other.iter().any(|word| cursor.is_word(word));
            (follows || matches!(cursor.kind(), Kind::Literal(_))).then_some(End::Braces)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    #[test]
    fn finds_items_in_bodies() {
        for (body, expected) in [
            ("1", &[][..]),
            ("use a::{b, c}; b()", &["use a::{b, c};"]),
            (
                "/// Doc.\n#[derive(A)] pub(crate) struct B<T> where T: C { x: [u8; 3] } struct D(i32); B::f()",
                &[
                    "/// Doc.\n#[derive(A)] pub(crate) struct B<T> where T: C { x: [u8; 3] }",
                    "struct D(i32);",
                ],
            ),
            (
                "let x = S { a: 1 }; const N: usize = { 3 }; if x { y } enum E { A } type T = [u8; 2]; z",
                &["const N: usize = { 3 };", "enum E { A }", "type T = [u8; 2];"],
            ),
            (
                "const fn f() -> i32 { 1 } unsafe fn g() {} impl A for B {} async fn h() {} static S: A = A {}; x",
                &[
                    "const fn f() -> i32 { 1 }",
                    "unsafe fn g() {}",
                    "impl A for B {}",
                    "async fn h() {}",
                    "static S: A = A {};",
                ],
            ),
            ("return x; struct Late {}", &["struct Late {}"]),
            (
                "let a = { struct Inner; 1 }; const { 1 }; unsafe { f() }; r#use; union(a); #[cfg(x)] f();",
                &[],
            ),
            (
                "union U { a: i32 } extern \"C\" fn f() {} struct Open",
                &["union U { a: i32 }", "extern \"C\" fn f() {}"],
            ),
        ] {
            let tokens = lex(body).expect("tokens");
            let found = find_local_items(tokens.cursor());
            let found: Vec<&str> = found.into_iter().map(|span| &body[span.range()]).collect();
            assert_eq!(found, expected, "{body}");
        }
    }
}
