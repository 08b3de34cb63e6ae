//! Functions: name and parameters.

use super::pass_header;
use crate::token::{Cursor, Delimiter, Ident, Kind, Malformed};
use crate::{TypeRef, attribute, types};

/// A function as declared.
#[derive(Debug)]
pub struct Function<'a> {
    /// Its name.
    pub ident: Ident<'a>,
    inputs: Cursor<'a>,
}

/// One parameter of a function.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// `self` in any form.
    Receiver,
    /// A pattern with a type.
    Typed(TypeRef),
}

impl Function<'_> {
    /// Reads the parameters.
    pub fn parameters(&self) -> Result<Vec<Parameter>, Malformed> {
        let mut cursor = self.inputs;
        let mut parameters = Vec::new();
        while !cursor.is_end() {
            attribute::read_outer(&mut cursor, &mut Vec::new())?;
            parameters.push(parameter(&mut cursor)?);
            if !cursor.is_end() {
                cursor.expect(b',')?;
            }
        }
        Ok(parameters)
    }
}

/// From `fn` to behind the body, or behind the semicolon in its place.
pub(super) fn read<'a>(cursor: &mut Cursor<'a>) -> Result<Function<'a>, Malformed> {
    cursor.skip();
    let ident = cursor.ident()?;
    if cursor.is_punct(b'<') {
        types::pass_angles(cursor);
    }
    let Some(inputs) = cursor.group(Delimiter::Paren) else {
        return Err(cursor.expected("`(`"));
    };
    pass_header(cursor);
    if !cursor.eat(b';') && cursor.group(Delimiter::Brace).is_none() {
        return Err(cursor.expected("`{` or `;`"));
    }
    Ok(Function { ident, inputs })
}

fn parameter(cursor: &mut Cursor<'_>) -> Result<Parameter, Malformed> {
    let mut ahead = *cursor;
    if ahead.eat(b'&') && ahead.kind() == Kind::Lifetime {
        ahead.skip();
    }
    ahead.eat_word("mut");
    if ahead.eat_word("self") && !ahead.is_pair(b':', b':') {
        *cursor = ahead;
        if cursor.eat(b':') {
            TypeRef::read(cursor)?;
        }
        return Ok(Parameter::Receiver);
    }
    loop {
        if cursor.is_end() || cursor.is_punct(b',') {
            return Err(cursor.expected("`:`"));
        }
        if !cursor.eat_pair(b':', b':') {
            if cursor.eat(b':') {
                return TypeRef::read(cursor).map(Parameter::Typed);
            }
            cursor.skip();
        }
    }
}
