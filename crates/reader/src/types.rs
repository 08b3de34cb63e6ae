//! Types as written in the source.

use crate::token::{Cursor, Delimiter, Kind, LiteralKind, MAX_DEPTH, integer_value, lex, warn_too_deep};
use crate::{Diagnostic, Span};

/// A type as written in the source.
#[derive(Clone, Debug)]
pub struct TypeRef {
    /// The form of the type.
    pub kind: TypeKind,
    /// Location of the type.
    pub span: Span,
}

/// The forms of types that matter for a schema.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `a::b::C<D, E>`: segments without `r#`, and type arguments of the last segment. A leading
    /// `::` is an empty first segment.
    Path(Vec<String>, Vec<TypeRef>),
    /// `[T; N]` with a literal length, or `[T]`.
    Array(Box<TypeRef>, Option<u64>),
    /// `(A, B)`, and `()`.
    Tuple(Vec<TypeRef>),
    /// Any other form, as its text on a single line.
    Other(String),
}

impl TypeRef {
    /// Reads the next type, up to the first token that can't be part of a type.
    ///
    /// # Errors
    ///
    /// Returns an error if there's no type, or if it's nested deeper than [`MAX_DEPTH`].
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self, Diagnostic> {
        nested(cursor, 0)
    }

    /// Parses a type inside a string literal, as in `schema_type = "a::B"`. All spans are `at`.
    /// Returns `None` if the string contains anything else.
    pub fn parse(text: &str, at: Span) -> Option<Self> {
        let tokens = lex(text).ok()?;
        let mut cursor = tokens.cursor();
        let mut ty = TypeRef::read(&mut cursor).ok()?;
        place_within(&mut ty, at);
        (cursor.kind() == Kind::End).then_some(ty)
    }
}

impl TypeRef {
    /// Replaces all spans in the type.
    #[must_use]
    pub fn placed_at(mut self, span: Span) -> Self {
        place_within(&mut self, span);
        self
    }
}

/// Checks if a string is a path without type arguments.
pub fn is_path(text: &str) -> bool {
    let Ok(tokens) = lex(text) else { return false };
    let mut cursor = tokens.cursor();
    cursor.eat_pair(b':', b':');
    while cursor.any_ident().is_some() {
        if cursor.kind() == Kind::End {
            return true;
        }
        if !cursor.eat_pair(b':', b':') {
            return false;
        }
    }
    false
}

fn place_within(ty: &mut TypeRef, at: Span) {
    ty.span = at;
    match &mut ty.kind {
        TypeKind::Path(_, args) | TypeKind::Tuple(args) => {
            args.iter_mut().for_each(|arg| place_within(arg, at));
        }
        TypeKind::Array(item, _) => place_within(item, at),
        TypeKind::Other(_) => {}
    }
}

fn nested(cursor: &mut Cursor<'_>, depth: usize) -> Result<TypeRef, Diagnostic> {
    let start = *cursor;
    if depth > MAX_DEPTH {
        return Err(warn_too_deep(start.span()));
    }
    let kind = match known(cursor, depth)? {
        Some(kind) => kind,
        None => {
            *cursor = start;
            if !begins_a_type(start.kind()) {
                return Err(start.expected("a type"));
            }
            pass_type(cursor);
            TypeKind::Other(as_written(start.text_of(cursor.span_since(start))))
        }
    };
    Ok(TypeRef {
        kind,
        span: cursor.span_since(start),
    })
}

fn begins_a_type(kind: Kind) -> bool {
    match kind {
        Kind::Ident | Kind::RawIdent | Kind::Lifetime | Kind::Open(_) => true,
        Kind::Punct(punct) => matches!(punct, b'<' | b'*' | b'!' | b'&' | b':' | b'?'),
        _ => false,
    }
}

