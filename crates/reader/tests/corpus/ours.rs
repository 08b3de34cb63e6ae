//! The outline of a file as this crate reads it.

use rbuilder_reader::grammar::{Body, Fields, Function, Generics, Item, ItemKind, Items, TypeItem};
use rbuilder_reader::token::{Cursor, lex};
use rbuilder_reader::{Attribute, Diagnostic, Span, TypeKind, TypeRef};

use super::{COMMENTED, squeezed};

struct Outline<'a> {
    text: &'a str,
    lines: Vec<String>,
}

/// Returns one line for each thing found, in source order.
pub(super) fn outline(text: &str) -> Result<Vec<String>, Diagnostic> {
    let tokens = lex(text)?;
    let mut outline = Outline {
        text,
        lines: Vec::new(),
    };
    let mut items = Items::new(tokens.cursor(), None);
    let inner = items.read_inner_attributes()?;
    outline.attrs(&inner.attrs);
    outline.items(items)?;
    Ok(outline.lines)
}

impl Outline<'_> {
    fn items(&mut self, mut items: Items<'_, '_>) -> Result<(), Diagnostic> {
        while let Some(item) = items.read()? {
            self.item(item)?;
        }
        Ok(())
    }

    fn item(&mut self, item: Item<'_>) -> Result<(), Diagnostic> {
        self.attrs(&item.attrs);
        if matches!(item.kind, ItemKind::Type(_) | ItemKind::Function(_)) {
            let visibility = item.visibility.map(|span| self.source(span));
            self.line(visibility.unwrap_or_default());
        }
        match item.kind {
            ItemKind::Type(item) => self.type_item(&item),
            ItemKind::Function(function) => self.function(&function)?,
            ItemKind::Impl(item) => {
                let ty = self.ty(&item.self_type()?);
                self.line(format!("impl {ty}"));
                self.items(Items::new(item.content, None))?;
                self.line("end");
            }
            ItemKind::Trait(ident, content) => {
                self.line(format!("trait {}", ident.text));
                self.items(Items::new(content, None))?;
                self.line("end");
            }
            ItemKind::Module(ident, content) => {
                self.line(format!("mod {}", ident.text));
                if let Some(content) = content {
                    self.items(Items::new(content, None))?;
                    self.line("end");
                }
            }
            ItemKind::Use(tree) => self.line(format!("use {}", self.rest(tree))),
            ItemKind::Alias(item) => {
                self.line(format!("type {}", item.ident.text));
                self.generics(&item.generics);
                if let Some(target) = item.target {
                    let target = self.ty(&target);
                    self.line(target);
                }
            }
            ItemKind::ExternCrate(ident, rename) => {
                let rename = rename.map_or("", |rename| rename.text);
                self.line(format!("extern {} {rename}", ident.text));
            }
            ItemKind::Macro(item) => self.line(format!("{}!", item.path.join("::"))),
            ItemKind::Constant(_) | ItemKind::Other => self.line("other"),
        }
        Ok(())
    }

    fn type_item(&mut self, item: &TypeItem<'_>) {
        self.line(format!("type {}", item.ident.text));
        match &item.body {
            Body::Union => self.generics(&item.generics),
            Body::Struct(fields) => {
                self.generics(&item.generics);
                self.fields(fields);
            }
            Body::Enum(variants) => {
                self.generics(&item.generics);
                for variant in variants {
                    self.attrs(&variant.attrs);
                    self.line(format!("variant {}", variant.ident.text));
                    self.fields(&variant.fields);
                }
            }
        }
    }

    fn fields(&mut self, fields: &Fields<'_>) {
        for field in fields.list() {
            self.attrs(&field.attrs);
            let name = field.ident.map_or("", |ident| ident.text);
            self.line(format!("field {name} {}", self.ty(&field.ty)));
        }
    }

    fn function(&mut self, function: &Function<'_>) -> Result<(), Diagnostic> {
        self.line(format!("fn {}", function.ident.text));
        self.line(self.source(function.signature));
        for part in [function.generics, function.output].into_iter().flatten() {
            self.line(self.source(part));
        }
        for parameter in function.parameters()? {
            let line = match parameter.ty {
                None => "self".to_owned(),
                Some(ty) => self.ty(&ty),
            };
            self.line(line);
        }
        Ok(())
    }

    fn generics(&mut self, generics: &Generics<'_>) {
        for generic in &generics.list {
            let name = generic.ident.text.trim_start_matches('\'');
            self.line(format!("parameter {name}"));
            self.line(self.source(generic.declaration));
            if let Some(default) = &generic.default {
                let default = self.ty(default);
                self.line(format!("= {default}"));
            }
        }
        if let Some(predicates) = generics.predicates {
            self.line("where");
            self.line(self.source(predicates));
        }
    }

    fn attrs(&mut self, attrs: &[Attribute<'_>]) {
        for attr in attrs {
            let path: Vec<_> = attr.segments().collect();
            let text = if attr.is("doc") { attr.value_text() } else { None };
            self.line(format!("#{} {text:?}", path.join("::")));
        }
    }

    fn ty(&self, ty: &TypeRef) -> String {
        let list = |types: &[TypeRef]| types.iter().map(|ty| self.ty(ty)).collect::<Vec<_>>().join(",");
        match &ty.kind {
            TypeKind::Path(segments, args) => format!("{}<{}>", segments.join("::"), list(args)),
            TypeKind::Array(item, length) => format!("[{};{length:?}]", self.ty(item)),
            TypeKind::Tuple(types) => format!("({})", list(types)),
            TypeKind::Other(text) if text.contains("//") || text.contains("/*") => COMMENTED.to_owned(),
            TypeKind::Other(text) => format!("other {}", squeezed(text)),
        }
    }

    /// Returns the source text of a span.
    fn source(&self, span: Span) -> String {
        let text = &self.text[span.range()];
        if text.contains("//") || text.contains("/*") {
            return COMMENTED.to_owned();
        }
        squeezed(text)
    }

    /// Returns the text up to the semicolon.
    fn rest(&self, start: Cursor<'_>) -> String {
        let mut cursor = start;
        let mut text = String::new();
        while !cursor.is_punct(b';') {
            let from = cursor;
            cursor.skip();
            text += &self.text[cursor.span_since(from).range()];
        }
        if text.contains("//") || text.contains("/*") {
            return COMMENTED.to_owned();
        }
        squeezed(&text)
    }

    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }
}
