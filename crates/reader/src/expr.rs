//! Expressions found in attributes: values, paths, calls and arithmetic.

use serde_json::Value;

use crate::token::{Cursor, Delimiter, Kind, MAX_DEPTH, warn_too_deep};
use crate::{Diagnostic, Span, TypeRef, args, types};

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr<'a> {
    /// The form of the expression.
    pub kind: ExprKind<'a>,
    /// Type arguments in a path, or of a method call.
    pub generic: Generic,
    /// Location of the expression.
    pub span: Span,
    /// Source text of the expression.
    pub text: &'a str,
}

/// The type arguments in a path.
#[derive(Clone, Debug, Default)]
pub struct Generic {
    /// Arguments of the last segment, e.g. `A` and `B` in `f::<A, B>`.
    pub arguments: Vec<TypeRef>,
    /// The type before the last segment if it has arguments, e.g. `Vec::<T>` in `Vec::<T>::new`.
    pub owner: Option<Box<TypeRef>>,
}

/// The forms of expressions. Parentheses and the prefixes `&` and `*` are dropped.
#[derive(Clone, Debug)]
pub enum ExprKind<'a> {
    /// A literal as a JSON value. Numbers may be negative.
    Literal(Value),
    /// `a::b::C` as segments, without `r#` and type arguments. A leading `::` is an empty first
    /// segment.
    Path(Vec<&'a str>),
    /// `<T as Trait>::name`.
    Associated(TypeRef, &'a str),
    /// `f(a, b)`.
    Call(Box<Expr<'a>>, Vec<Expr<'a>>),
    /// `x.name(a, b)`.
    Method(Box<Expr<'a>>, &'a str, Vec<Expr<'a>>),
    /// `x.name`.
    Field(Box<Expr<'a>>, &'a str),
    /// `x[i]`.
    Index(Box<Expr<'a>>, Box<Expr<'a>>),
    /// `a::name!(…)`, except for `vec!`: path segments, and content of the delimiters.
    Macro(Vec<&'a str>, Cursor<'a>),
    /// `[a, b]` and `vec![a, b]`.
    Array(Vec<Expr<'a>>),
    /// `(a, b)`.
    Tuple(Vec<Expr<'a>>),
    /// `a::S { x: 1, y, ..base }`. A field without a value refers to the variable of that name.
    Struct(StructExpr<'a>),
    /// `!x`.
    Not(Box<Expr<'a>>),
    /// `a == b`, or `a != b` if the flag is false.
    Equals(Box<Expr<'a>>, Box<Expr<'a>>, bool),
    /// `-x`, where `x` isn't a literal.
    Negative(Box<Expr<'a>>),
    /// `a + b` and similar.
    Binary(Box<Expr<'a>>, Operator, Box<Expr<'a>>),
    /// `{ …; x }`: content of the braces, for [`read_block`](crate::read_block).
    Block(Cursor<'a>),
    /// Anything else.
    Other,
}

/// An expression that constructs a struct, or a variant with named fields.
#[derive(Clone, Debug)]
pub struct StructExpr<'a> {
    /// The path, as in [`ExprKind::Path`].
    pub path: Vec<&'a str>,
    /// The fields and their values, in source order.
    pub fields: Vec<(&'a str, Expr<'a>)>,
    /// The value of the remaining fields.
    pub base: Option<Box<Expr<'a>>>,
}

/// Arithmetic on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // std's trait of the same name; `Shl` and `Shr`
pub enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    ShiftLeft,
    ShiftRight,
}

impl Operator {
    /// Computes the result for two integers. Returns `None` on overflow or division by zero.
    pub fn apply(self, left: i128, right: i128) -> Option<i128> {
        match self {
            Operator::Add => left.checked_add(right),
            Operator::Sub => left.checked_sub(right),
            Operator::Mul => left.checked_mul(right),
            Operator::Div => left.checked_div(right),
            Operator::Rem => left.checked_rem(right),
            Operator::ShiftLeft => left.checked_mul(1i128.checked_shl(u32::try_from(right).ok()?)?),
            Operator::ShiftRight => left.checked_shr(u32::try_from(right).ok()?),
        }
    }
}

impl<'a> Expr<'a> {
    /// Reads the next expression, up to a comma or the end. Unsupported forms become
    /// [`ExprKind::Other`].
    ///
    /// # Errors
    ///
    /// Returns an error if there's no expression, or if it's nested deeper than [`MAX_DEPTH`].
    pub fn read(cursor: &mut Cursor<'a>) -> Result<Self, Diagnostic> {
        let start = *cursor;
        if start.is_end() || start.is_punct(b',') {
            return Err(start.expected("an expression"));
        }
        match comparison(cursor, 0) {
            Ok(Some(expr)) if cursor.is_end() || cursor.is_punct(b',') => Ok(expr),
            Err(error) if !error.is_error() => Err(error),
            _ => {
                *cursor = start;
                pass_expr(cursor);
                Ok(made(ExprKind::Other, start, *cursor))
            }
        }
    }

    /// Reads a literal, a name or a parenthesized expression, including any calls on it.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none.
    pub fn read_operand(cursor: &mut Cursor<'a>) -> Result<Self, Diagnostic> {
        let start = *cursor;
        operand(cursor, 0)?.ok_or_else(|| start.expected("an expression"))
    }

    pub(crate) fn other(start: Cursor<'a>, behind: Cursor<'a>) -> Self {
        made(ExprKind::Other, start, behind)
    }

    /// Returns true if this is serde_json's `json!(…)`.
    pub(crate) fn is_json(&self) -> bool {
        matches!(&self.kind, ExprKind::Macro(names, _) if names.last() == Some(&"json"))
    }
}

fn made<'a>(kind: ExprKind<'a>, start: Cursor<'a>, behind: Cursor<'a>) -> Expr<'a> {
    let span = behind.span_since(start);
    Expr {
        kind,
        generic: Generic::default(),
        span,
        text: start.text_of(span),
    }
}

/// Skips up to a comma, ignoring commas between closure parameters.
pub(crate) fn pass_expr(cursor: &mut Cursor<'_>) {
    let mut parameters = false;
    let mut begins = true;
    while !cursor.is_end() && (parameters || !cursor.is_punct(b',')) {
        if cursor.is_punct(b'|') && (parameters || begins) {
            parameters = !parameters;
        }
        begins = begins && cursor.is_word("move");
        if !pass_arguments(cursor) {
            cursor.skip();
        }
    }
}

/// Reads an operation, or two of them compared with `==` or `!=`.
pub(crate) fn comparison<'a>(cursor: &mut Cursor<'a>, depth: usize) -> Result<Option<Expr<'a>>, Diagnostic> {
    let start = *cursor;
    let Some(left) = operation(cursor, 0, depth)? else {
        return Ok(None);
    };
    let is_equal = cursor.is_pair(b'=', b'=');
    if !is_equal && !cursor.is_pair(b'!', b'=') {
        return Ok(Some(left));
    }
    cursor.skip();
    cursor.skip();
    let right = operation(cursor, 0, depth + 1)?;
    Ok(right.map(|right| {
        let kind = ExprKind::Equals(Box::new(left), Box::new(right), is_equal);
        made(kind, start, *cursor)
    }))
}

fn operator(cursor: Cursor<'_>) -> Option<(Operator, usize)> {
    let found = match cursor.kind() {
        Kind::Punct(b'*') => (Operator::Mul, 3),
        Kind::Punct(b'/') => (Operator::Div, 3),
        Kind::Punct(b'%') => (Operator::Rem, 3),
        Kind::Punct(b'+') => (Operator::Add, 2),
        Kind::Punct(b'-') => (Operator::Sub, 2),
        Kind::Punct(b'<') if cursor.is_pair(b'<', b'<') => (Operator::ShiftLeft, 1),
        Kind::Punct(b'>') if cursor.is_pair(b'>', b'>') => (Operator::ShiftRight, 1),
        _ => return None,
    };
    Some(found)
}

/// Reads operands joined by operators that bind tighter than `around`.
fn operation<'a>(
    cursor: &mut Cursor<'a>,
    around: usize,
    depth: usize,
) -> Result<Option<Expr<'a>>, Diagnostic> {
    let start = *cursor;
    let Some(mut left) = operand(cursor, depth)? else {
        return Ok(None);
    };
    // This loop isn't recursive, but traversing the resulting expression is, so limit its length.
    let mut length = depth;
    while let Some((operator, binding)) = operator(*cursor).filter(|(_, binding)| *binding > around) {
        length += 1;
        check_depth(*cursor, length)?;
        cursor.skip();
        // Shift operators consist of two tokens.
        if matches!(operator, Operator::ShiftLeft | Operator::ShiftRight) {
            cursor.skip();
        }
        let Some(right) = operation(cursor, binding, depth + 1)? else {
            return Ok(None);
        };
        let kind = ExprKind::Binary(Box::new(left), operator, Box::new(right));
        left = made(kind, start, *cursor);
    }
    Ok(Some(left))
}

