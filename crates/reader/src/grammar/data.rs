//! Structs, enums and unions.

use super::{Generics, pass_visibility};
use crate::attribute::{self, Attribute};
use crate::cfg::{Cfg, Conditions};
use crate::token::{Cursor, Delimiter, Ident};
use crate::{Diagnostic, TypeRef, expr};

/// A struct, enum or union.
#[derive(Debug)]
pub struct TypeItem<'a> {
    /// The name.
    pub ident: Ident<'a>,
    /// The generic parameters.
    pub generics: Generics<'a>,
    /// The fields or variants.
    pub body: Body<'a>,
}

/// The fields or variants of a type.
#[derive(Debug)]
pub enum Body<'a> {
    /// The fields of a struct.
    Struct(Fields<'a>),
    /// The variants of an enum.
    Enum(Vec<VariantItem<'a>>),
    /// A union, whose fields aren't read.
    Union,
}

/// The fields of a struct or variant.
#[derive(Debug)]
pub enum Fields<'a> {
    /// `{ name: Type }`.
    Named(Vec<FieldItem<'a>>),
    /// `(Type)`.
    Unnamed(Vec<FieldItem<'a>>),
    /// No fields.
    Unit,
}

/// A field.
#[derive(Debug)]
pub struct FieldItem<'a> {
    /// The attributes, with `cfg_attr` expanded.
    pub attrs: Vec<Attribute<'a>>,
    /// The name; `None` for tuple fields.
    pub ident: Option<Ident<'a>>,
    /// The type.
    pub ty: TypeRef,
}

/// A variant.
#[derive(Debug)]
pub struct VariantItem<'a> {
    /// The attributes, with `cfg_attr` expanded.
    pub attrs: Vec<Attribute<'a>>,
    /// The name.
    pub ident: Ident<'a>,
    /// The fields.
    pub fields: Fields<'a>,
    /// Source text of the expression after `=`.
    pub discriminant: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// All fields, named or not.
    pub fn list(&self) -> &[FieldItem<'a>] {
        match self {
            Fields::Named(fields) | Fields::Unnamed(fields) => fields,
            Fields::Unit => &[],
        }
    }

    /// All fields, named or not.
    pub fn into_list(self) -> Vec<FieldItem<'a>> {
        match self {
            Fields::Named(fields) | Fields::Unnamed(fields) => fields,
            Fields::Unit => Vec::new(),
        }
    }
}

pub(super) fn read_struct<'a>(
    cursor: &mut Cursor<'a>,
    cfg: Option<&Cfg>,
    conditions: &mut Conditions<'a>,
) -> Result<TypeItem<'a>, Diagnostic> {
    let (ident, mut generics) = head(cursor)?;
    generics.read_predicates(cursor);
    let fields = if let Some(inner) = cursor.group(Delimiter::Brace) {
        Fields::Named(fields(inner, true, cfg, conditions)?)
    } else {
        let fields = match cursor.group(Delimiter::Paren) {
            Some(inner) => Fields::Unnamed(fields(inner, false, cfg, conditions)?),
            None => Fields::Unit,
        };
        // The `where` clause of a tuple struct follows its fields.
        generics.read_predicates(cursor);
        cursor.expect(b';')?;
        fields
    };
    Ok(TypeItem {
        ident,
        generics,
        body: Body::Struct(fields),
    })
}

pub(super) fn read_enum<'a>(
    cursor: &mut Cursor<'a>,
    cfg: Option<&Cfg>,
    conditions: &mut Conditions<'a>,
) -> Result<TypeItem<'a>, Diagnostic> {
    let (ident, mut generics) = head(cursor)?;
    generics.read_predicates(cursor);
    let inner = super::body(cursor)?;
    Ok(TypeItem {
        ident,
        generics,
        body: Body::Enum(variants(inner, cfg, conditions)?),
    })
}

pub(super) fn read_union<'a>(cursor: &mut Cursor<'a>) -> Result<TypeItem<'a>, Diagnostic> {
    let (ident, mut generics) = head(cursor)?;
    generics.read_predicates(cursor);
    super::body(cursor)?;
    Ok(TypeItem {
        ident,
        generics,
        body: Body::Union,
    })
}

fn head<'a>(cursor: &mut Cursor<'a>) -> Result<(Ident<'a>, Generics<'a>), Diagnostic> {
    cursor.skip();
    Ok((cursor.ident()?, Generics::read(cursor)?))
}

/// Returns the attributes of a field or variant, and whether it's enabled.
fn attributes<'a>(
    cursor: &mut Cursor<'a>,
    cfg: Option<&Cfg>,
    conditions: &mut Conditions<'a>,
) -> Result<(Vec<Attribute<'a>>, bool), Diagnostic> {
    let mut attrs = Vec::new();
    attribute::read_outer(cursor, &mut attrs)?;
    let Some(cfg) = cfg else {
        return Ok((attrs, true));
    };
    conditions.add_part(&attrs);
    let active = cfg.configure(&mut attrs, conditions);
    Ok((attrs, active))
}

fn fields<'a>(
    mut cursor: Cursor<'a>,
    named: bool,
    cfg: Option<&Cfg>,
    conditions: &mut Conditions<'a>,
) -> Result<Vec<FieldItem<'a>>, Diagnostic> {
    let mut fields = Vec::new();
    while !cursor.is_end() {
        let (attrs, active) = attributes(&mut cursor, cfg, conditions)?;
        pass_visibility(&mut cursor);
        let ident = if named {
            let ident = cursor.ident()?;
            cursor.expect(b':')?;
            Some(ident)
        } else {
            None
        };
        let ty = TypeRef::read(&mut cursor)?;
        if cursor.eat(b'=') {
            // Default field value.
            expr::pass_expr(&mut cursor);
        }
        if active {
            fields.push(FieldItem { attrs, ident, ty });
        }
        if !cursor.is_end() {
            cursor.expect(b',')?;
        }
    }
    Ok(fields)
}

fn variants<'a>(
    mut cursor: Cursor<'a>,
    cfg: Option<&Cfg>,
    conditions: &mut Conditions<'a>,
) -> Result<Vec<VariantItem<'a>>, Diagnostic> {
    let mut variants = Vec::new();
    while !cursor.is_end() {
        let (attrs, active) = attributes(&mut cursor, cfg, conditions)?;
        pass_visibility(&mut cursor);
        let ident = cursor.ident()?;
        // Ignore `cfg`s on the fields of a disabled variant.
        let cfg = cfg.filter(|_| active);
        let fields = if let Some(inner) = cursor.group(Delimiter::Brace) {
            Fields::Named(fields(inner, true, cfg, conditions)?)
        } else if let Some(inner) = cursor.group(Delimiter::Paren) {
            Fields::Unnamed(fields(inner, false, cfg, conditions)?)
        } else {
            Fields::Unit
        };
        let discriminant = cursor.eat(b'=').then(|| {
            let start = cursor;
            expr::pass_expr(&mut cursor);
            start.text_of(cursor.span_since(start))
        });
        if active {
            variants.push(VariantItem {
                attrs,
                ident,
                fields,
                discriminant,
            });
        }
        if !cursor.is_end() {
            cursor.expect(b',')?;
        }
    }
    Ok(variants)
}
