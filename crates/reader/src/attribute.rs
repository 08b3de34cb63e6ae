//! Attributes. As in rustc, doc comments are attributes too.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::args::Args;
use crate::token::{Cursor, Delimiter, Kind, LiteralKind, text_value};
use crate::{Diagnostic, Span};

/// `#[…]`, `#![…]`, or a doc comment, which is an attribute named `doc`.
#[derive(Clone, Debug)]
pub struct Attribute<'a> {
    /// Positioned at the path or the doc comment.
    meta: Cursor<'a>,
    /// Empty unless the path is a single identifier.
    name: &'a str,
    span: Span,
    /// Parsed lazily and boxed, because most attributes are doc comments.
    args: OnceCell<Box<Args<'a>>>,
}

/// The part of an attribute after its path.
#[derive(Clone, Copy, Debug)]
pub enum Form<'a> {
    /// The attribute consists only of a path.
    Path,
    /// `(…)`, or other delimiters.
    List(Cursor<'a>),
    /// `= …`. The cursor is positioned after the `=`.
    Value(Cursor<'a>),
}

impl<'a> Attribute<'a> {
    /// Reads the attributes and doc comments before an item, field or variant.
    ///
    /// # Errors
    ///
    /// Returns an error if a `#` doesn't start an attribute.
    pub fn read_outer(cursor: &mut Cursor<'a>) -> Result<Vec<Self>, Diagnostic> {
        let mut attrs = Vec::new();
        read_outer(cursor, &mut attrs)?;
        Ok(attrs)
    }

    /// Creates an attribute from part of another one, e.g. of a `cfg_attr`.
    pub(crate) fn of_meta(cursor: Cursor<'a>, span: Span) -> Self {
        Attribute::new(cursor, span)
    }

    fn new(meta: Cursor<'a>, span: Span) -> Self {
        let name = match meta.kind() {
            Kind::Ident if !is_path(meta) => meta.text(),
            Kind::OuterDoc | Kind::InnerDoc => "doc",
            _ => "",
        };
        Attribute {
            meta,
            name,
            span,
            args: OnceCell::new(),
        }
    }

    /// Whether the path is this single identifier.
    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Returns the segments of the path, without `r#`.
    pub fn segments(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut cursor = self.meta;
        let mut doc = matches!(cursor.kind(), Kind::OuterDoc | Kind::InnerDoc).then_some("doc");
        std::iter::from_fn(move || {
            if doc.is_some() {
                return doc.take();
            }
            cursor.eat_pair(b':', b':');
            cursor.any_ident().map(|ident| {
                // Skip type arguments, which aren't part of the path.
                if !cursor.is_pair(b':', b':') {
                    while !cursor.is_end() {
                        cursor.skip();
                    }
                }
                ident.text
            })
        })
    }

    /// Returns the last segment of the path, e.g. `test` for `#[tokio::test]`.
    pub fn last_segment(&self) -> &'a str {
        match self.name {
            "" => self.segments().last().unwrap_or_default(),
            name => name,
        }
    }

    /// Location of the attribute, including `#` and brackets.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Source text of the attribute, including `#` and brackets.
    pub fn text(&self) -> &'a str {
        self.meta.text_of(self.span)
    }

    /// Location of the path.
    pub fn path_span(&self) -> Span {
        let mut cursor = self.meta;
        pass_path(&mut cursor);
        cursor.span_since(self.meta)
    }

    /// Returns the part after the path.
    pub fn form(&self) -> Form<'a> {
        let mut cursor = self.meta;
        pass_path(&mut cursor);
        if let Some(list) = cursor.any_group() {
            Form::List(list)
        } else if cursor.eat(b'=') {
            Form::Value(cursor)
        } else {
            Form::Path
        }
    }

    /// The arguments of `#[name(…)]`. Empty for other attributes. Parsed on the first call and
    /// cached, since an attribute may have several readers.
    pub fn args(&self) -> &Args<'a> {
        self.args.get_or_init(|| {
            Box::new(match self.form() {
                Form::List(list) => Args::read(list),
                Form::Path | Form::Value(_) => Args::default(),
            })
        })
    }

    /// Returns an argument of `#[outer(name, name = …, name(…))]` as a separate attribute.
    pub fn argument(&self, name: &str) -> Option<Attribute<'a>> {
        let Form::List(mut list) = self.form() else {
            return None;
        };
        while !list.is_end() {
            if list.is_word(name) {
                return Some(Attribute::of_meta(list, list.span()));
            }
            while !list.is_end() && !list.eat(b',') {
                list.skip();
            }
        }
        None
    }

    /// Returns the string in `#[name = "…"]`, or the text of a doc comment.
    pub fn value_text(&self) -> Option<Cow<'a, str>> {
        match self.meta.kind() {
            Kind::OuterDoc | Kind::InnerDoc => Some(doc_text(self.meta.text())),
            _ => match self.form() {
                Form::Value(cursor) => read_string(cursor),
                _ => None,
            },
        }
    }
}