fn check_depth(cursor: Cursor<'_>, depth: usize) -> Result<(), Diagnostic> {
    if depth > MAX_DEPTH {
        return Err(warn_too_deep(cursor.span()));
    }
    Ok(())
}

fn operand<'a>(cursor: &mut Cursor<'a>, depth: usize) -> Result<Option<Expr<'a>>, Diagnostic> {
    check_depth(*cursor, depth)?;
    let start = *cursor;
    let mut generic = Generic::default();
    let Some(kind) = atom(cursor, &mut generic, depth)? else {
        return Ok(None);
    };
    let mut expr = made(kind, start, *cursor);
    expr.generic = generic;
    let mut length = depth;
    loop {
        length += 1;
        check_depth(*cursor, length)?;
        let mut arguments = Vec::new();
        let kind = if cursor.is_group(Delimiter::Paren) {
            let Some(arguments) = list(cursor, depth)? else {
                return Ok(None);
            };
            ExprKind::Call(Box::new(expr), arguments)
        } else if let Some(mut inner) = cursor.group(Delimiter::Bracket) {
            match operation(&mut inner, 0, depth + 1)? {
                Some(index) if inner.is_end() => ExprKind::Index(Box::new(expr), Box::new(index)),
                _ => return Ok(None),
            }
        } else if cursor.is_punct(b'.') && !cursor.is_pair(b'.', b'.') {
            cursor.skip();
            let Some(name) = cursor.any_ident() else {
                return Ok(None);
            };
            arguments = read_arguments(cursor);
            if cursor.is_group(Delimiter::Paren) {
                let Some(list) = list(cursor, depth)? else {
                    return Ok(None);
                };
                ExprKind::Method(Box::new(expr), name.text, list)
            } else {
                ExprKind::Field(Box::new(expr), name.text)
            }
        } else {
            return Ok(Some(expr));
        };
        expr = made(kind, start, *cursor);
        expr.generic.arguments = arguments;
    }
}

