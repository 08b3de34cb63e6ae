//! Arguments of `serde_json::json!` and similar macros.

use crate::token::{Cursor, Delimiter, MAX_DEPTH, warn_too_deep};
use crate::{Diagnostic, Expr};

/// JSON with embedded expressions.
#[derive(Clone, Debug)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `[a, b]`.
    List(Vec<Json<'a>>),
    /// `{ "key": value }`. Keys are expressions.
    Object(Vec<(Expr<'a>, Json<'a>)>),
    /// An expression.
    Value(Expr<'a>),
}

impl<'a> Json<'a> {
    /// Reads the content of the macro's delimiters.
    ///
    /// # Errors
    ///
    /// Returns an error if it isn't JSON with expressions, or is nested deeper than [`MAX_DEPTH`].
    pub fn read(mut cursor: Cursor<'a>) -> Result<Self, Diagnostic> {
        let value = nested(&mut cursor, 0)?;
        if cursor.is_end() {
            Ok(value)
        } else {
            Err(cursor.expected("the end of the value"))
        }
    }
}

fn nested<'a>(cursor: &mut Cursor<'a>, depth: usize) -> Result<Json<'a>, Diagnostic> {
    if depth > MAX_DEPTH {
        return Err(warn_too_deep(cursor.span()));
    }
    if let Some(mut entries) = cursor.group(Delimiter::Brace) {
        let mut found = Vec::new();
        while !entries.is_end() {
            let key = Expr::read_operand(&mut entries)?;
            entries.expect(b':')?;
            found.push((key, nested(&mut entries, depth + 1)?));
            if !entries.is_end() {
                entries.expect(b',')?;
            }
        }
        return Ok(Json::Object(found));
    }
    if let Some(mut items) = cursor.group(Delimiter::Bracket) {
        let mut found = Vec::new();
        while !items.is_end() {
            found.push(nested(&mut items, depth + 1)?);
            if !items.is_end() {
                items.expect(b',')?;
            }
        }
        return Ok(Json::List(found));
    }
    let mut ahead = *cursor;
    if ahead.eat_word("null") && (ahead.is_end() || ahead.is_punct(b',')) {
        *cursor = ahead;
        return Ok(Json::Null);
    }
    Expr::read(cursor).map(Json::Value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    fn shown(json: &Json<'_>) -> String {
        match json {
            Json::Null => "null".to_owned(),
            Json::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
            Json::Object(entries) => {
                let entries = entries.iter();
                let entries: Vec<_> = entries
                    .map(|(key, value)| format!("{}: {}", key.text, shown(value)))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
            Json::Value(expr) => expr.text.to_owned(),
        }
    }

    #[test]
    fn reads_json() {
        for (text, expected) in [
            (
                "{\"a\": [1, -2.5, true, null,], }",
                Some("{\"a\": [1, -2.5, true, null]}"),
            ),
            (
                "{\"a\": f::<T>(x).y(), (KEY): {}}",
                Some("{\"a\": f::<T>(x).y(), (KEY): {}}"),
            ),
            ("\"text\"", Some("\"text\"")),
            ("{\"a\" 1}", None),
            ("{\"a\": 1} 2", None),
        ] {
            let tokens = lex(text).expect("tokens");
            let found = Json::read(tokens.cursor()).ok();
            assert_eq!(found.as_ref().map(shown).as_deref(), expected, "{text}");
        }
    }
}
