//! Functions and their signatures.

use super::generics::{GenericKind, Generics};
use super::pass_header;
use crate::token::{Cursor, Delimiter, Ident, Kind, lex};
use crate::{Diagnostic, Span, TypeRef, attribute, types};

/// A function declaration.
#[derive(Debug)]
pub struct Function<'a> {
    /// The name.
    pub ident: Ident<'a>,
    /// Location of the `fn` keyword.
    pub keyword: Span,
    /// Whether it's an `async fn`.
    pub is_async: bool,
    /// The generic parameters, including angle brackets.
    pub generics: Option<Span>,
    /// `-> Type`.
    pub output: Option<Span>,
    /// Everything between visibility and body: `async fn name(…) -> Type where …`.
    pub signature: Span,
    /// Text between the braces, which isn't tokenized. `None` for functions without a body.
    pub body: Option<&'a str>,
    /// Byte offset of the body.
    pub body_start: u32,
    inputs: Cursor<'a>,
}

/// A function parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The whole parameter, excluding attributes.
    pub span: Span,
    /// The name, if any. May be `self`.
    pub name: Option<String>,
    /// The type. `None` for any form of `self`.
    pub ty: Option<TypeRef>,
}

impl Function<'_> {
    /// Returns the names of the type parameters.
    pub fn type_parameters(&self) -> Vec<String> {
        let Some(span) = self.generics else {
            return Vec::new();
        };
        let tokens = lex(self.inputs.text_of(span));
        let generics = tokens.and_then(|tokens| {
            let names = Generics::read(&mut tokens.cursor())?.list.into_iter();
            let types = names.filter(|parameter| parameter.kind == GenericKind::Type);
            Ok(types.map(|parameter| parameter.ident.text.to_owned()).collect())
        });
        generics.unwrap_or_default()
    }

    /// Returns the text `-> Type`, or an empty string.
    pub fn output_text(&self) -> &str {
        self.output.map_or("", |span| self.inputs.text_of(span))
    }

    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// Returns an error if a parameter is malformed.
    pub fn parameters(&self) -> Result<Vec<Parameter>, Diagnostic> {
        let mut cursor = self.inputs;
        let mut parameters = Vec::new();
        while !cursor.is_end() {
            attribute::read_outer(&mut cursor, &mut Vec::new())?;
            let start = cursor;
            let ty = parameter(&mut cursor)?;
            let span = cursor.span_since(start);
            let name = name(start);
            parameters.push(Parameter { span, name, ty });
            if !cursor.is_end() {
                cursor.expect(b',')?;
            }
        }
        Ok(parameters)
    }
}

/// Reads up to and including the body or semicolon. `start` is positioned before qualifiers such as
/// `async`.
pub(super) fn read_function<'a>(
    start: Cursor<'a>,
    is_async: bool,
    cursor: &mut Cursor<'a>,
) -> Result<Function<'a>, Diagnostic> {
    let keyword = cursor.span();
    cursor.skip();
    let ident = cursor.ident()?;
    let mut generics = None;
    if cursor.is_punct(b'<') {
        let angles = *cursor;
        types::pass_angles(cursor);
        generics = Some(cursor.span_since(angles));
    }
    let Some(inputs) = cursor.group(Delimiter::Paren) else {
        return Err(cursor.expected("`(`"));
    };
    let mut output = None;
    if cursor.is_pair(b'-', b'>') {
        let arrow = *cursor;
        cursor.eat_pair(b'-', b'>');
        types::pass_type(cursor);
        output = Some(cursor.span_since(arrow));
    }
    pass_header(cursor);
    let signature = cursor.span_since(start);
    let body_start = cursor.span().end;
    let body = if cursor.eat(b';') {
        None
    } else {
        if cursor.group(Delimiter::Brace).is_none() {
            return Err(cursor.expected("`{` or `;`"));
        }
        // Bodies aren't tokenized, so slice the text between the braces.
        let end = cursor.previous_span().start;
        Some(cursor.text_of(Span {
            start: body_start,
            end,
        }))
    };
    Ok(Function {
        ident,
        keyword,
        is_async,
        generics,
        output,
        signature,
        body,
        body_start,
        inputs,
    })
}

