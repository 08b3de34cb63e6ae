//! `<'a, T: Bound = Default, const N: usize>` and `where` clauses.

use super::pass_header;
use crate::token::{Cursor, Delimiter, Ident};
use crate::{Diagnostic, Span, TypeRef, attribute, types};

/// The generic parameters of an item.
#[derive(Debug, Default)]
pub struct Generics<'a> {
    /// The parameters, in source order.
    pub list: Vec<Generic<'a>>,
    /// The predicates of the `where` clause, excluding the keyword.
    pub predicates: Option<Span>,
}

/// A generic parameter.
#[derive(Debug)]
pub struct Generic<'a> {
    /// The kind of parameter.
    pub kind: GenericKind,
    /// The name, including the `'` of lifetimes.
    pub ident: Ident<'a>,
    /// The parameter with its bounds or type, but excluding its default.
    pub declaration: Span,
    /// The default of a type parameter.
    pub default: Option<TypeRef>,
}

/// The kinds of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenericKind {
    /// `'a: 'b`.
    Lifetime,
    /// `T: Bound = Default`.
    Type,
    /// `const N: usize = 1`.
    Const,
}

impl<'a> Generics<'a> {
    /// Reads the parameters. The `where` clause is read separately, because it follows the fields
    /// in a tuple struct.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Diagnostic> {
        let mut generics = Generics::default();
        if !cursor.eat(b'<') {
            return Ok(generics);
        }
        while !cursor.eat(b'>') {
            attribute::read_outer(cursor, &mut Vec::new())?;
            generics.list.push(parameter(cursor)?);
            if !cursor.eat(b',') && !cursor.is_punct(b'>') {
                return Err(cursor.expected("`,` or `>`"));
            }
        }
        Ok(generics)
    }

    pub(super) fn read_predicates(&mut self, cursor: &mut Cursor<'a>) {
        if !cursor.eat_word("where") {
            return;
        }
        let start = *cursor;
        pass_header(cursor);
        if !cursor.is_at(start) {
            self.predicates = Some(cursor.span_since(start));
        }
    }
}

fn parameter<'a>(cursor: &mut Cursor<'a>) -> Result<Generic<'a>, Diagnostic> {
    let start = *cursor;
    if let Some(ident) = cursor.lifetime() {
        pass_bounds(cursor);
        return Ok(Generic {
            kind: GenericKind::Lifetime,
            ident,
            declaration: cursor.span_since(start),
            default: None,
        });
    }
    if cursor.eat_word("const") {
        let ident = cursor.ident()?;
        cursor.expect(b':')?;
        types::pass_type(cursor);
        let declaration = cursor.span_since(start);
        // The default may be a block, a literal or a path.
        if cursor.eat(b'=') && cursor.group(Delimiter::Brace).is_none() {
            types::pass_type(cursor);
        }
        return Ok(Generic {
            kind: GenericKind::Const,
            ident,
            declaration,
            default: None,
        });
    }
    let ident = cursor.ident()?;
    pass_bounds(cursor);
    let declaration = cursor.span_since(start);
    let default = if cursor.eat(b'=') {
        Some(TypeRef::read(cursor)?)
    } else {
        None
    };
    Ok(Generic {
        kind: GenericKind::Type,
        ident,
        declaration,
        default,
    })
}

fn pass_bounds(cursor: &mut Cursor<'_>) {
    if cursor.eat(b':') {
        types::pass_type(cursor);
    }
}

#[cfg(test)]
mod tests {
    use crate::grammar::{ItemKind, Items};
    use crate::token::lex;

    fn check(source: &str, declarations: &[&str], defaults: &[&str], predicates: Option<&str>) {
        let tokens = lex(source).expect("tokens");
        let item = Items::new(tokens.cursor(), None).read().expect("an item");
        let Some(ItemKind::Type(ty)) = item.map(|item| item.kind) else {
            panic!("{source} is not a type");
        };
        let generics = &ty.generics;
        let text = |span: crate::Span| &source[span.range()];
        let declared: Vec<_> = generics.list.iter().map(|each| text(each.declaration)).collect();
        assert_eq!(declared, declarations, "{source}");
        let found: Vec<_> = generics
            .list
            .iter()
            .filter_map(|each| each.default.as_ref())
            .collect();
        let found: Vec<_> = found.into_iter().map(|ty| text(ty.span)).collect();
        assert_eq!(found, defaults, "{source}");
        assert_eq!(generics.predicates.map(text), predicates, "{source}");
    }

    #[test]
    fn reads_parameters_and_predicates() {
        check("struct S;", &[], &[], None);
        check(
            "struct S<'a: 'static, #[x] T: A<B = C> + 'a = Vec<u8>, const N: usize = { 1 }>(T);",
            &["'a: 'static", "T: A<B = C> + 'a", "const N: usize"],
            &["Vec<u8>"],
            None,
        );
        check(
            "struct S<T,>(T) where T: Fn(u8) -> Vec<u8>, for<'a> &'a T: Copy,;",
            &["T"],
            &[],
            Some("T: Fn(u8) -> Vec<u8>, for<'a> &'a T: Copy,"),
        );
        check("enum E<T:> where T: A { B(T) }", &["T:"], &[], Some("T: A"));
        check("struct S<T> where { a: T }", &["T"], &[], None);
        check("union U<T> where T: Copy { a: T }", &["T"], &[], Some("T: Copy"));
    }
}
