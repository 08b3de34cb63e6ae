//! Reads the items of a file, a module or an `impl`.
//!
//! Parses attributes, names, generics, fields and variants. For everything else (function bodies,
//! values of constants, `where` clauses, `impl` headers), only the location is recorded: checking
//! the syntax is up to rustc.

mod data;
mod function;
mod generics;
mod implementation;

pub use data::{Body, FieldItem, Fields, TypeItem, VariantItem};
pub use function::{Function, Parameter};
pub use generics::{Generic, GenericKind, Generics};
pub use implementation::Implementation;

use crate::attribute::{self, Attribute};
use crate::cfg::{Cfg, Conditions};
use crate::token::{Cursor, Delimiter, Ident, Kind};
use crate::{Diagnostic, Span, TypeRef, types};

/// Iterates over items while evaluating `cfg` and `cfg_attr`.
#[derive(Clone, Debug)]
pub struct Items<'a, 'c> {
    cursor: Cursor<'a>,
    /// `None` if the compiler already evaluated conditions.
    cfg: Option<&'c Cfg>,
}

/// An item.
#[derive(Debug)]
pub struct Item<'a> {
    /// The attributes with `cfg_attr` expanded, including inner attributes of a module or `impl`.
    pub attrs: Vec<Attribute<'a>>,
    /// Locations of the outer and the inner attributes.
    pub written: [Span; 2],
    /// Whether the item is enabled. Disabled items are always [`ItemKind::Other`].
    pub active: bool,
    /// The conditions on the item and its parts, for diagnostics.
    pub conditions: Conditions<'a>,
    /// `pub`, `pub(crate)` etc.
    pub visibility: Option<Span>,
    /// Location of the whole item.
    pub span: Span,
    /// The kind of item.
    pub kind: ItemKind<'a>,
}

/// Inner attributes: `#![…]` and `//!…`.
#[derive(Debug)]
pub struct InnerAttributes<'a> {
    /// The attributes, with `cfg_attr` expanded.
    pub attrs: Vec<Attribute<'a>>,
    /// Whether the attributes leave the file or item enabled.
    pub active: bool,
    /// The conditions among the attributes, for diagnostics.
    pub conditions: Conditions<'a>,
}

