//! The grammar inside `#[kube(…)]`, `#[crd(…)]`, `#[rbac(…)]` and `#[serde(…)]`: names, values, lists.
//!
//! What a name means is not known here. An argument is `name`, `name = value`, `name(arguments)` or a literal.

use proc_macro2::{Span, TokenStream};
use rbuilder_schema::Origin;
use serde_json::{Map, Number, Value};
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, Ident, Lit, LitFloat, LitInt, Meta, Token, braced, bracketed, parenthesized};

use crate::{Session, SpanId, Spans};

/// One argument.
pub(crate) struct Arg {
    /// Its name; empty for a bare literal.
    pub(crate) name: String,
    /// Where the name is, or the literal.
    pub(crate) span: SpanId,
    pub(crate) value: ArgValue,
}

pub(crate) enum ArgValue {
    /// `name`.
    Flag,
    /// `name = literal`, or a bare literal.
    Literal(Literal),
    /// `name = expression`, where the expression is no literal.
    Expr(Box<Expr>, SpanId),
    /// `name(…)`.
    List(Vec<Arg>),
}

/// A literal, an array of literals, or a map of them.
pub(crate) struct Literal {
    pub(crate) value: Value,
    pub(crate) span: SpanId,
}

/// Reads the arguments of an attribute. `#[name]` has none; `#[name = …]` is an error.
pub(crate) fn of_attribute(attr: &Attribute, session: &mut Session) -> Vec<Arg> {
    match &attr.meta {
        Meta::List(list) => parse(list.tokens.clone(), session),
        Meta::Path(_) => Vec::new(),
        Meta::NameValue(pair) => {
            let span = session.place(pair);
            let name = path_text(&pair.path);
            session.error_help(
                span,
                format!("`{name}` takes arguments"),
                format!("write `#[{name}(…)]`"),
            );
            Vec::new()
        }
    }
}