/// Skips `::<A, B>`.
fn pass_arguments(cursor: &mut Cursor<'_>) -> bool {
    let mut ahead = *cursor;
    let found = ahead.eat_pair(b':', b':') && ahead.is_punct(b'<');
    if found {
        types::pass_angles(&mut ahead);
        *cursor = ahead;
    }
    found
}

/// Reads `::<A, B>`. Empty if there are no arguments, or if one isn't a type.
fn read_arguments(cursor: &mut Cursor<'_>) -> Vec<TypeRef> {
    let mut inner = *cursor;
    if !pass_arguments(cursor) {
        return Vec::new();
    }
    inner.eat_pair(b':', b':');
    inner.eat(b'<');
    let mut types = Vec::new();
    while !inner.eat(b'>') {
        let Ok(ty) = TypeRef::read(&mut inner) else {
            return Vec::new();
        };
        types.push(ty);
        if !inner.eat(b',') && !inner.is_punct(b'>') {
            return Vec::new();
        }
    }
    types
}

fn atom<'a>(
    cursor: &mut Cursor<'a>,
    generic: &mut Generic,
    depth: usize,
) -> Result<Option<ExprKind<'a>>, Diagnostic> {
    match cursor.kind() {
        Kind::Punct(b'&' | b'*') => {
            cursor.skip();
            cursor.eat_word("mut");
            Ok(operand(cursor, depth + 1)?.map(|expr| {
                *generic = expr.generic;
                expr.kind
            }))
        }
        Kind::Punct(b'<') => Ok(qualified(cursor)),
        Kind::Punct(b'!') => {
            cursor.skip();
            let operand = operand(cursor, depth + 1)?;
            Ok(operand.map(|operand| ExprKind::Not(Box::new(operand))))
        }
        Kind::Punct(b'-') => {
            let mut ahead = *cursor;
            if let Ok(value) = args::literal_value(&mut ahead) {
                *cursor = ahead;
                return Ok(Some(ExprKind::Literal(value)));
            }
            cursor.skip();
            let operand = operand(cursor, depth + 1)?;
            Ok(operand.map(|operand| ExprKind::Negative(Box::new(operand))))
        }
        Kind::Literal(_) => Ok(args::literal_value(cursor).ok().map(ExprKind::Literal)),
        Kind::Open(Delimiter::Paren) => {
            let mut ahead = *cursor;
            let Some(mut inner) = ahead.group(Delimiter::Paren) else {
                return Ok(None);
            };
            let expr = comparison(&mut inner, depth + 1)?;
            if inner.is_punct(b',') {
                // It was a tuple; start over.
                return Ok(list(cursor, depth)?.map(ExprKind::Tuple));
            }
            *cursor = ahead;
            Ok(expr.filter(|_| inner.is_end()).map(|expr| expr.kind))
        }
        Kind::Open(Delimiter::Bracket) => Ok(list(cursor, depth)?.map(ExprKind::Array)),
        Kind::Open(Delimiter::Brace) => Ok(cursor.group(Delimiter::Brace).map(ExprKind::Block)),
        Kind::Ident if matches!(cursor.text(), "true" | "false") => {
            let value = cursor.eat_word("true");
            if !value {
                cursor.skip();
            }
            Ok(Some(ExprKind::Literal(Value::Bool(value))))
        }
        Kind::Ident | Kind::RawIdent | Kind::Punct(b':') => path(cursor, generic, depth),
        _ => Ok(None),
    }
}

