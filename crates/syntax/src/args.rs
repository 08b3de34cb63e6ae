//! Parses the arguments of `#[kube(…)]`, `#[crd(…)]`, `#[rbac(…)]` and `#[serde(…)]`.
//!
//! The meaning of the names is up to the callers.

use rbuilder_reader::token::Cursor;
pub(crate) use rbuilder_reader::{Arg, ArgValue, Literal};
use rbuilder_reader::{Args, Attribute, Expr, ExprKind, Form, Span, Unknown};
use rbuilder_schema::Origin;
use serde_json::{Number, Value};

use crate::Session;

/// Returns an attribute's arguments and reports syntax errors in them. `#[name]` has no arguments,
/// and `#[name = …]` is an error.
///
/// Several parts of a parse read the same attribute. Only one of them should call this function, so
/// that each error is reported once; the others use [`Attribute::args`].
pub(crate) fn check_args<'t, 'a>(attr: &'t Attribute<'a>, session: &mut Session) -> &'t [Arg<'a>] {
    if let Form::Value(_) = attr.form() {
        let name = attr.segments().collect::<Vec<_>>().join("::");
        session.error_help(
            attr.span(),
            format!("`{name}` takes arguments"),
            format!("write `#[{name}(…)]`"),
        );
    }
    report_malformed(attr.args(), session);
    &attr.args().list
}

/// Like [`check_args`], but leaves it to another caller to report errors.
pub(crate) fn list_args<'t, 'a>(
    attrs: &'t [Attribute<'a>],
    names: &'static [&'static str],
) -> impl Iterator<Item = &'t Arg<'a>> {
    let named = attrs.iter().filter(|attr| names.iter().any(|name| attr.is(name)));
    named.flat_map(|attr| &attr.args().list)
}

/// Returns the arguments. At a syntax error, reports it and returns the preceding ones.
pub(crate) fn parse_args<'a>(cursor: Cursor<'a>, session: &mut Session) -> Vec<Arg<'a>> {
    let args = Args::read(cursor);
    report_malformed(&args, session);
    args.list
}

fn report_malformed(args: &Args<'_>, session: &mut Session) {
    if let Some(error) = &args.malformed {
        session.error(error.place, error.message.clone());
    }
}

/// Reads the value of an argument, or reports a value of the wrong type.
pub(crate) trait ReadArg<'a> {
    /// `name = "…"`
    fn text(&self, session: &mut Session) -> Option<String>;

    /// `name = true`, `name = false`, or just `name`, which is true.
    fn boolean(&self, session: &mut Session) -> Option<bool>;

    /// Just `name`. Returns false after an error.
    fn flag(&self, session: &mut Session) -> bool;

    /// `name = 1`
    fn number(&self, session: &mut Session) -> Option<Number>;

    /// `name = 1`, which must be a non-negative integer.
    fn count(&self, session: &mut Session) -> Option<u64>;

    /// `name = ["a", "b"]`. A single string counts as a list.
    fn texts(&self, session: &mut Session) -> Option<Vec<String>>;

    /// Any literal.
    fn any(&self, session: &mut Session) -> Option<Value>;

    /// `name(…)`
    fn list(&self, session: &mut Session) -> Option<&[Arg<'a>]>;

    /// Returns the location of the argument, for a rule that comes from it.
    fn origin(&self) -> Origin;
}

