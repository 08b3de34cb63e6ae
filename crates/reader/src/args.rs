//! Attribute arguments, as in `#[serde(rename = "a", skip)]`.
//!
//! An argument is `name`, `name = value`, `name(arguments)` or a literal.

use serde_json::{Map, Number, Value};

use crate::expr::{Expr, ExprKind};
use crate::token::{
    Cursor, Delimiter, Kind, LiteralKind, char_value, float_value, integer_value, text_value,
};
use crate::{Diagnostic, Span};

/// The arguments of an attribute or macro call.
#[derive(Clone, Debug, Default)]
pub struct Args<'a> {
    /// All arguments, or only those before a malformed one.
    pub list: Vec<Arg<'a>>,
    /// The error in the first malformed argument.
    pub malformed: Option<Diagnostic>,
}

/// One argument.
#[derive(Clone, Debug)]
pub struct Arg<'a> {
    /// The name. Empty for a bare literal.
    pub name: &'a str,
    /// Location of the name or of the bare literal.
    pub span: Span,
    /// The value.
    pub value: ArgValue<'a>,
}

/// The value of an argument.
#[derive(Clone, Debug)]
pub enum ArgValue<'a> {
    /// `name`.
    Flag,
    /// `name = literal`, or a bare literal.
    Literal(Literal),
    /// `name = expression`, for anything but a literal.
    Expr(Box<Expr<'a>>),
    /// `name(…)`.
    List(Vec<Arg<'a>>),
}

/// A literal, an array of literals, or a map of literals.
#[derive(Clone, Debug)]
pub struct Literal {
    /// The literal as JSON. Characters become strings.
    pub value: Value,
    /// Location of the literal.
    pub span: Span,
}

fn list<'a>(cursor: &mut Cursor<'a>, args: &mut Vec<Arg<'a>>) -> Result<(), Diagnostic> {
    while !cursor.is_end() {
        args.push(arg(cursor)?);
        if !cursor.is_end() {
            cursor.expect(b',')?;
        }
    }
    Ok(())
}

fn arg<'a>(cursor: &mut Cursor<'a>) -> Result<Arg<'a>, Diagnostic> {
    let start = *cursor;
    let Some(ident) = cursor.any_ident() else {
        let literal = literal(cursor)?;
        // schemars' own syntax, `extend("x-key" = value)`.
        if literal.value.is_string() && cursor.is_punct(b'=') {
            let name = start.text_of(literal.span).trim_matches('"');
            cursor.skip();
            let value = value(cursor)?;
            let span = literal.span;
            return Ok(Arg { name, span, value });
        }
        return Ok(Arg {
            name: "",
            span: literal.span,
            value: ArgValue::Literal(literal),
        });
    };
    let mut name = ident.text;
    // serde doesn't use paths here, but accept them in order to read the rest of the attribute.
    while cursor.eat_pair(b':', b':') {
        if cursor.any_ident().is_none() {
            return Err(cursor.expected("identifier"));
        }
        name = start.text_of(cursor.span_since(start));
    }
    let value = if cursor.eat(b'=') {
        value(cursor)?
    } else if let Some(mut content) = cursor.group(Delimiter::Paren) {
        let mut args = Vec::new();
        list(&mut content, &mut args)?;
        ArgValue::List(args)
    } else {
        ArgValue::Flag
    };
    Ok(Arg {
        name,
        span: ident.span,
        value,
    })
}

fn value<'a>(cursor: &mut Cursor<'a>) -> Result<ArgValue<'a>, Diagnostic> {
    let start = *cursor;
    match literal(cursor) {
        Ok(literal) if cursor.is_end() || cursor.is_punct(b',') => Ok(ArgValue::Literal(literal)),
        // No attribute accepts a block, so it was meant to be a map.
        Err(error) if start.is_group(Delimiter::Brace) => Err(error),
        attempt => {
            *cursor = start;
            let expr = Expr::read(cursor)?;
            match (attempt, &expr.kind) {
                (Err(_), ExprKind::Array(items)) if items.iter().any(Expr::is_json) => {
                    Ok(ArgValue::Expr(Box::new(expr)))
                }
                (Err(error), ExprKind::Literal(_) | ExprKind::Array(_)) => Err(error),
                (Err(error), ExprKind::Other) if is_literal(start, *cursor) => Err(error),
                (Ok(_), ExprKind::Other) if !continues(start) => {
                    // In `1 b`, a comma is missing after the literal. Return the literal, and let
                    // the caller report the rest.
                    *cursor = start;
                    let literal = literal(cursor)?;
                    Ok(ArgValue::Literal(literal))
                }
                _ => Ok(match expr.value() {
                    Ok(value) => ArgValue::Literal(Literal {
                        value,
                        span: expr.span,
                    }),
                    Err(_) => ArgValue::Expr(Box::new(expr)),
                }),
            }
        }
    }
}

