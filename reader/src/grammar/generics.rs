//! `<'a, T: Bound = Default, const N: usize>`.

use crate::token::{Cursor, Delimiter, Ident, Kind, Malformed};
use crate::{Span, TypeRef, attribute, types};

/// The parameters of an item, without lifetimes.
#[derive(Debug, Default)]
pub struct Generics<'a> {
    /// In order.
    pub list: Vec<Generic<'a>>,
}

/// One parameter.
#[derive(Debug)]
pub enum Generic<'a> {
    /// A type, and what it is when it is not given.
    Type(Ident<'a>, Option<TypeRef>),
    /// A constant.
    Const(Span),
}

impl<'a> Generics<'a> {
    /// Reads the parameters, if there are any.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let mut generics = Generics::default();
        if !cursor.eat(b'<') {
            return Ok(generics);
        }
        while !cursor.eat(b'>') {
            attribute::read_outer(cursor, &mut Vec::new())?;
            generics.list.extend(parameter(cursor)?);
            if !cursor.eat(b',') && !cursor.is_punct(b'>') {
                return Err(cursor.expected("`,` or `>`"));
            }
        }
        Ok(generics)
    }
}

fn parameter<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Generic<'a>>, Malformed> {
    let start = *cursor;
    if cursor.kind() == Kind::Lifetime {
        cursor.skip();
        pass_bounds(cursor);
        return Ok(None);
    }
    if cursor.eat_word("const") {
        cursor.ident()?;
        cursor.expect(b':')?;
        types::pass(cursor);
        if cursor.eat(b'=') && cursor.group(Delimiter::Brace).is_none() {
            types::pass(cursor);
        }
        return Ok(Some(Generic::Const(cursor.span_since(start))));
    }
    let ident = cursor.ident()?;
    pass_bounds(cursor);
    let default = if cursor.eat(b'=') {
        Some(TypeRef::read(cursor)?)
    } else {
        None
    };
    Ok(Some(Generic::Type(ident, default)))
}

fn pass_bounds(cursor: &mut Cursor<'_>) {
    if cursor.eat(b':') {
        types::pass(cursor);
    }
}