/// The kinds of items.
#[derive(Debug)]
pub enum ItemKind<'a> {
    /// A struct, enum or union.
    Type(TypeItem<'a>),
    /// A function, with or without a body.
    Function(Function<'a>),
    /// An `impl`.
    Impl(Implementation<'a>),
    /// A trait and its content.
    Trait(Ident<'a>, Cursor<'a>),
    /// A module, along with its content if it's inline.
    Module(Ident<'a>, Option<Cursor<'a>>),
    /// The tree of a `use`.
    Use(Cursor<'a>),
    /// A `type` alias.
    Alias(Alias<'a>),
    /// `extern crate name as other;`.
    ExternCrate(Ident<'a>, Option<Ident<'a>>),
    /// A `const` or a `static`.
    Constant(Constant<'a>),
    /// `name!(…)`.
    Macro(Macro<'a>),
    /// Any other item.
    Other,
}

/// `type Name<T> = Target;`
#[derive(Debug)]
pub struct Alias<'a> {
    /// The name.
    pub ident: Ident<'a>,
    /// The generic parameters.
    pub generics: Generics<'a>,
    /// The aliased type; `None` in a trait.
    pub target: Option<TypeRef>,
}

/// `const NAME: Type = value;`, `static NAME: Type = value;`
#[derive(Debug)]
pub struct Constant<'a> {
    /// The name, possibly `_`.
    pub ident: Ident<'a>,
    /// The type.
    pub ty: TypeRef,
    /// A cursor at the value, which ends at a semicolon. `None` for a trait constant without a
    /// value.
    pub value: Option<Cursor<'a>>,
}

/// `path::name!(…)`
#[derive(Debug)]
pub struct Macro<'a> {
    /// The segments of the path.
    pub path: Vec<&'a str>,
    /// The content of the delimiters.
    pub body: Cursor<'a>,
    /// Location of the call, excluding the trailing semicolon.
    pub span: Span,
}

impl<'a, 'c> Items<'a, 'c> {
    /// Creates an iterator over items, from a cursor at the start of a file or inside braces.
    ///
    /// Without `cfg`, attributes are kept as written.
    pub fn new(cursor: Cursor<'a>, cfg: Option<&'c Cfg>) -> Self {
        Items { cursor, cfg }
    }

    /// Reads `#![…]` and `//!…` at the start.
    ///
    /// # Errors
    ///
    /// Returns an error if `#!` doesn't start an attribute.
    pub fn read_inner_attributes(&mut self) -> Result<InnerAttributes<'a>, Diagnostic> {
        let mut attrs = Vec::new();
        attribute::read_inner(&mut self.cursor, &mut attrs)?;
        let mut conditions = Conditions::default();
        let active = configure(&mut attrs, self.cfg, &mut conditions);
        Ok(InnerAttributes {
            attrs,
            active,
            conditions,
        })
    }

    /// Reads the next item. Returns `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns an error if the item is malformed. Subsequent items can't be read then.
    pub fn read(&mut self) -> Result<Option<Item<'a>>, Diagnostic> {
        if self.cursor.is_end() {
            return Ok(None);
        }
        let start = self.cursor;
        let mut attrs = Vec::new();
        attribute::read_outer(&mut self.cursor, &mut attrs)?;
        let front = span_of(&attrs);
        let mut conditions = Conditions::default();
        let mut active = configure(&mut attrs, self.cfg, &mut conditions);
        let cfg = self.cfg.filter(|_| active);
        let visibility = read_visibility(&mut self.cursor);
        let mut kind = kind(&mut self.cursor, cfg, &mut conditions)?;
        let mut inside = Span::default();
        if let ItemKind::Module(_, Some(content))
        | ItemKind::Impl(Implementation { content, .. })
        | ItemKind::Trait(_, content) = &mut kind
        {
            let mut inner = Vec::new();
            attribute::read_inner(content, &mut inner)?;
            inside = span_of(&inner);
            active &= configure(&mut inner, cfg, &mut conditions);
            attrs.append(&mut inner);
        }
        Ok(Some(Item {
            attrs,
            written: [front, inside],
            active,
            conditions,
            visibility,
            span: self.cursor.span_since(start),
            kind: if active { kind } else { ItemKind::Other },
        }))
    }
}

fn configure<'a>(attrs: &mut Vec<Attribute<'a>>, cfg: Option<&Cfg>, conditions: &mut Conditions<'a>) -> bool {
    cfg.is_none_or(|cfg| cfg.configure(attrs, conditions))
}

fn span_of(attrs: &[Attribute<'_>]) -> Span {
    match attrs {
        [] => Span::default(),
        [first, .., last] => first.span().to(last.span()),
        [only] => only.span(),
    }
}

fn kind<'a>(
    cursor: &mut Cursor<'a>,
    cfg: Option<&Cfg>,
    conditions: &mut Conditions<'a>,
) -> Result<ItemKind<'a>, Diagnostic> {
    let start = *cursor;
    if !matches!(start.kind(), Kind::Ident | Kind::RawIdent | Kind::Punct(b':')) {
        return Err(start.expected("an item"));
    }
    match start.text() {
        "struct" => return data::read_struct(cursor, cfg, conditions).map(ItemKind::Type),
        "enum" => return data::read_enum(cursor, cfg, conditions).map(ItemKind::Type),
        "union" if matches!(start.second_kind(), Kind::Ident | Kind::RawIdent) => {
            return data::read_union(cursor).map(ItemKind::Type);
        }
        "use" => {
            cursor.skip();
            let tree = *cursor;
            pass_statement(cursor)?;
            return Ok(ItemKind::Use(tree));
        }
        "type" => return alias(cursor).map(ItemKind::Alias),
        "static" => return constant(cursor),
        "macro" if matches!(start.second_kind(), Kind::Ident | Kind::RawIdent) => {
            pass_header(cursor);
            body(cursor)?;
            return Ok(ItemKind::Other);
        }
        "extern" if start.is_second_word("crate") => return extern_crate(cursor),
        _ => {}
    }
    if let Some(kind) = qualified(cursor)? {
        return Ok(kind);
    }
    *cursor = start;
    if cursor.is_word("const") {
        return constant(cursor);
    }
    macro_call(cursor).map(ItemKind::Macro)
}