fn is_literal(mut start: Cursor<'_>, behind: Cursor<'_>) -> bool {
    start.eat(b'-');
    start.literal().is_some() && start.is_at(behind)
}

/// Returns true if the next literal is just the start of an expression, as in `1 + 2`.
fn continues(mut start: Cursor<'_>) -> bool {
    start.eat(b'-');
    start.skip();
    matches!(start.kind(), Kind::Punct(_)) || start.is_word("as")
}

fn literal(cursor: &mut Cursor<'_>) -> Result<Literal, Diagnostic> {
    let start = *cursor;
    let value = literal_value(cursor)?;
    Ok(Literal {
        value,
        span: cursor.span_since(start),
    })
}

const WANTED: &str = "expected a name or a literal: a string, a number, `true`, `[…]` or `{ \"key\": … }`";

/// Parses a literal as JSON. May also be an array or map of literals.
pub(crate) fn literal_value(cursor: &mut Cursor<'_>) -> Result<Value, Diagnostic> {
    if let Some(items) = cursor.group(Delimiter::Bracket) {
        return array(items);
    }
    if let Some(entries) = cursor.group(Delimiter::Brace) {
        return map(entries);
    }
    let sign = if cursor.eat(b'-') { "-" } else { "" };
    let at = cursor.span();
    if cursor.kind() == Kind::Ident && sign.is_empty() {
        if cursor.eat_word("true") {
            return Ok(Value::Bool(true));
        }
        if cursor.eat_word("false") {
            return Ok(Value::Bool(false));
        }
        if cursor.eat_word("null") {
            return Ok(Value::Null);
        }
    }
    let Some((kind, text)) = cursor.literal() else {
        return Err(Diagnostic::error(at, WANTED));
    };
    match kind {
        LiteralKind::Integer => integer(text, sign, at),
        LiteralKind::Float => fraction(text, sign, at),
        _ if !sign.is_empty() => Err(Diagnostic::error(at, "expected a number after `-`")),
        LiteralKind::Text => text_value(text)
            .map(|text| Value::String(text.into_owned()))
            .ok_or_else(|| Diagnostic::error(at, "invalid escape or suffix in a string literal")),
        LiteralKind::Char => char_value(text)
            .map(|letter| Value::String(letter.to_string()))
            .ok_or_else(|| Diagnostic::error(at, "invalid character literal")),
        LiteralKind::Bytes => Err(Diagnostic::error(at, "this literal has no JSON form")),
    }
}

fn array(mut items: Cursor<'_>) -> Result<Value, Diagnostic> {
    let mut values = Vec::new();
    while !items.is_end() {
        values.push(literal_value(&mut items)?);
        if !items.is_end() {
            items.expect(b',')?;
        }
    }
    Ok(Value::Array(values))
}

fn map(mut entries: Cursor<'_>) -> Result<Value, Diagnostic> {
    let mut values = Map::new();
    while !entries.is_end() {
        let at = entries.span();
        let key = match entries.literal() {
            Some((LiteralKind::Text, key)) => text_value(key),
            _ => None,
        };
        let Some(key) = key else {
            return Err(Diagnostic::error(at, "expected `\"key\": value`"));
        };
        entries.expect(b':')?;
        let value = literal_value(&mut entries)?;
        if values.contains_key(&*key) {
            return Err(Diagnostic::error(at, format!("duplicate key \"{key}\"")));
        }
        values.insert(key.into_owned(), value);
        if !entries.is_end() {
            entries.expect(b',')?;
        }
    }
    Ok(Value::Object(values))
}