fn qualified<'a>(cursor: &mut Cursor<'a>) -> Option<ExprKind<'a>> {
    cursor.eat(b'<');
    let ty = TypeRef::read(cursor).ok()?;
    if cursor.eat_word("as") {
        types::pass_type(cursor);
    }
    let name = (cursor.eat(b'>') && cursor.eat_pair(b':', b':')).then(|| cursor.any_ident())?;
    Some(ExprKind::Associated(ty, name?.text))
}

fn path<'a>(
    cursor: &mut Cursor<'a>,
    generic: &mut Generic,
    depth: usize,
) -> Result<Option<ExprKind<'a>>, Diagnostic> {
    let start = *cursor;
    let mut names = Vec::with_capacity(2);
    if cursor.eat_pair(b':', b':') {
        names.push("");
    }
    loop {
        // Among keywords, only these can start a supported expression.
        let is_root = matches!(cursor.text(), "self" | "Self" | "super" | "crate");
        if !is_root && !cursor.is_ident() {
            return Ok(None);
        }
        let Some(ident) = cursor.any_ident() else {
            return Ok(None);
        };
        names.push(ident.text);
        let arguments = read_arguments(cursor);
        let end = cursor.previous_span();
        if !cursor.eat_pair(b':', b':') {
            generic.arguments = arguments;
            break;
        }
        generic.owner = None;
        if !arguments.is_empty() {
            let span = start.span().to(end);
            generic.owner = TypeRef::parse(start.text_of(span), span).map(Box::new);
        }
    }
    if cursor.is_punct(b'!') && !cursor.is_pair(b'!', b'=') {
        cursor.skip();
        if names == ["vec"] {
            return Ok(list(cursor, depth)?.map(ExprKind::Array));
        }
        return Ok(cursor.any_group().map(|body| ExprKind::Macro(names, body)));
    }
    if cursor.is_group(Delimiter::Brace) {
        return fields(names, cursor, depth);
    }
    Ok(Some(ExprKind::Path(names)))
}

/// Reads the fields in `{ x: 1, y, ..base }`.
fn fields<'a>(
    path: Vec<&'a str>,
    cursor: &mut Cursor<'a>,
    depth: usize,
) -> Result<Option<ExprKind<'a>>, Diagnostic> {
    let Some(mut inner) = cursor.group(Delimiter::Brace) else {
        return Ok(None);
    };
    let mut found = StructExpr {
        path,
        fields: Vec::new(),
        base: None,
    };
    while !inner.is_end() {
        if inner.eat_pair(b'.', b'.') {
            let base = comparison(&mut inner, depth + 1)?;
            found.base = base.filter(|_| inner.is_end()).map(Box::new);
            return Ok(found.base.is_some().then_some(ExprKind::Struct(found)));
        }
        let start = inner;
        let Some(name) = inner.any_ident() else {
            return Ok(None);
        };
        let value = if inner.eat(b':') {
            value(&mut inner, depth)?
        } else {
            made(ExprKind::Path(vec![name.text]), start, inner)
        };
        found.fields.push((name.text, value));
        if !inner.eat(b',') && !inner.is_end() {
            return Ok(None);
        }
    }
    Ok(Some(ExprKind::Struct(found)))
}

