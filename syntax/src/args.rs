//! The grammar inside `#[kube(…)]`, `#[crd(…)]`, `#[rbac(…)]` and `#[serde(…)]`: names, values, lists.
//!
//! What a name means is not known here. An argument is `name`, `name = value`, `name(arguments)` or a literal.

use rbuilder_schema::Origin;
use serde_json::{Map, Number, Value};

use crate::attribute::{Attribute, Form};
use crate::constant::{self, Unknown};
use crate::expr::{self, Expr, ExprKind};
use crate::token::{
    Cursor, Delimiter, Kind, LiteralKind, Malformed, char_value, float_value, integer_value, text_value,
};
use crate::{Session, Span};

/// One argument.
#[derive(Debug)]
pub(crate) struct Arg<'a> {
    /// Its name; empty for a bare literal.
    pub(crate) name: &'a str,
    /// Where the name is, or the literal.
    pub(crate) span: Span,
    pub(crate) value: ArgValue<'a>,
}

#[derive(Debug)]
pub(crate) enum ArgValue<'a> {
    /// `name`.
    Flag,
    /// `name = literal`, or a bare literal.
    Literal(Literal),
    /// `name = expression`, where the expression is no literal.
    Expr(Box<Expr<'a>>),
    /// `name(…)`.
    List(Vec<Arg<'a>>),
}

/// A literal, an array of literals, or a map of them.
#[derive(Debug)]
pub(crate) struct Literal {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

/// Reads the arguments of an attribute. `#[name]` has none; `#[name = …]` is an error.
pub(crate) fn of_attribute<'a>(attr: &Attribute<'a>, session: &mut Session) -> Vec<Arg<'a>> {
    match attr.form() {
        Form::List(list) => parse(list, session),
        Form::Path => Vec::new(),
        Form::Value(_) => {
            let name = attr.segments().collect::<Vec<_>>().join("::");
            session.error_help(
                attr.span(),
                format!("`{name}` takes arguments"),
                format!("write `#[{name}(…)]`"),
            );
            Vec::new()
        }
    }
}

/// Reads arguments; what cannot be read is reported, and what came before it is returned.
pub(crate) fn parse<'a>(mut cursor: Cursor<'a>, session: &mut Session) -> Vec<Arg<'a>> {
    let mut args = Vec::new();
    if let Err(error) = list(&mut cursor, &mut args) {
        session.error(error.span, error.message);
    }
    args
}

fn list<'a>(cursor: &mut Cursor<'a>, args: &mut Vec<Arg<'a>>) -> Result<(), Malformed> {
    while !cursor.is_end() {
        args.push(arg(cursor)?);
        if !cursor.is_end() {
            cursor.expect(b',')?;
        }
    }
    Ok(())
}