fn integer(text: &str, sign: &str, at: Span) -> Result<Value, Diagnostic> {
    let size = integer_value(text);
    let number = if sign.is_empty() {
        size.and_then(|size| u64::try_from(size).ok()).map(Number::from)
    } else {
        size.and_then(|size| i64::try_from(-i128::try_from(size).ok()?).ok())
            .map(Number::from)
    };
    number
        .map(Value::Number)
        .ok_or_else(|| Diagnostic::error(at, "the number does not fit into 64 bits"))
}

fn fraction(text: &str, sign: &str, at: Span) -> Result<Value, Diagnostic> {
    float_value(text, sign)
        .and_then(Number::from_f64)
        .map(Value::Number)
        .ok_or_else(|| Diagnostic::error(at, "the number is not finite"))
}

impl<'a> Args<'a> {
    /// Parses arguments up to the end, or up to a malformed one.
    pub fn read(mut cursor: Cursor<'a>) -> Self {
        let mut args = Vec::new();
        let malformed = list(&mut cursor, &mut args).err();
        Args {
            list: args,
            malformed,
        }
    }
}

impl Arg<'_> {
    /// Returns the value of `name = literal`, or the bare literal.
    pub fn literal(&self) -> Option<&Literal> {
        match &self.value {
            ArgValue::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// Location of the value, or of the name if there's no value.
    pub fn value_span(&self) -> Span {
        match &self.value {
            ArgValue::Literal(literal) => literal.span,
            ArgValue::Expr(expr) => expr.span,
            ArgValue::Flag | ArgValue::List(_) => self.span,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::token::lex;

    fn check(tokens: &str, expected: Result<Value, &str>) {
        let source = lex(tokens).expect("tokens");
        let Args {
            list: args,
            malformed,
        } = Args::read(source.cursor());
        match expected {
            Ok(value) => {
                assert!(malformed.is_none(), "{tokens}: {malformed:?}");
                assert_eq!(shown(&args), value, "{tokens}");
            }
            Err(message) => assert_eq!(malformed.map(|error| error.message).as_deref(), Some(message)),
        }
    }

    fn shown(args: &[Arg<'_>]) -> Value {
        args.iter()
            .map(|arg| match &arg.value {
                ArgValue::Flag => json!(arg.name),
                ArgValue::Literal(literal) => json!({ arg.name: literal.value }),
                ArgValue::Expr(expr) => json!({ arg.name: expr.text }),
                ArgValue::List(args) => json!({ arg.name: shown(args) }),
            })
            .collect()
    }

    #[test]
    fn reads_arguments() {
        check("", Ok(json!([])));
        check("a, b,", Ok(json!(["a", "b"])));
        check(
            "a = 1, b = -2, c = -0.5",
            Ok(json!([{"a": 1}, {"b": -2}, {"c": -0.5}])),
        );
        check("a = 18446744073709551615", Ok(json!([{"a": u64::MAX}])));
        check("a = 'x', b = true", Ok(json!([{"a": "x"}, {"b": true}])));
        check(
            "enum = [\"A\", 1, [true]]",
            Ok(json!([{"enum": ["A", 1, [true]]}])),
        );
        check(
            "default = { \"a\": { \"b\": -1 }, }",
            Ok(json!([{"default": {"a": {"b": -1}}}])),
        );
        check(
            "a(b = 1, c(d)), e",
            Ok(json!([{"a": [{"b": 1}, {"c": ["d"]}]}, "e"])),
        );
        check(
            "annotation(\"k\", \"v\")",
            Ok(json!([{"annotation": [{"": "k"}, {"": "v"}]}])),
        );
        check("v = Rule::new(\"x\")", Ok(json!([{"v": "Rule::new(\"x\")"}])));
        check("a = 1 + 1, b = u8::MAX", Ok(json!([{"a": 2}, {"b": 255}])));
        check("a = MAX + 1", Ok(json!([{"a": "MAX + 1"}])));
    }

    #[test]
    fn reports_malformed_arguments() {
        check("a = 1 b", Err("expected `,`"));
        check(
            "a = 99999999999999999999",
            Err("the number does not fit into 64 bits"),
        );
        check("a = { b: 1 }", Err("expected `\"key\": value`"));
        check("a = { \"b\": 1, \"b\": 2 }", Err("duplicate key \"b\""));
    }
}