fn value<'a>(cursor: &mut Cursor<'a>, depth: usize) -> Result<Expr<'a>, Diagnostic> {
    let start = *cursor;
    match comparison(cursor, depth + 1)? {
        Some(expr) if cursor.is_end() || cursor.is_punct(b',') => Ok(expr),
        _ => {
            *cursor = start;
            pass_expr(cursor);
            Ok(made(ExprKind::Other, start, *cursor))
        }
    }
}

fn list<'a>(cursor: &mut Cursor<'a>, depth: usize) -> Result<Option<Vec<Expr<'a>>>, Diagnostic> {
    let Some(mut inner) = cursor.any_group() else {
        return Ok(None);
    };
    let mut list = Vec::new();
    while !inner.is_end() {
        let start = inner;
        match operation(&mut inner, 0, depth + 1)? {
            Some(expr) if inner.is_end() || inner.is_punct(b',') => list.push(expr),
            // `[0; 4]` isn't supported.
            Some(_) if inner.is_punct(b';') => return Ok(None),
            _ => {
                inner = start;
                pass_expr(&mut inner);
                if inner.is_at(start) {
                    return Ok(None);
                }
                list.push(made(ExprKind::Other, start, inner));
            }
        }
        if !inner.eat(b',') && !inner.is_end() {
            return Ok(None);
        }
    }
    Ok(Some(list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    fn shown(expr: &Expr<'_>) -> String {
        let list = |list: &[Expr<'_>]| list.iter().map(shown).collect::<Vec<_>>().join(", ");
        match &expr.kind {
            ExprKind::Literal(value) => value.to_string(),
            ExprKind::Path(names) => names.join("::"),
            ExprKind::Call(function, args) => format!("{}({})", shown(function), list(args)),
            ExprKind::Method(receiver, name, args) => {
                format!("{}.{name}({})", shown(receiver), list(args))
            }
            ExprKind::Associated(ty, name) => format!("<{}>::{name}", shown_type(ty)),
            ExprKind::Field(receiver, name) => format!("{}.{name}", shown(receiver)),
            ExprKind::Index(receiver, index) => format!("{}[{}]", shown(receiver), shown(index)),
            ExprKind::Macro(names, body) => format!("{}!({})", names.join("::"), body.text()),
            ExprKind::Array(items) => format!("[{}]", list(items)),
            ExprKind::Tuple(items) => format!("({})", list(items)),
            ExprKind::Struct(made) => {
                let fields = made.fields.iter();
                let mut parts: Vec<_> = fields
                    .map(|(name, value)| format!("{name}: {}", shown(value)))
                    .collect();
                parts.extend(made.base.iter().map(|base| format!("..{}", shown(base))));
                format!("{} {{{}}}", made.path.join("::"), parts.join(", "))
            }
            ExprKind::Not(inner) => format!("!{}", shown(inner)),
            ExprKind::Equals(left, right, is_equal) => {
                let sign = if *is_equal { "==" } else { "!=" };
                format!("({} {sign} {})", shown(left), shown(right))
            }
            ExprKind::Negative(inner) => format!("(-{})", shown(inner)),
            ExprKind::Binary(left, operator, right) => {
                format!("({} {operator:?} {})", shown(left), shown(right))
            }
            ExprKind::Block(body) => format!("{{{}}}", body.text()),
            ExprKind::Other => format!("other {}", expr.text),
        }
    }

    fn shown_type(ty: &TypeRef) -> String {
        match &ty.kind {
            crate::TypeKind::Path(segments, args) if args.is_empty() => segments.join("::"),
            crate::TypeKind::Path(segments, args) => {
                let args: Vec<_> = args.iter().map(shown_type).collect();
                format!("{}<{}>", segments.join("::"), args.join(", "))
            }
            other => format!("{other:?}"),
        }
    }

    fn check(text: &str, expected: &str) {
        let tokens = lex(text).expect("tokens");
        let mut cursor = tokens.cursor();
        let expr = Expr::read(&mut cursor).expect("an expression");
        assert_eq!(shown(&expr), expected, "{text}");
        assert_eq!(expr.text, text.trim_end_matches(", next"), "{text}");
        let ends = cursor.kind() == Kind::End || cursor.is_punct(b',');
        assert!(ends, "{text} is not read to its end");
    }

    #[test]
    fn reads_types_in_paths() {
        let tokens = lex("m::Map::<A, Vec<B>>::f::<C>(g).h::<D>()").expect("tokens");
        let expr = Expr::read(&mut tokens.cursor()).expect("an expression");
        let shown_types = |types: &[TypeRef]| types.iter().map(shown_type).collect::<Vec<_>>().join(", ");
        assert_eq!(shown_types(&expr.generic.arguments), "D");
        let ExprKind::Method(call, ..) = &expr.kind else {
            panic!("a method")
        };
        let ExprKind::Call(path, _) = &call.kind else {
            panic!("a call")
        };
        assert_eq!(shown_types(&path.generic.arguments), "C");
        let owner = path.generic.owner.as_deref().map(shown_type);
        assert_eq!(owner.as_deref(), Some("m::Map<A, Vec<B>>"));
    }

    #[test]
    fn reads_expressions() {
        check("1", "1");
        check("-1.5, next", "-1.5");
        check("true", "true");
        check("\"a\\n\"", "\"a\\n\"");
        check("'c'", "\"c\"");
        check("::a::r#type::C", "::a::type::C");
        check("<Vec<String> as JsonSchema>::f(g)", "<Vec<String>>::f(g)");
        check("<a::T>::f()", "<a::T>::f()");
        check("Map::<A, Vec<B>>::f(g)", "Map::f(g)");
        check("a.b.c(1)[\"d\"].e", "a.b.c(1)[\"d\"].e");
        check("s::json!({\"a\": 1}).x()", "s::json!({).x()");
        check("a != b", "(a != b)");
        check("Vec::<u8>::new()", "Vec::new()");
        check(
            "Rule::new(\"x\").message(\"m\").reason(Reason::FieldValueInvalid)",
            "Rule::new(\"x\").message(\"m\").reason(Reason::FieldValueInvalid)",
        );
        check(
            "ListMerge::Map(vec![\"a\", \"b\"])",
            "ListMerge::Map([\"a\", \"b\"])",
        );
        check("&[1, -2,]", "[1, -2]");
        check("\"a\".to_string()", "\"a\".to_string()");
        check("1.max(2)", "1.max(2)");
        check("f::<A, B>(x, y)", "f(x, y)");
        check("x.collect::<Vec<_>>()", "x.collect()");
        check("(1)", "1");
        check("(1, a)", "(1, a)");
        check("*x == 1", "(x == 1)");
        check("!(a != b), next", "!(a != b)");
        check(
            "a::S { x: 1 + 1, y, ..Default::default() }",
            "a::S {x: (1 Add 1), y: y, ..Default::default()}",
        );
        check(
            "S { x: if a { 1 } else { 2 } }",
            "S {x: other if a { 1 } else { 2 }}",
        );
    }

    #[test]
    fn operators_bind_as_in_rust() {
        check("1 + 2 * 3", "(1 Add (2 Mul 3))");
        check("1 - 2 - 3", "((1 Sub 2) Sub 3)");
        check("(1 + 2) * 3", "((1 Add 2) Mul 3)");
        check("1 << 2 + 3", "(1 ShiftLeft (2 Add 3))");
        check("MAX * 2 - 1, next", "((MAX Mul 2) Sub 1)");
        check("-MAX % 4", "((-MAX) Rem 4)");
        check("64 >> 2 / 2", "(64 ShiftRight (2 Div 2))");
    }

    #[test]
    fn keeps_other_expressions_as_text() {
        for text in [
            "|a, b| a + b",
            "move |a, b| { a }",
            "|| 1",
            "if a { 1 } else { 2 }",
            "a as u8",
            "a?",
            "..",
            "b\"x\"",
            "[0; 4]",
        ] {
            check(text, &format!("other {text}"));
        }
        check("f(|a, b| a, 1)", "f(other |a, b| a, 1)");
    }

    #[test]
    fn limits_depth() {
        for text in [
            "-".repeat(10_000) + "a",
            "a".to_owned() + &"+a".repeat(10_000),
            "a".to_owned() + &".b()".repeat(10_000),
            "&".repeat(10_000) + "a",
        ] {
            let tokens = lex(&text).expect("tokens");
            assert!(Expr::read(&mut tokens.cursor()).is_err_and(|error| !error.is_error()));
        }
    }
}