/// Reads an item that may start with qualifiers such as `unsafe` or `async`. Returns `None` for
/// anything else.
fn qualified<'a>(cursor: &mut Cursor<'a>) -> Result<Option<ItemKind<'a>>, Diagnostic> {
    let start = *cursor;
    let mut is_async = false;
    let mut foreign = false;
    while cursor.kind() == Kind::Ident {
        match cursor.text() {
            "fn" => {
                return function::read_function(start, is_async, cursor)
                    .map(ItemKind::Function)
                    .map(Some);
            }
            "impl" => return implementation::read_impl(cursor).map(ItemKind::Impl).map(Some),
            "trait" => return trait_item(cursor).map(Some),
            "mod" => return module(cursor).map(Some),
            "static" => {
                pass_statement(cursor)?;
                return Ok(Some(ItemKind::Other));
            }
            "extern" => {
                foreign = true;
                cursor.skip();
                cursor.literal();
            }
            "async" => {
                is_async = true;
                cursor.skip();
            }
            "const" | "unsafe" | "safe" | "default" | "auto" | "gen" => cursor.skip(),
            _ => break,
        }
    }
    if foreign && cursor.group(Delimiter::Brace).is_some() {
        return Ok(Some(ItemKind::Other));
    }
    Ok(None)
}

fn trait_item<'a>(cursor: &mut Cursor<'a>) -> Result<ItemKind<'a>, Diagnostic> {
    cursor.skip();
    let ident = cursor.ident()?;
    pass_header(cursor);
    if cursor.is_punct(b'=') {
        // Trait alias.
        pass_statement(cursor)?;
        return Ok(ItemKind::Other);
    }
    Ok(ItemKind::Trait(ident, body(cursor)?))
}

fn module<'a>(cursor: &mut Cursor<'a>) -> Result<ItemKind<'a>, Diagnostic> {
    cursor.skip();
    let ident = cursor.ident()?;
    if cursor.eat(b';') {
        return Ok(ItemKind::Module(ident, None));
    }
    match cursor.group(Delimiter::Brace) {
        Some(content) => Ok(ItemKind::Module(ident, Some(content))),
        None => Err(cursor.expected("`;` or `{`")),
    }
}

fn alias<'a>(cursor: &mut Cursor<'a>) -> Result<Alias<'a>, Diagnostic> {
    cursor.skip();
    let ident = cursor.ident()?;
    let mut generics = Generics::read(cursor)?;
    // Associated types may have bounds.
    if cursor.eat(b':') {
        types::pass_type(cursor);
    }
    generics.read_predicates(cursor);
    let target = if cursor.eat(b'=') {
        Some(TypeRef::read(cursor)?)
    } else {
        None
    };
    generics.read_predicates(cursor);
    cursor.expect(b';')?;
    Ok(Alias {
        ident,
        generics,
        target,
    })
}

/// Reads a `const` or `static`. Unsupported forms become [`ItemKind::Other`].
fn constant<'a>(cursor: &mut Cursor<'a>) -> Result<ItemKind<'a>, Diagnostic> {
    let start = *cursor;
    pass_statement(cursor)?;
    Ok(constant_at(start).map_or(ItemKind::Other, ItemKind::Constant))
}

fn constant_at(mut cursor: Cursor<'_>) -> Option<Constant<'_>> {
    cursor.skip();
    cursor.eat_word("mut");
    let ident = cursor.any_ident()?;
    if !cursor.eat(b':') {
        return None;
    }
    let ty = TypeRef::read(&mut cursor).ok()?;
    let value = cursor.eat(b'=').then_some(cursor);
    Some(Constant { ident, ty, value })
}

fn extern_crate<'a>(cursor: &mut Cursor<'a>) -> Result<ItemKind<'a>, Diagnostic> {
    cursor.skip();
    cursor.skip();
    let Some(ident) = cursor.any_ident() else {
        return Err(cursor.expected("identifier"));
    };
    let rename = if cursor.eat_word("as") {
        cursor.any_ident()
    } else {
        None
    };
    cursor.expect(b';')?;
    Ok(ItemKind::ExternCrate(ident, rename))
}