/// Reads a type that may have a schema. Returns `None` for others.
fn known(cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<TypeKind>, Diagnostic> {
    let kind = match cursor.kind() {
        Kind::Open(Delimiter::Paren) => tuple(cursor, depth)?,
        Kind::Open(Delimiter::Bracket) => return array(cursor, depth),
        // References are transparent in JSON. This makes `&'static str` work.
        Kind::Punct(b'&') => {
            cursor.skip();
            if cursor.kind() == Kind::Lifetime {
                cursor.skip();
            }
            cursor.eat_word("mut");
            nested(cursor, depth + 1)?.kind
        }
        Kind::Ident | Kind::RawIdent | Kind::Punct(b':') => return path(cursor, depth),
        _ => return Ok(None),
    };
    Ok(Some(kind))
}

/// `(T)` isn't a tuple, but just `T`.
fn tuple(cursor: &mut Cursor<'_>, depth: usize) -> Result<TypeKind, Diagnostic> {
    let Some(mut inner) = cursor.group(Delimiter::Paren) else {
        return Err(cursor.expected("`(`"));
    };
    let mut types = Vec::new();
    let mut comma = false;
    while !inner.is_end() {
        types.push(nested(&mut inner, depth + 1)?);
        comma = inner.eat(b',');
        if !comma && !inner.is_end() {
            return Err(inner.expected("`,`"));
        }
    }
    match types.pop() {
        Some(only) if types.is_empty() && !comma => Ok(only.kind),
        last => {
            types.extend(last);
            Ok(TypeKind::Tuple(types))
        }
    }
}

/// Supports only literal lengths.
fn array(cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<TypeKind>, Diagnostic> {
    let Some(mut inner) = cursor.group(Delimiter::Bracket) else {
        return Err(cursor.expected("`[`"));
    };
    let item = Box::new(nested(&mut inner, depth + 1)?);
    if inner.is_end() {
        return Ok(Some(TypeKind::Array(item, None)));
    }
    inner.expect(b';')?;
    let length = match inner.literal() {
        Some((LiteralKind::Integer, literal)) if inner.is_end() => integer_value(literal),
        _ => None,
    };
    let length = length.and_then(|length| u64::try_from(length).ok());
    Ok(length.map(|length| TypeKind::Array(item, Some(length))))
}

/// Words that look like the start of a path, but aren't.
const OTHER: &[&str] = &["fn", "impl", "dyn", "unsafe", "extern", "for", "_"];

/// Reads `a::b::C<D, E>`. Returns `None` for types that merely start like a path.
fn path(cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<TypeKind>, Diagnostic> {
    if cursor.kind() == Kind::Ident && OTHER.contains(&cursor.text()) {
        return Ok(None);
    }
    let mut segments = Vec::with_capacity(1);
    if cursor.eat_pair(b':', b':') {
        segments.push(String::new());
    }
    loop {
        let Some(ident) = cursor.any_ident() else {
            return Err(cursor.expected("identifier"));
        };
        segments.push(ident.text.to_owned());
        let mut ahead = *cursor;
        let turbofish = ahead.eat_pair(b':', b':');
        let args = if ahead.is_punct(b'<') {
            *cursor = ahead;
            let Some(args) = arguments(cursor, depth)? else {
                return Ok(None);
            };
            args
        } else {
            Vec::new()
        };
        if cursor.is_group(Delimiter::Paren) || (turbofish && ahead.is_group(Delimiter::Paren)) {
            // E.g. `Fn(A) -> B`.
            return Ok(None);
        }
        if !cursor.eat_pair(b':', b':') {
            // E.g. `m!(…)`, or `A + B` without `dyn`.
            let more = cursor.is_punct(b'!') || cursor.is_punct(b'+');
            return Ok((!more).then_some(TypeKind::Path(segments, args)));
        }
    }
}

/// `None` if an argument isn't a type.
fn arguments(cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<Vec<TypeRef>>, Diagnostic> {
    cursor.expect(b'<')?;
    let mut types = Vec::with_capacity(1);
    let mut plain = true;
    while !cursor.eat(b'>') {
        match cursor.kind() {
            Kind::Lifetime => cursor.skip(),
            Kind::Literal(_) | Kind::Open(Delimiter::Brace) => {
                plain = false;
                cursor.skip();
            }
            Kind::Punct(b'-') => {
                plain = false;
                cursor.skip();
                cursor.skip();
            }
            Kind::Ident if matches!(cursor.text(), "true" | "false") => {
                plain = false;
                cursor.skip();
            }
            _ => types.push(nested(cursor, depth + 1)?),
        }
        // E.g. `Item = T`, or `Item: Bound`.
        if cursor.is_punct(b'=') || (cursor.is_punct(b':') && !cursor.is_pair(b':', b':')) {
            plain = false;
            cursor.skip();
            if cursor.group(Delimiter::Brace).is_none() {
                pass_type(cursor);
            }
        }
        if !cursor.eat(b',') && !cursor.is_punct(b'>') {
            return Err(cursor.expected("`,`"));
        }
    }
    Ok(plain.then_some(types))
}

/// Skips a type (or bounds) without interpreting it, up to a token that ends it.
pub(crate) fn pass_type(cursor: &mut Cursor<'_>) {
    let start = *cursor;
    let mut angles = 0usize;
    while !cursor.is_end() {
        match cursor.kind() {
            Kind::Punct(b'-' | b'=') if cursor.is_pair(b'-', b'>') || cursor.is_pair(b'=', b'>') => {
                cursor.skip();
            }
            Kind::Punct(b'<') => angles += 1,
            Kind::Punct(b'>') if angles == 0 => return,
            Kind::Punct(b'>') => angles -= 1,
            Kind::Punct(b',' | b';' | b'=') if angles == 0 => return,
            Kind::Punct(b':') if cursor.is_pair(b':', b':') => cursor.skip(),
            Kind::Punct(b':') if angles == 0 => return,
            // `m! { … }` is a type, unlike a `!` before a function body.
            Kind::Punct(b'!')
                if !cursor.is_at(start) && cursor.second_kind() == Kind::Open(Delimiter::Brace) =>
            {
                cursor.skip();
            }
            Kind::Open(Delimiter::Brace) if angles == 0 => return,
            Kind::Ident if angles == 0 && cursor.is_word("where") => return,
            _ => {}
        }
        cursor.skip();
    }
}

pub(crate) fn pass_angles(cursor: &mut Cursor<'_>) {
    let mut angles = 0usize;
    while !cursor.is_end() {
        match cursor.kind() {
            Kind::Punct(b'-') if cursor.is_pair(b'-', b'>') => cursor.skip(),
            Kind::Punct(b'<') => angles += 1,
            Kind::Punct(b'>') => angles = angles.saturating_sub(1),
            _ => {}
        }
        cursor.skip();
        if angles == 0 {
            return;
        }
    }
}

pub(crate) fn as_written(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ty: &TypeRef) -> String {
        let list = |types: &[TypeRef]| types.iter().map(shown).collect::<Vec<_>>().join(",");
        match &ty.kind {
            TypeKind::Path(segments, args) => format!("{}<{}>", segments.join("::"), list(args)),
            TypeKind::Array(item, length) => format!("[{};{length:?}]", shown(item)),
            TypeKind::Tuple(types) => format!("({})", list(types)),
            TypeKind::Other(text) => format!("other {text}"),
        }
    }

    fn check(ty: &str, expected: &str) {
        let tokens = lex(ty).expect("tokens");
        let mut cursor = tokens.cursor();
        let shown = TypeRef::read(&mut cursor).map(|ty| shown(&ty));
        assert_eq!(
            shown.as_deref().map_err(|error| &*error.message),
            Ok(expected),
            "{ty}"
        );
        assert!(cursor.kind() == Kind::End, "{ty} is not read to its end");
    }

    #[test]
    fn reads_types() {
        check("i32", "i32<>");
        check("::std::string::String", "::std::string::String<>");
        check("r#type::T", "type::T<>");
        check("Option<Vec<a::B>>", "Option<Vec<a::B<>>>");
        check("Option::<i32>", "Option<i32<>>");
        check("Cow<'static, str>", "Cow<str<>>");
        check("&'static str", "str<>");
        check("&&mut T", "T<>");
        check("(i32)", "i32<>");
        check("[u8; 4]", "[u8<>;Some(4)]");
        check("[u8; 0x10usize]", "[u8<>;Some(16)]");
        check("Box<[u8]>", "Box<[u8<>;None]>");
        check("()", "()");
        check("(A,)", "(A<>)");
        check("(A, B)", "(A<>,B<>)");
    }

    #[test]
    fn keeps_other_types_as_text() {
        for ty in [
            "[u8; N]",
            "[u8; 2 * 2]",
            "Ring<4>",
            "Ring<-4>",
            "Ring<{ N + 1 }>",
            "a::B<4>::C",
            "<T as X>::Y",
            "fn()",
            "unsafe extern \"C\" fn(u8) -> u8",
            "for<'a> fn(&'a u8) -> Vec<u8>",
            "Box<dyn Fn(A, B) -> C + Send>",
            "impl Iterator<Item = (A, B)>",
            "dyn Trait<A> + 'static",
            "Iterator<Item = A>",
            "Iterator<Item: Copy>",
            "Trait + Send",
            "*const u8",
            "!",
            "_",
            "m!(a, b)",
            "a::m! { fn(a: B) -> C }",
        ] {
            let inner = ty.strip_prefix("Box<").and_then(|ty| ty.strip_suffix('>'));
            match inner {
                Some(inner) => check(ty, &format!("Box<other {inner}>")),
                None => check(ty, &format!("other {ty}")),
            }
        }
        check("[u8 ;\n N]", "other [u8 ; N]");
    }

    #[test]
    fn rejects_non_types() {
        for ty in ["", "=", "a::", "Vec<", "Vec<A B>", "(A B)", "[A B]", "[]", "5"] {
            let tokens = lex(ty).expect("tokens");
            let mut cursor = tokens.cursor();
            let read = TypeRef::read(&mut cursor).is_ok() && cursor.kind() == Kind::End;
            assert!(!read, "{ty}");
        }
    }

    #[test]
    fn limits_depth() {
        let ty = format!("{}u8{}", "Box<".repeat(1000), ">".repeat(1000));
        let tokens = lex(&ty).expect("tokens");
        let error = TypeRef::read(&mut tokens.cursor()).expect_err("too deep");
        assert!(!error.is_error());
    }
}
