//! Function bodies made of straight-line statements, i.e. without control flow.

use crate::expr::{Expr, comparison};
use crate::local::pass_item;
use crate::token::{Cursor, Kind};
use crate::{Diagnostic, types};

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement<'a> {
    /// `let mut name: Type = value;`.
    Let(&'a str, Expr<'a>),
    /// `target = value;`.
    Assign(Expr<'a>, Expr<'a>),
    /// `value;`.
    Expr(Expr<'a>),
    /// The value of the block: its last expression, or the operand of `return`.
    Result(Expr<'a>),
    /// An item. The cursor is at its first keyword or attribute.
    Item(Cursor<'a>),
    /// Anything else. The cursor is at the first token.
    Other(Cursor<'a>),
}

/// Reads the statements of a body. Stops after a [`Statement::Result`] or [`Statement::Other`].
///
/// # Errors
///
/// Returns an error if an expression is nested deeper than [`MAX_DEPTH`](crate::token::MAX_DEPTH).
pub fn read_block(mut cursor: Cursor<'_>) -> Result<Vec<Statement<'_>>, Diagnostic> {
    let mut statements = Vec::new();
    while !cursor.is_end() {
        let start = cursor;
        let Some(statement) = statement(&mut cursor)? else {
            statements.push(Statement::Other(start));
            break;
        };
        let is_last = matches!(statement, Statement::Result(_));
        statements.push(statement);
        if is_last {
            break;
        }
    }
    Ok(statements)
}

fn statement<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Statement<'a>>, Diagnostic> {
    let start = *cursor;
    if pass_item(cursor) {
        return Ok(Some(Statement::Item(start)));
    }
    if cursor.eat_word("let") {
        return binding(cursor);
    }
    let returns = cursor.eat_word("return");
    let Some(value) = comparison(cursor, 0)? else {
        return Ok(None);
    };
    if cursor.is_end() {
        return Ok(Some(Statement::Result(value)));
    }
    if !returns && cursor.is_punct(b'=') && !cursor.is_pair(b'=', b'=') {
        cursor.skip();
        let assigned = comparison(cursor, 0)?.filter(|_| cursor.is_punct(b';'));
        cursor.skip();
        return Ok(assigned.map(|assigned| Statement::Assign(value, assigned)));
    }
    if !cursor.eat(b';') {
        return Ok(None);
    }
    Ok(Some(if returns {
        Statement::Result(value)
    } else {
        Statement::Expr(value)
    }))
}

fn binding<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Statement<'a>>, Diagnostic> {
    // Patterns such as `(a, b)` aren't supported.
    cursor.eat_word("mut");
    if cursor.kind() == Kind::Open(crate::token::Delimiter::Paren) {
        return Ok(None);
    }
    let Some(name) = cursor.any_ident() else {
        return Ok(None);
    };
    if cursor.is_punct(b':') && !cursor.is_pair(b':', b':') {
        cursor.skip();
        types::pass_type(cursor);
    }
    if !cursor.eat(b'=') {
        return Ok(None);
    }
    let start = *cursor;
    let value = match comparison(cursor, 0)? {
        Some(value) if cursor.is_punct(b';') => value,
        _ => {
            // The value isn't supported, but it may be irrelevant. Keep it as text.
            *cursor = start;
            while !cursor.is_end() && !cursor.is_punct(b';') {
                cursor.skip();
            }
            Expr::other(start, *cursor)
        }
    };
    Ok(cursor.eat(b';').then_some(Statement::Let(name.text, value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    fn check(body: &str, expected: &[&str]) {
        let tokens = lex(body).expect("tokens");
        let found: Vec<String> = read_block(tokens.cursor())
            .expect("statements")
            .iter()
            .map(|statement| match statement {
                Statement::Let(name, value) => format!("let {name} = {}", value.text),
                Statement::Assign(target, value) => format!("{} = {}", target.text, value.text),
                Statement::Expr(value) => format!("{};", value.text),
                Statement::Result(value) => format!("-> {}", value.text),
                Statement::Item(at) => format!("item {}", at.text()),
                Statement::Other(at) => format!("other {}", at.text()),
            })
            .collect();
        assert_eq!(found, expected, "{body}");
    }

    #[test]
    fn reads_statements() {
        check("1", &["-> 1"]);
        check("return f(1);", &["-> f(1)"]);
        check(
            "let mut s: a::S<T> = f::<T>(g).into(); s.x = Some(1); s.y.insert(\"k\", json!({}),); s",
            &[
                "let s = f::<T>(g).into()",
                "s.x = Some(1)",
                "s.y.insert(\"k\", json!({}),);",
                "-> s",
            ],
        );
        check(
            "use a::{b, c}; #[x] struct S {} b! { {\"x\": 1} }",
            &["item use", "item #", "-> b! { {\"x\": 1} }"],
        );
        check(
            "let f = |x| x.y; let g = 1; g",
            &["let f = |x| x.y", "let g = 1", "-> g"],
        );
        check("let x = 1; if x { y } z", &["let x = 1", "other if"]);
        check("for x in y {} z", &["other for"]);
        check("let (a, b) = c; a", &["other let"]);
    }
}