/// Returns the name before the colon, or `self`. Patterns have none.
fn name(mut cursor: Cursor<'_>) -> Option<String> {
    cursor.eat(b'&');
    if cursor.kind() == Kind::Lifetime {
        cursor.skip();
    }
    cursor.eat_word("mut");
    let ident = cursor.any_ident()?;
    // Patterns such as `Some(a)` also start with an identifier, but have no name.
    let is_whole = ident.text == "self" || cursor.is_punct(b':');
    is_whole.then(|| ident.text.to_owned())
}

/// Reads a parameter's type. `None` for all forms of `self`.
fn parameter(cursor: &mut Cursor<'_>) -> Result<Option<TypeRef>, Diagnostic> {
    let mut ahead = *cursor;
    if ahead.eat(b'&') && ahead.kind() == Kind::Lifetime {
        ahead.skip();
    }
    ahead.eat_word("mut");
    // `self::Part` is a path rather than a receiver.
    if ahead.eat_word("self") && !ahead.is_pair(b':', b':') {
        *cursor = ahead;
        if cursor.eat(b':') {
            TypeRef::read(cursor)?;
        }
        return Ok(None);
    }
    loop {
        if cursor.is_end() || cursor.is_punct(b',') {
            return Err(cursor.expected("`:`"));
        }
        // `::` is part of a path in the pattern; only a single colon ends it.
        if !cursor.eat_pair(b':', b':') {
            if cursor.eat(b':') {
                return TypeRef::read(cursor).map(Some);
            }
            cursor.skip();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Span;
    use crate::grammar::{ItemKind, Items};
    use crate::token::lex;

    fn check(source: &str, signature: &str, [generics, output]: [Option<&str>; 2], parameters: &[&str]) {
        let tokens = lex(source).expect("tokens");
        let item = Items::new(tokens.cursor(), None).read().expect("an item");
        let Some(ItemKind::Function(function)) = item.map(|item| item.kind) else {
            panic!("{source} is not a function");
        };
        let text = |span: Span| &source[span.range()];
        assert_eq!(text(function.signature), signature, "{source}");
        assert_eq!(text(function.keyword), "fn", "{source}");
        assert_eq!(function.is_async, signature.contains("async"), "{source}");
        assert_eq!(function.generics.map(text), generics, "{source}");
        assert_eq!(function.output.map(text), output, "{source}");
        let found = function.parameters().expect("parameters");
        let found: Vec<_> = found.iter().map(|each| text(each.span)).collect();
        assert_eq!(found, parameters, "{source}");
    }

    #[test]
    fn reads_signatures() {
        check("fn f() {}", "fn f()", [None, None], &[]);
        check(
            "#[a] pub(crate) async unsafe fn f<T: Fn() -> u8>(#[b] (a, b): (u8, T), c: &'a [u8; 2],) -> impl Fn() -> T where T: A { x }",
            "async unsafe fn f<T: Fn() -> u8>(#[b] (a, b): (u8, T), c: &'a [u8; 2],) -> impl Fn() -> T where T: A",
            [Some("<T: Fn() -> u8>"), Some("-> impl Fn() -> T")],
            &["(a, b): (u8, T)", "c: &'a [u8; 2]"],
        );
        check(
            "extern \"C\" fn f(&'a mut self, x: u8) -> A<{ 1 }>;",
            "extern \"C\" fn f(&'a mut self, x: u8) -> A<{ 1 }>",
            [None, Some("-> A<{ 1 }>")],
            &["&'a mut self", "x: u8"],
        );
        check(
            "const fn f(self: Box<Self>) -> ! {}",
            "const fn f(self: Box<Self>) -> !",
            [None, Some("-> !")],
            &["self: Box<Self>"],
        );
    }
}