impl<'a> ReadArg<'a> for Arg<'a> {
    fn text(&self, session: &mut Session) -> Option<String> {
        match self.literal() {
            Some(Literal {
                value: Value::String(text),
                ..
            }) => Some(text.clone()),
            _ => wrong(self, session, "a string literal", "\"…\""),
        }
    }

    fn boolean(&self, session: &mut Session) -> Option<bool> {
        match (&self.value, self.literal()) {
            (ArgValue::Flag, _) => Some(true),
            (
                _,
                Some(Literal {
                    value: Value::Bool(value),
                    ..
                }),
            ) => Some(*value),
            _ => wrong(self, session, "a boolean", "true"),
        }
    }

    fn flag(&self, session: &mut Session) -> bool {
        let flag = matches!(self.value, ArgValue::Flag);
        if !flag {
            let message = format!("`{}` takes no value", self.name);
            session.error_help(self.span, message, format!("write `{}`", self.name));
        }
        flag
    }

    fn number(&self, session: &mut Session) -> Option<Number> {
        match self.literal() {
            Some(Literal {
                value: Value::Number(number),
                ..
            }) => Some(number.clone()),
            Some(Literal {
                value: Value::String(text),
                ..
            }) if text.parse::<Number>().is_ok() => wrong(self, session, "a number", text.trim()),
            _ => wrong(self, session, "a number", "1"),
        }
    }

    fn count(&self, session: &mut Session) -> Option<u64> {
        let number = self.number(session)?;
        // The API server stores counts as Go's `int64`.
        let count = number.as_u64().filter(|count| i64::try_from(*count).is_ok());
        if count.is_none() {
            let name = self.name;
            let is_negative = number.as_f64().is_some_and(|number| number < 0.0);
            let (message, help) = if number.is_u64() {
                let message = format!("`{name}` must be at most 9223372036854775807, found `{number}`");
                (message, "write a smaller number, or remove it")
            } else if is_negative {
                (
                    format!("`{name}` must not be negative"),
                    "write an integer of at least 0",
                )
            } else {
                let message = format!("expected an integer for `{name}`, found `{number}`");
                (message, "write an integer of at least 0")
            };
            session.error_help(self.value_span(), message, help);
        }
        count
    }

    fn texts(&self, session: &mut Session) -> Option<Vec<String>> {
        let texts = match self.literal().map(|literal| &literal.value) {
            Some(Value::String(text)) => Some(vec![text.clone()]),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        texts.or_else(|| wrong(self, session, "a list of string literals", "[\"…\", \"…\"]"))
    }

    fn any(&self, session: &mut Session) -> Option<Value> {
        match self.literal() {
            Some(literal) => Some(literal.value.clone()),
            None => wrong(self, session, "a literal", "…"),
        }
    }

    fn list(&self, session: &mut Session) -> Option<&[Arg<'a>]> {
        match &self.value {
            ArgValue::List(args) => Some(args),
            _ => {
                let message = format!("expected arguments in parentheses for `{}`", self.name);
                session.error_help(self.value_span(), message, format!("write `{}(…)`", self.name));
                None
            }
        }
    }

    fn origin(&self) -> Origin {
        origin_at(self.span)
    }
}

fn wrong<T>(arg: &Arg<'_>, session: &mut Session, wanted: &str, sample: &str) -> Option<T> {
    if let ArgValue::Expr(expr) = &arg.value
        && let Err(unknown) = expr.value()
    {
        let (message, help) = match unknown {
            Unknown::Name(name) => (
                format!(
                    "expected a literal, found the name `{name}`: markers are read without running the program"
                ),
                "write the value: literals, `+ - * / % << >>` and constants such as `u16::MAX` are evaluated",
            ),
            Unknown::Part(text) if is_arithmetic(expr) => (format!("cannot evaluate `{text}`"), ""),
            Unknown::Part(_) => (expected_value(arg, wanted), ""),
        };
        let help = if help.is_empty() {
            format!("write `{} = {sample}`", arg.name)
        } else {
            help.to_owned()
        };
        session.error_help(arg.value_span(), message, help);
        return None;
    }
    session.error_help(
        arg.value_span(),
        expected_value(arg, wanted),
        format!("write `{} = {sample}`", arg.name),
    );
    None
}

fn expected_value(arg: &Arg<'_>, wanted: &str) -> String {
    let found = match &arg.value {
        ArgValue::Flag => "no value".to_owned(),
        ArgValue::Literal(literal) => format!("`{}`", literal.value),
        ArgValue::List(_) => format!("`{}(…)`", arg.name),
        ArgValue::Expr(_) => "an expression".to_owned(),
    };
    format!("expected {wanted} for `{}`, found {found}", arg.name)
}

fn is_arithmetic(expr: &Expr<'_>) -> bool {
    matches!(expr.kind, ExprKind::Binary(..) | ExprKind::Negative(_))
}

/// Leaves out the file, which only the generator knows.
pub(crate) fn origin_at(span: Span) -> Origin {
    Origin {
        file: 0,
        span: Some((span.start, span.end)),
    }
}