/// Reads arguments; what cannot be read is reported, and what came before it is returned.
pub(crate) fn parse(tokens: TokenStream, session: &mut Session) -> Vec<Arg> {
    let mut args = Vec::new();
    let spans = &mut session.spans;
    let parsed = (|input: ParseStream<'_>| list(input, spans, &mut args)).parse2(tokens);
    if let Err(error) = parsed {
        session.syn_error(&error);
    }
    args
}

/// A path as it is written, without spaces.
pub(crate) fn path_text(path: &syn::Path) -> String {
    let segments: Vec<_> = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect();
    segments.join("::")
}

fn list(input: ParseStream<'_>, spans: &mut Spans, args: &mut Vec<Arg>) -> syn::Result<()> {
    while !input.is_empty() {
        args.push(arg(input, spans)?);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

fn arg(input: ParseStream<'_>, spans: &mut Spans) -> syn::Result<Arg> {
    if !input.peek(Ident::peek_any) {
        let literal = literal(input, spans)?;
        return Ok(Arg {
            name: String::new(),
            span: literal.span,
            value: ArgValue::Literal(literal),
        });
    }
    let ident = input.call(Ident::parse_any)?;
    let span = spans.add(&ident);
    let mut name = ident.unraw().to_string();
    // serde and others have no paths here, but `a::b` must not make the whole attribute unreadable.
    while input.peek(Token![::]) {
        input.parse::<Token![::]>()?;
        name = format!("{name}::{}", input.call(Ident::parse_any)?);
    }
    let value = if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        value(input, spans)?
    } else if input.peek(syn::token::Paren) {
        let content;
        parenthesized!(content in input);
        let mut args = Vec::new();
        list(&content, spans, &mut args)?;
        ArgValue::List(args)
    } else {
        ArgValue::Flag
    };
    Ok(Arg { name, span, value })
}

fn value(input: ParseStream<'_>, spans: &mut Spans) -> syn::Result<ArgValue> {
    let fork = input.fork();
    match literal(&fork, spans) {
        Ok(literal) if fork.is_empty() || fork.peek(Token![,]) => {
            input.advance_to(&fork);
            Ok(ArgValue::Literal(literal))
        }
        // A block is never wanted here, so the complaint about a map is the better one.
        Err(error) if input.peek(syn::token::Brace) => Err(error),
        attempt => {
            let expr: Expr = input.parse()?;
            match (attempt, &expr) {
                (Err(error), Expr::Lit(_) | Expr::Array(_)) => Err(error),
                _ => {
                    let span = spans.add(&expr);
                    Ok(ArgValue::Expr(Box::new(expr), span))
                }
            }
        }
    }
}

fn literal(input: ParseStream<'_>, spans: &mut Spans) -> syn::Result<Literal> {
    let start = input.span();
    let (value, end) = if input.peek(syn::token::Bracket) {
        array(input, spans)?
    } else if input.peek(syn::token::Brace) {
        map(input, spans)?
    } else if input.peek(Token![-]) {
        input.parse::<Token![-]>()?;
        let lit = input.parse()?;
        (negative(&lit)?, lit.span())
    } else {
        let lit = input
            .parse::<Lit>()
            .map_err(|error| syn::Error::new(error.span(), WANTED))?;
        (positive(&lit)?, lit.span())
    };
    Ok(Literal {
        value,
        span: spans.add_pair(start, end),
    })
}

const WANTED: &str = "expected a name or a literal: text, a number, `true`, `[…]` or `{ \"key\": … }`";

fn array(input: ParseStream<'_>, spans: &mut Spans) -> syn::Result<(Value, Span)> {
    let content;
    let brackets = bracketed!(content in input);
    let mut items = Vec::new();
    while !content.is_empty() {
        items.push(literal(&content, spans)?.value);
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    Ok((Value::Array(items), brackets.span.close()))
}

fn map(input: ParseStream<'_>, spans: &mut Spans) -> syn::Result<(Value, Span)> {
    let content;
    let braces = braced!(content in input);
    let mut entries = Map::new();
    while !content.is_empty() {
        let key: syn::LitStr = content
            .parse()
            .map_err(|error| syn::Error::new(error.span(), "expected `\"key\": value`"))?;
        content.parse::<Token![:]>()?;
        let value = literal(&content, spans)?.value;
        if entries.insert(key.value(), value).is_some() {
            return Err(syn::Error::new(
                key.span(),
                format!("the key \"{}\" is written twice", key.value()),
            ));
        }
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    Ok((Value::Object(entries), braces.span.close()))
}

fn positive(lit: &Lit) -> syn::Result<Value> {
    match lit {
        Lit::Str(text) => Ok(Value::String(text.value())),
        Lit::Char(letter) => Ok(Value::String(letter.value().to_string())),
        Lit::Bool(truth) => Ok(Value::Bool(truth.value)),
        Lit::Int(int) => integer(int, ""),
        Lit::Float(float) => fraction(float, ""),
        other => Err(syn::Error::new_spanned(
            other,
            "a literal of this kind has no JSON form",
        )),
    }
}

fn negative(lit: &Lit) -> syn::Result<Value> {
    match lit {
        Lit::Int(int) => integer(int, "-"),
        Lit::Float(float) => fraction(float, "-"),
        other => Err(syn::Error::new_spanned(other, "only a number can be negative")),
    }
}

fn integer(int: &LitInt, sign: &str) -> syn::Result<Value> {
    let text = format!("{sign}{}", int.base10_digits());
    let number = match text.parse::<i64>() {
        Ok(number) => Number::from(number),
        Err(_) => Number::from(
            text.parse::<u64>()
                .map_err(|_| syn::Error::new_spanned(int, "the number does not fit into 64 bits"))?,
        ),
    };
    Ok(Value::Number(number))
}

fn fraction(float: &LitFloat, sign: &str) -> syn::Result<Value> {
    let number = format!("{sign}{}", float.base10_digits())
        .parse::<f64>()
        .ok()
        .and_then(Number::from_f64);
    number
        .map(Value::Number)
        .ok_or_else(|| syn::Error::new_spanned(float, "the number is not finite"))
}

impl Arg {
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
        let count = number.as_u64();
        if count.is_none() {
            let message = format!("`{}` counts: it cannot be {number}", self.name);
            session.error_help(self.value_span(), message, "write a whole number, 0 or more");
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
    pub(crate) fn list<'a>(&'a self, session: &mut Session) -> Option<&'a [Arg]> {
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
    pub(crate) fn value_span(&self) -> SpanId {
        match &self.value {
            ArgValue::Literal(literal) => literal.span,
            ArgValue::Expr(_, span) => *span,
            ArgValue::Flag | ArgValue::List(_) => self.span,
        }
    }

    /// Where the argument is, for rules that it stands for.
    pub(crate) fn origin(&self) -> Origin {
        origin(self.span)
    }

    fn wrong<T>(&self, session: &mut Session, wanted: &str, sample: &str) -> Option<T> {
        let message = format!("`{}` wants {wanted}", self.name);
        session.error_help(
            self.value_span(),
            message,
            format!("write `{} = {sample}`", self.name),
        );
        None
    }
}

/// A place, as the schema crate carries it.
pub(crate) fn origin(span: SpanId) -> Origin {
    Origin {
        file: 0,
        span: Some((span.0, span.0)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(tokens: &str, expected: Result<Value, &str>) {
        let mut session = Session::default();
        let args = parse(tokens.parse().expect("tokens"), &mut session);
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

    fn shown(args: &[Arg]) -> Value {
        args.iter()
            .map(|arg| match &arg.value {
                ArgValue::Flag => json!(arg.name),
                ArgValue::Literal(literal) => json!({ &arg.name: literal.value }),
                ArgValue::Expr(expr, _) => json!({ &arg.name: quote::quote!(#expr).to_string() }),
                ArgValue::List(args) => json!({ &arg.name: shown(args) }),
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
        check("v = Rule::new(\"x\")", Ok(json!([{"v": "Rule :: new (\"x\")"}])));
        check("a = 1 + 1", Ok(json!([{"a": "1 + 1"}])));
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
