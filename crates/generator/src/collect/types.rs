//! Reads structs, enums and type aliases, and handwritten implementations of serde's traits.

use rbuilder_reader::grammar::{Alias as AliasItem, Body, GenericKind, Implementation, TypeItem};
use rbuilder_reader::{Attribute, Span, has_derive};
use rbuilder_syntax::{Diagnostic, SchemaMode, Type, parse_type};

use super::attributes;
use super::constants::Deferred;
use super::file::FileReader;
use super::gaps::describe_rewritten;
use crate::advice;
use crate::package::{
    Alias, AliasId, ByHand, Direction, ModuleId, Name, Skipped, TypeId, TypeItem as PackageType,
};
use crate::selection::{SchemaAsked, find_sign};

/// These derives, from schemars and kube, generate a schema.
const SCHEMA_DERIVES: &[&str] = &["JsonSchema", "KubeSchema", "CELSchema", "JsonSchema_repr"];

impl FileReader<'_, '_> {
    pub(super) fn by_hand(&mut self, item: &Implementation<'_>, module: ModuleId) -> Result<(), Diagnostic> {
        let direction = match item.trait_name() {
            Some("Serialize") => Direction::Write,
            Some("Deserialize") => Direction::Read,
            _ => return Ok(()),
        };
        self.collector.package.by_hand.push(ByHand {
            module,
            self_type: item.self_type()?,
            direction,
        });
        Ok(())
    }

    pub(super) fn type_item(
        &mut self,
        item: TypeItem<'_>,
        attrs: &[Attribute<'_>],
        module: ModuleId,
        text: &str,
        whole: Span,
    ) {
        self.discriminants(&item, attrs, module, whole);
        let ident = item.ident;
        // In a version of a module or type, the attribute has already been handled.
        if self.rewritten.is_none()
            && self.version.is_none()
            && let Some(attr) = attrs.iter().find(|attr| attr.is("versioned"))
        {
            self.add_rewritten(attr, text, &describe_rewritten(attr, text), &[module]);
        }
        let ours = has_derive(attrs, "CrdSchema") || has_derive(attrs, "CustomResource");
        let is_union = matches!(item.body, Body::Union);
        if is_union || !ours && !SCHEMA_DERIVES.iter().any(|name| has_derive(attrs, name)) {
            return self.name(module, ident, Name::Opaque);
        }
        let earlier = std::mem::take(&mut self.session.diagnostics);
        let is_rewritten = self.refuse_attribute_macros(attrs, text);
        self.pending
            .clone()
            .into_iter()
            .for_each(|pending| self.session.report(pending));
        let mut said = std::mem::take(&mut self.session.diagnostics).into_vec();
        let before = said.len();
        let model = parse_type(attrs, item, &mut self.session);
        let found = std::mem::replace(&mut self.session.diagnostics, earlier).into_vec();
        // Other errors may be mere consequences of the macro, so report only the macro.
        said.extend(found.into_iter().filter(|_| !is_rewritten));
        let mut constants = self.session.take_missing_constants();
        // `derive(CrdSchema)` cannot see the values of constants, so don't resolve them here
        // either.
        if has_derive(attrs, "CrdSchema") || is_rewritten {
            constants.clear();
        }
        let skipped = self.skipped(model.as_ref(), attrs, module);
        // A type that only derives schemars' trait may have nothing to do with the API, and skipped
        // kinds aren't written. Check both only if another kind uses them.
        let is_checked = ours && !self.is_foreign && skipped.is_none();
        self.add_allows(is_checked);
        if !constants.is_empty() {
            self.collector.deferred.push(Deferred {
                id: TypeId(self.collector.package.types.len()),
                text: self.text[whole.range()].to_owned(),
                start: whole.start,
                cfg: self.collector.cfg_of(module),
                version: self.version.clone(),
                renamed: self.renamed.clone(),
                wrapped: self.wrapped.clone(),
                constants,
                said: before..said.len(),
            });
        }
        let id = TypeId(self.collector.package.types.len());
        let resource = model.as_ref().and_then(|model| model.custom_resource.as_ref());
        if resource.is_none() && is_checked && has_derive(attrs, "CustomResource") {
            self.add_unreadable_kind(attrs, &said, module);
        }
        if let Some(resource) = resource {
            let root = resource.root.clone().unwrap_or_else(|| resource.kind.clone());
            self.collector.package.modules[module.0]
                .names
                .insert(root, Name::Root(id));
        }
        let resource_sign =
            resource.and_then(|_| find_sign(self.text, whole.range().start, ident.span.range().start));
        let is_ours = has_derive(attrs, "CrdSchema");
        for diagnostic in &mut said {
            diagnostic.help = diagnostic
                .help
                .take()
                .map(|help| advice::for_type(&help, is_ours));
        }
        self.collector.package.types.push(PackageType {
            file: self.id,
            module,
            model,
            reserved: said,
            doubts: self.open.doubts.clone(),
            is_checked,
            is_rewritten,
            kind_struct: has_derive(attrs, "CustomResource").then(|| ident.text.to_owned()),
            serde: attributes::serde_derives(attrs),
            derives_default: has_derive(attrs, "Default"),
            is_ours,
            derives_schema: std::iter::once(&"CrdSchema")
                .chain(SCHEMA_DERIVES)
                .any(|name| has_derive(attrs, name)),
            skipped,
            sign: resource_sign,
        });
        self.name(module, ident, Name::Type(id));
    }

    /// Returns why a kind gets no CRD, or `None` if it gets one or isn't a kind at all.
    fn skipped(&self, model: Option<&Type>, attrs: &[Attribute<'_>], module: ModuleId) -> Option<Skipped> {
        let resource = model?.custom_resource.as_ref().filter(|_| !self.is_foreign)?;
        let has_derive = std::iter::once(&"CrdSchema")
            .chain(SCHEMA_DERIVES)
            .any(|name| has_derive(attrs, name));
        let schema = if resource.schema_mode == SchemaMode::Disabled && !has_derive {
            SchemaAsked::No
        } else {
            SchemaAsked::Yes
        };
        let package = self.collector.package.module(module).package;
        self.collector.selector.skips(package, resource, schema)
    }

    pub(super) fn alias(&mut self, item: AliasItem<'_>, module: ModuleId) {
        let Some(target) = item.target else { return };
        let mut generics = Vec::new();
        for parameter in item.generics.list {
            if parameter.kind == GenericKind::Type {
                generics.push((parameter.ident.text.to_owned(), parameter.default));
            }
        }
        let id = AliasId(self.collector.package.aliases.len());
        self.collector.package.aliases.push(Alias {
            file: self.id,
            module,
            generics,
            target,
            reserved: self.pending.clone(),
            doubts: self.open.doubts.clone(),
        });
        self.name(module, item.ident, Name::Alias(id));
    }
}
