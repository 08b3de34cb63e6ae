//! Enums from strum's `EnumDiscriminants`, which generates a second enum with the same variants but
//! without their data.

use rbuilder_reader::grammar::{Body, TypeItem, VariantItem};
use rbuilder_reader::token::Cursor;
use rbuilder_reader::{Attribute, Form, Span, has_derive};

use super::file::FileReader;
use crate::package::ModuleId;

const ATTRIBUTE: &str = "strum_discriminants";

impl FileReader<'_, '_> {
    pub(super) fn discriminants(
        &mut self,
        item: &TypeItem<'_>,
        attrs: &[Attribute<'_>],
        module: ModuleId,
        whole: Span,
    ) {
        if !has_derive(attrs, "EnumDiscriminants") {
            return;
        }
        if let Body::Enum(variants) = &item.body
            && let Some(text) = write_discriminants(item, variants, attrs, whole)
        {
            self.read_written_items(&text, module);
        }
    }
}

/// Writes the source of the generated enum.
///
/// Returns `None` if the text would extend beyond the original item, since its spans would then
/// point at other code.
fn write_discriminants(
    item: &TypeItem<'_>,
    variants: &[VariantItem<'_>],
    attrs: &[Attribute<'_>],
    whole: Span,
) -> Option<String> {
    // Put each part at the offset of the code that it comes from, so that diagnostics point there.
    let mut out = Placed::from(whole.start);
    let mut name = format!("{}Discriminants", item.ident.text);
    for attr in attrs {
        if attr.is("repr") {
            out.put(attr.span().start, attr.text());
        }
        for part in list_parts(attr) {
            match part.split_once('(') {
                Some(("name", rest)) => name = rest.trim_end_matches([')', ' ']).trim().to_owned(),
                Some(("vis", _)) => {}
                _ => out.put(attr.span().start, &format!("#[{part}]")),
            }
        }
    }
    out.put(item.ident.span.start, &format!("enum {name} {{"));
    for variant in variants {
        for attr in &variant.attrs {
            if attr.is("doc") || attr.is("versioned") {
                out.put(attr.span().start, &format!("{}\n", attr.text()));
            }
            for part in list_parts(attr) {
                out.put(attr.span().start, &format!("#[{part}]"));
            }
        }
        let value = variant
            .discriminant
            .map_or(String::new(), |value| format!(" = {value}"));
        out.put(
            variant.ident.span.start,
            &format!("{}{value},", variant.ident.text),
        );
    }
    out.put(0, "}");
    (out.text.len() <= whole.end as usize).then_some(out.text)
}

/// strum adds each of these to the generated enum or variant, as an attribute of its own.
fn list_parts<'a>(attr: &Attribute<'a>) -> Vec<&'a str> {
    match attr.form() {
        Form::List(list) if attr.is(ATTRIBUTE) => split_list(list),
        _ => Vec::new(),
    }
}

fn split_list(mut list: Cursor<'_>) -> Vec<&str> {
    let mut parts = Vec::new();
    while !list.is_end() {
        let start = list;
        while !list.is_end() && !list.is_punct(b',') {
            list.skip();
        }
        parts.push(list.text_of(list.span_since(start)));
        list.eat(b',');
    }
    parts
}

/// Text in which each part is at a given offset, unless that is taken. The part then follows after
/// a space.
struct Placed {
    text: String,
}

impl Placed {
    fn from(start: u32) -> Self {
        Placed {
            text: " ".repeat(start as usize),
        }
    }

    fn put(&mut self, at: u32, part: &str) {
        let blanks = (at as usize).saturating_sub(self.text.len()).max(1);
        self.text.extend(std::iter::repeat_n(' ', blanks));
        self.text.push_str(part);
    }
}