fn macro_call<'a>(cursor: &mut Cursor<'a>) -> Result<Macro<'a>, Diagnostic> {
    let start = *cursor;
    let mut path = Vec::with_capacity(1);
    cursor.eat_pair(b':', b':');
    loop {
        match cursor.any_ident() {
            Some(ident) => path.push(ident.text),
            None => return Err(cursor.expected("identifier")),
        }
        if !cursor.eat_pair(b':', b':') {
            break;
        }
    }
    if !cursor.eat(b'!') {
        return Err(start.expected("an item"));
    }
    // The name in `macro_rules! name`.
    cursor.any_ident();
    let Some(body) = cursor.any_group() else {
        return Err(cursor.expected("`(`, `[` or `{`"));
    };
    let span = cursor.span_since(start);
    cursor.eat(b';');
    Ok(Macro { path, body, span })
}

fn read_visibility(cursor: &mut Cursor<'_>) -> Option<Span> {
    let start = *cursor;
    pass_visibility(cursor);
    (!cursor.is_at(start)).then(|| cursor.span_since(start))
}

fn pass_visibility(cursor: &mut Cursor<'_>) {
    if !cursor.eat_word("pub") {
        return;
    }
    let mut ahead = *cursor;
    let Some(mut inner) = ahead.group(Delimiter::Paren) else {
        return;
    };
    // In a tuple struct's `pub (A, B)`, the parentheses belong to the field's type.
    let restricted = inner.is_word("in")
        || ["crate", "self", "super"]
            .iter()
            .any(|word| inner.eat_word(word) && inner.is_end());
    if restricted {
        *cursor = ahead;
    }
}

/// Skips to the `{`, `;` or `=` after the head of an item.
fn pass_header(cursor: &mut Cursor<'_>) {
    let mut angles = 0usize;
    while !cursor.is_end() {
        match cursor.kind() {
            Kind::Open(Delimiter::Brace) | Kind::Punct(b';') if angles == 0 => return,
            Kind::Punct(b'-' | b'=') if cursor.is_pair(b'-', b'>') || cursor.is_pair(b'=', b'>') => {
                cursor.skip();
            }
            Kind::Punct(b'=') if angles == 0 => return,
            Kind::Punct(b'<') => angles += 1,
            Kind::Punct(b'>') => angles = angles.saturating_sub(1),
            _ => {}
        }
        cursor.skip();
    }
}

fn pass_statement(cursor: &mut Cursor<'_>) -> Result<(), Diagnostic> {
    while !cursor.is_punct(b';') {
        if cursor.is_end() {
            return Err(cursor.expected("`;`"));
        }
        cursor.skip();
    }
    cursor.skip();
    Ok(())
}

fn body<'a>(cursor: &mut Cursor<'a>) -> Result<Cursor<'a>, Diagnostic> {
    cursor
        .group(Delimiter::Brace)
        .ok_or_else(|| cursor.expected("`{`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    fn alias_target(source: &str) -> Option<String> {
        let tokens = lex(source).expect("tokens");
        let mut items = Items::new(tokens.cursor(), None);
        let item = items.read().expect(source).expect("an item");
        assert!(items.read().expect(source).is_none(), "{source}");
        let ItemKind::Alias(alias) = item.kind else {
            panic!("{source} is not an alias");
        };
        alias.target.map(|target| source[target.span.range()].to_owned())
    }

    #[test]
    fn reads_aliases_with_bounds() {
        for (source, target) in [
            ("type A: Clone + a::B<C> + 'static;", None),
            ("type A<T: X>: Clone where T: Y;", None),
            ("type A: Fn(u8) -> u8 = fn(u8) -> u8;", Some("fn(u8) -> u8")),
            ("type A<T> = Vec<T>;", Some("Vec<T>")),
        ] {
            assert_eq!(alias_target(source).as_deref(), target, "{source}");
        }
    }
}