fn arg<'a>(cursor: &mut Cursor<'a>) -> Result<Arg<'a>, Malformed> {
    let start = *cursor;
    let Some(ident) = cursor.any_ident() else {
        let literal = literal(cursor)?;
        // `extend("x-key" = value)`, as schemars writes it.
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
    // serde and others have no paths here, but `a::b` must not make the whole attribute unreadable.
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

fn value<'a>(cursor: &mut Cursor<'a>) -> Result<ArgValue<'a>, Malformed> {
    let start = *cursor;
    match literal(cursor) {
        Ok(literal) if cursor.is_end() || cursor.is_punct(b',') => Ok(ArgValue::Literal(literal)),
        // A block is never wanted here, so the complaint about a map is the better one.
        Err(error) if start.is_group(Delimiter::Brace) => Err(error),
        attempt => {
            *cursor = start;
            let expr = expr::read(cursor)?;
            match (attempt, &expr.kind) {
                (Err(error), ExprKind::Literal(_) | ExprKind::Array(_)) => Err(error),
                (Err(error), ExprKind::Other) if is_literal(start, *cursor) => Err(error),
                (Ok(_), ExprKind::Other) if !continues(start) => {
                    // `1 b`: the literal was meant, and a comma is missing behind it.
                    *cursor = start;
                    let literal = literal(cursor)?;
                    Ok(ArgValue::Literal(literal))
                }
                _ => Ok(match constant::value(&expr) {
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

/// Whether all that was read is one token, and that is a literal.
fn is_literal(mut start: Cursor<'_>, behind: Cursor<'_>) -> bool {
    start.eat(b'-');
    start.literal().is_some() && start.is_at(behind)
}

/// Whether an operator stands behind the literal that is next.
fn continues(mut start: Cursor<'_>) -> bool {
    start.eat(b'-');
    start.skip();
    matches!(start.kind(), Kind::Punct(_)) || start.is_word("as")
}

fn literal(cursor: &mut Cursor<'_>) -> Result<Literal, Malformed> {
    let start = *cursor;
    let value = literal_value(cursor)?;
    Ok(Literal {
        value,
        span: cursor.span_since(start),
    })
}

const WANTED: &str = "expected a name or a literal: text, a number, `true`, `[…]` or `{ \"key\": … }`";

/// Reads a literal, an array of them or a map of them as JSON.
pub(crate) fn literal_value(cursor: &mut Cursor<'_>) -> Result<Value, Malformed> {
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
        return Err(Malformed::new(at, WANTED));
    };
    match kind {
        LiteralKind::Integer => integer(text, sign, at),
        LiteralKind::Float => fraction(text, sign, at),
        _ if !sign.is_empty() => Err(Malformed::new(at, "only a number can be negative")),
        LiteralKind::Text => text_value(text)
            .map(|text| Value::String(text.into_owned()))
            .ok_or_else(|| Malformed::new(at, "this text has an escape or a suffix that Rust does not know")),
        LiteralKind::Char => char_value(text)
            .map(|letter| Value::String(letter.to_string()))
            .ok_or_else(|| Malformed::new(at, "this is no character")),
        LiteralKind::Bytes => Err(Malformed::new(at, "a literal of this kind has no JSON form")),
    }
}

fn array(mut items: Cursor<'_>) -> Result<Value, Malformed> {
    let mut values = Vec::new();
    while !items.is_end() {
        values.push(literal_value(&mut items)?);
        if !items.is_end() {
            items.expect(b',')?;
        }
    }
    Ok(Value::Array(values))
}

fn map(mut entries: Cursor<'_>) -> Result<Value, Malformed> {
    let mut values = Map::new();
    while !entries.is_end() {
        let at = entries.span();
        let key = match entries.literal() {
            Some((LiteralKind::Text, key)) => text_value(key),
            _ => None,
        };
        let Some(key) = key else {
            return Err(Malformed::new(at, "expected `\"key\": value`"));
        };
        entries.expect(b':')?;
        let value = literal_value(&mut entries)?;
        if values.contains_key(&*key) {
            return Err(Malformed::new(at, format!("the key \"{key}\" is written twice")));
        }
        values.insert(key.into_owned(), value);
        if !entries.is_end() {
            entries.expect(b',')?;
        }
    }
    Ok(Value::Object(values))
}

fn integer(text: &str, sign: &str, at: Span) -> Result<Value, Malformed> {
    let size = integer_value(text);
    let number = if sign.is_empty() {
        size.and_then(|size| u64::try_from(size).ok()).map(Number::from)
    } else {
        size.and_then(|size| i64::try_from(-i128::try_from(size).ok()?).ok())
            .map(Number::from)
    };
    number
        .map(Value::Number)
        .ok_or_else(|| Malformed::new(at, "the number does not fit into 64 bits"))
}

fn fraction(text: &str, sign: &str, at: Span) -> Result<Value, Malformed> {
    float_value(text, sign)
        .and_then(Number::from_f64)
        .map(Value::Number)
        .ok_or_else(|| Malformed::new(at, "the number is not finite"))
}

impl<'a> Arg<'a> {
    /// The text of `name = "…"`; anything else is reported.
    pub(crate) fn text(&self, session: &mut Session) -> Option<String> {
        match self.literal() {
            Some(Literal {
                value: Value::String(text),
                ..
            }) => Some(text.clone()),
            _ => self.wrong(session, "a text", "\"…\""),
        }
    }

    /// The truth of `name = true|false`; `name` alone is true.
    pub(crate) fn truth(&self, session: &mut Session) -> Option<bool> {
        match (&self.value, self.literal()) {
            (ArgValue::Flag, _) => Some(true),
            (
                _,
                Some(Literal {
                    value: Value::Bool(truth),
                    ..
                }),
            ) => Some(*truth),
            _ => self.wrong(session, "`true` or `false`", "true"),
        }
    }

    /// Checks that the argument is a bare name.
    pub(crate) fn flag(&self, session: &mut Session) -> bool {
        let flag = matches!(self.value, ArgValue::Flag);
        if !flag {
            let message = format!("`{}` takes no value", self.name);
            session.error_help(self.span, message, format!("write `{}`", self.name));
        }
        flag
    }

    /// The number of `name = 1`.
    pub(crate) fn number(&self, session: &mut Session) -> Option<Number> {
        match self.literal() {
            Some(Literal {
                value: Value::Number(number),
                ..
            }) => Some(number.clone()),
            _ => self.wrong(session, "a number", "1"),
        }
    }

    /// The count of `name = 1`: not negative, not a fraction.
    pub(crate) fn count(&self, session: &mut Session) -> Option<u64> {
        let number = self.number(session)?;
        // The API server counts in Go's `int64`.
        let count = number.as_u64().filter(|count| i64::try_from(*count).is_ok());
        if count.is_none() {
            let message = format!("`{}` counts: it cannot be {number}", self.name);
            let help = match number.is_u64() {
                true => "write at most 9223372036854775807, or leave it out",
                false => "write a whole number, 0 or more",
            };
            session.error_help(self.value_span(), message, help);
        }
        count
    }

    /// The texts of `name = ["a", "b"]`; a single text counts as a list of one.
    pub(crate) fn texts(&self, session: &mut Session) -> Option<Vec<String>> {
        let texts = match self.literal().map(|literal| &literal.value) {
            Some(Value::String(text)) => Some(vec![text.clone()]),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        texts.or_else(|| self.wrong(session, "a list of texts", "[\"…\", \"…\"]"))
    }

    /// Any literal.
    pub(crate) fn any(&self, session: &mut Session) -> Option<Value> {
        match self.literal() {
            Some(literal) => Some(literal.value.clone()),
            None => self.wrong(session, "a literal", "…"),
        }
    }

    /// The arguments of `name(…)`.
    pub(crate) fn list(&self, session: &mut Session) -> Option<&[Arg<'a>]> {
        match &self.value {
            ArgValue::List(args) => Some(args),
            _ => {
                let message = format!("`{}` takes arguments in parentheses", self.name);
                session.error_help(self.value_span(), message, format!("write `{}(…)`", self.name));
                None
            }
        }
    }

    pub(crate) fn literal(&self) -> Option<&Literal> {
        match &self.value {
            ArgValue::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// Where the value is; the name where there is none.
    pub(crate) fn value_span(&self) -> Span {
        match &self.value {
            ArgValue::Literal(literal) => literal.span,
            ArgValue::Expr(expr) => expr.span,
            ArgValue::Flag | ArgValue::List(_) => self.span,
        }
    }

    /// Where the argument is, for rules that it stands for.
    pub(crate) fn origin(&self) -> Origin {
        origin(self.span)
    }

    fn wrong<T>(&self, session: &mut Session, wanted: &str, sample: &str) -> Option<T> {
        if let ArgValue::Expr(expr) = &self.value
            && let Err(unknown) = constant::value(expr)
        {
            let (message, help) = match unknown {
                Unknown::Name(name) => (
                    format!("`{name}` is a name, and markers are read without running the program"),
                    "write the value: literals, `+ - * / % << >>`, and `u16::MAX` and the like are understood",
                ),
                Unknown::Part(text) if is_arithmetic(expr) => (format!("`{text}` has no value"), ""),
                Unknown::Part(_) => (format!("`{}` wants {wanted}", self.name), ""),
            };
            let help = if help.is_empty() {
                format!("write `{} = {sample}`", self.name)
            } else {
                help.to_owned()
            };
            session.error_help(self.value_span(), message, help);
            return None;
        }
        let message = format!("`{}` wants {wanted}", self.name);
        session.error_help(
            self.value_span(),
            message,
            format!("write `{} = {sample}`", self.name),
        );
        None
    }
}

fn is_arithmetic(expr: &Expr<'_>) -> bool {
    matches!(expr.kind, ExprKind::Binary(..) | ExprKind::Negative(_))
}

/// A place, as the schema crate carries it.
pub(crate) fn origin(span: Span) -> Origin {
    Origin {
        file: 0,
        span: Some((span.start, span.end)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::token::lex;

    fn check(tokens: &str, expected: Result<Value, &str>) {
        let mut session = Session::default();
        let source = lex(tokens).expect("tokens");
        let args = parse(source.cursor(), &mut session);
        let complaints = session.diagnostics.into_vec();
        match expected {
            Ok(value) => {
                assert!(complaints.is_empty(), "{tokens}: {complaints:?}");
                assert_eq!(shown(&args), value, "{tokens}");
            }
            Err(message) => assert_eq!(
                complaints.first().map(|first| first.message.as_str()),
                Some(message)
            ),
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
    fn forms() {
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
    fn mistakes() {
        check("a = 1 b", Err("expected `,`"));
        check(
            "a = 99999999999999999999",
            Err("the number does not fit into 64 bits"),
        );
        check("a = { b: 1 }", Err("expected `\"key\": value`"));
        check(
            "a = { \"b\": 1, \"b\": 2 }",
            Err("the key \"b\" is written twice"),
        );
    }
}