/// Returns the value of the next string literal, which may be parenthesized.
pub fn read_string(mut cursor: Cursor<'_>) -> Option<Cow<'_, str>> {
    while let Some(inner) = cursor.group(Delimiter::Paren) {
        cursor = inner;
    }
    match cursor.literal() {
        Some((LiteralKind::Text, literal)) => text_value(literal),
        _ => None,
    }
}

fn doc_text(comment: &str) -> Cow<'_, str> {
    let text = &comment[3..];
    let text = if comment.starts_with("/*") {
        text.strip_suffix("*/").unwrap_or(text)
    } else {
        text.strip_suffix('\r').unwrap_or(text)
    };
    crate::token::with_plain_lines(text)
}

fn is_path(mut cursor: Cursor<'_>) -> bool {
    cursor.skip();
    cursor.is_pair(b':', b':')
}

fn pass_path(cursor: &mut Cursor<'_>) {
    if matches!(cursor.kind(), Kind::OuterDoc | Kind::InnerDoc) {
        return cursor.skip();
    }
    cursor.eat_pair(b':', b':');
    while cursor.any_ident().is_some() && cursor.eat_pair(b':', b':') {}
}

pub(crate) fn read_outer<'a>(cursor: &mut Cursor<'a>, to: &mut Vec<Attribute<'a>>) -> Result<(), Diagnostic> {
    loop {
        let start = *cursor;
        match start.kind() {
            Kind::OuterDoc => {
                cursor.skip();
                to.push(Attribute::new(start, start.span()));
            }
            Kind::Punct(b'#') => {
                cursor.skip();
                bracketed(cursor, start, to)?;
            }
            _ => return Ok(()),
        }
    }
}

pub(crate) fn read_inner<'a>(cursor: &mut Cursor<'a>, to: &mut Vec<Attribute<'a>>) -> Result<(), Diagnostic> {
    loop {
        let start = *cursor;
        match start.kind() {
            Kind::InnerDoc => {
                cursor.skip();
                to.push(Attribute::new(start, start.span()));
            }
            // Could also be an outer attribute of the first item, so look ahead before consuming
            // anything.
            Kind::Punct(b'#') => {
                let mut ahead = start;
                ahead.skip();
                if !ahead.eat(b'!') {
                    return Ok(());
                }
                *cursor = ahead;
                bracketed(cursor, start, to)?;
            }
            _ => return Ok(()),
        }
    }
}

fn bracketed<'a>(
    cursor: &mut Cursor<'a>,
    start: Cursor<'a>,
    to: &mut Vec<Attribute<'a>>,
) -> Result<(), Diagnostic> {
    let Some(meta) = cursor.group(Delimiter::Bracket) else {
        return Err(cursor.expected("`[`"));
    };
    let mut path = meta;
    path.eat_pair(b':', b':');
    if path.any_ident().is_none() {
        return Err(path.expected("identifier"));
    }
    to.push(Attribute::new(meta, cursor.span_since(start)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    #[test]
    fn arguments_are_read_once() {
        let tokens = lex("#[serde(rename = \"a\", skip, = )]").expect("tokens");
        let attrs = Attribute::read_outer(&mut tokens.cursor()).expect("attributes");
        let args = attrs[0].args();
        assert_eq!(args.list.len(), 2);
        assert!(args.malformed.is_some());
        assert!(std::ptr::eq(args, attrs[0].args()));
    }

    #[test]
    fn only_a_list_has_arguments() {
        for text in ["#[serde]", "#[serde = \"a\"]", "/// serde(skip)"] {
            let tokens = lex(text).expect("tokens");
            let attrs = Attribute::read_outer(&mut tokens.cursor()).expect("attributes");
            assert!(attrs[0].args().list.is_empty(), "{text}");
            assert!(attrs[0].args().malformed.is_none(), "{text}");
        }
    }
}
