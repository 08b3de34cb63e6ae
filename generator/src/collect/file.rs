//! One file: its items into the package, and the account of its marker tokens.

use std::ops::Range;
use std::rc::Rc;

use rbuilder_syntax::{
    Diagnostic, RbacRule, Session, Severity, SpanId, Spans, cfg, cfg::Cfg, derives_named, misplaced_webhook,
    parse_rbac_attribute, parse_type, parse_type_ref, parse_webhook_attribute, rbac_attributes,
    webhook_attributes,
};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, GenericParam, ImplItem, Item, Macro, TraitItem};

use super::imports::{self, Import};
use super::include::{self, Included};
use super::path::{self, Location};
use super::{Collector, Declared, MAX_MODULES, OpenFile};
use super::{attributes, handler};
use crate::lexer::{self, Mark, MarkKind, Scan};
use crate::package::{Alias, AliasId, File, FileId, ModuleId, Name, Place, TypeId, TypeItem};

impl Collector<'_> {
    /// Reads one file into its module.
    pub(super) fn read(&mut self, open: OpenFile) {
        self.seen.insert(open.path.clone());
        let Some(text) = self.text(&open.path) else {
            return;
        };
        let is_foreign = self.package.module(open.module).is_foreign;
        let scan = lexer::scan(&text);
        if let Some(at) = scan.too_deep {
            let help = "rbuilder reads types and signatures nested up to fifty levels deep";
            return self.reject(
                &open.path,
                at..at + 1,
                "this is nested too deeply to be read",
                Some(help),
            );
        }
        let parsed = match syn::parse_file(&scan.text) {
            Ok(parsed) => parsed,
            Err(error) => {
                let range = error.span().byte_range();
                return self.reject(&open.path, range, &format!("this is not Rust: {error}"), None);
            }
        };
        let id = FileId(self.package.files.len());
        self.package.files.push(File {
            path: open.path.clone(),
            spans: Spans::default(),
        });
        let path_folder = path::parent(&open.path).to_owned();
        let location = Location {
            folder: open.folder.clone(),
            path_folder,
        };
        let cfg = self.cfg_of(open.module);
        let mut reader = FileReader {
            collector: self,
            open: &open,
            id,
            session: Session::default(),
            cfg,
            is_foreign,
            end: text.len(),
            accounts: !scan.marks.is_empty() && !is_foreign,
            accounted: Vec::new(),
            rewritten: None,
        };
        reader.file(parsed, &location);
        if !is_foreign {
            reader.account(&scan);
        }
        let FileReader { mut session, .. } = reader;
        let said = std::mem::take(&mut session.diagnostics).into_vec();
        let file = &mut self.package.files[id.0];
        file.spans = session.spans;
        self.report.add_all(file, said);
    }

    fn reject(&mut self, path: &str, range: Range<usize>, message: &str, help: Option<&str>) {
        self.report.push(crate::Diagnostic {
            path: path.to_owned(),
            range,
            severity: Severity::Error,
            message: message.to_owned(),
            help: help.map(str::to_owned),
        });
    }
}

struct FileReader<'c, 'a> {
    collector: &'c mut Collector<'a>,
    open: &'c OpenFile,
    id: FileId,
    session: Session,
    cfg: Rc<Cfg>,
    /// Whether only types that others use are wanted of the package.
    is_foreign: bool,
    /// How long the text is.
    end: usize,
    /// Whether the file has marker tokens to account for.
    accounts: bool,
    /// Where markers were read, or rightly left out.
    accounted: Vec<Range<usize>>,
    /// The attribute macro on a module around the items, until it is complained about.
    rewritten: Option<SpanId>,
}

impl FileReader<'_, '_> {
    fn file(&mut self, mut parsed: syn::File, location: &Location) {
        if !cfg::configure_attrs(&mut parsed.attrs, &self.cfg, &mut self.session) {
            return self.accounted.push(0..self.end);
        }
        self.rules(&parsed.attrs);
        self.misplaced_webhooks(&parsed.attrs);
        self.items(parsed.items, self.open.module, location);
    }

    fn items(&mut self, items: Vec<Item>, module: ModuleId, location: &Location) {
        for item in items {
            self.item(item, module, location);
        }
    }

    fn item(&mut self, item: Item, module: ModuleId, location: &Location) {
        if !self.is_foreign {
            return self.any_item(item, module, location);
        }
        // Of a path crate only what others use is wanted, so that complaints wait until somebody does.
        let types = self.collector.package.types.len();
        let outer = std::mem::take(&mut self.session.diagnostics);
        self.any_item(item, module, location);
        let said = std::mem::replace(&mut self.session.diagnostics, outer).into_vec();
        if let Some(item) = self.collector.package.types.get_mut(types) {
            item.reserved.extend(said);
        }
    }

    fn any_item(&mut self, mut item: Item, module: ModuleId, location: &Location) {
        self.account_for_attributes(attributes::of(&item));
        let whole = self.accounts.then(|| item.span().byte_range());
        if !cfg::configure_item(&mut item, &self.cfg, &mut self.session)
            || attributes::is_test(attributes::of(&item))
        {
            return self.accounted.extend(whole);
        }
        self.rules(attributes::of(&item));
        if !matches!(item, Item::Fn(_)) {
            self.misplaced_webhooks(attributes::of(&item));
        }
        match item {
            Item::Struct(item) => self.type_item(&item.ident, &item.attrs, module, (&item).into()),
            Item::Enum(item) => self.type_item(&item.ident, &item.attrs, module, (&item).into()),
            Item::Union(item) => self.name(module, &item.ident, Name::Opaque),
            Item::Trait(item) => self.trait_item(item, module),
            Item::Impl(item) => self.impl_items(item, module),
            Item::Fn(item) => self.webhooks(&item.attrs, &item.sig, None, module),
            Item::Type(item) => self.alias(item, module),
            Item::Use(item) => self.imports(&item, module),
            Item::ExternCrate(item) => {
                let path = match item.ident.to_string().as_str() {
                    "self" => vec!["crate".to_owned()],
                    name => vec![String::new(), name.to_owned()],
                };
                let name = item.rename.map_or(item.ident, |(_, name)| name);
                self.name(module, &name, Name::Import(path));
            }
            Item::Mod(item) => self.module(item, module, location),
            Item::Macro(item) if include::is_include(&item.mac) => self.include(&item.mac, module),
            _ => {}
        }
    }

    fn name(&mut self, module: ModuleId, ident: &syn::Ident, name: Name) {
        self.collector.package.modules[module.0]
            .names
            .insert(ident.unraw().to_string(), name);
    }

    fn type_item(
        &mut self,
        ident: &syn::Ident,
        attrs: &[Attribute],
        module: ModuleId,
        item: rbuilder_syntax::Item<'_>,
    ) {
        let ours = derives_named(attrs, "CrdSchema") || derives_named(attrs, "CustomResource");
        if !ours && !derives_named(attrs, "JsonSchema") {
            return self.name(module, ident, Name::Opaque);
        }
        if ours {
            self.refuse_attribute_macros(attrs);
        }
        let earlier = std::mem::take(&mut self.session.diagnostics);
        let model = parse_type(item, &mut self.session);
        let said = std::mem::replace(&mut self.session.diagnostics, earlier).into_vec();
        // A type with schemars' derive alone may have nothing to do with an API.
        let (now, reserved) = if ours && !self.is_foreign {
            (said, Vec::new())
        } else {
            (Vec::new(), said)
        };
        now.into_iter()
            .for_each(|diagnostic| self.session.diagnostics.push(diagnostic));
        let id = TypeId(self.collector.package.types.len());
        let resource = model.as_ref().and_then(|model| model.custom_resource.as_ref());
        if let Some(resource) = resource {
            let root = resource.root.clone().unwrap_or_else(|| resource.kind.clone());
            self.collector.package.modules[module.0]
                .names
                .insert(root, Name::Root(id));
        }
        self.collector.package.types.push(TypeItem {
            file: self.id,
            module,
            model,
            reserved,
        });
        self.name(module, ident, Name::Type(id));
    }

    /// An attribute macro above the derive may change what the derive sees; one on a module around it, too.
    fn refuse_attribute_macros(&mut self, attrs: &[Attribute]) {
        let above = attrs.iter().take_while(|attr| !attr.path().is_ident("derive"));
        for attr in above.filter(|attr| !attributes::is_harmless(attr)) {
            let span = self.session.spans.add(attr);
            let message = "what this attribute makes of the type cannot be known without running it";
            let help = "move it below the derives if it only configures one of them; write the type out if it is a macro";
            self.session.report(Diagnostic::error(span, message).help(help));
        }
        self.refuse_rewritten_module();
    }

    /// Says once for each such module that what is in it may be moved, renamed or copied.
    fn refuse_rewritten_module(&mut self) {
        let rewritten = self.rewritten;
        // What is reserved for each type apart is said about each that somebody uses.
        if !self.is_foreign {
            self.rewritten = None;
        }
        if let Some(span) = rewritten {
            let message = "what this attribute makes of the module cannot be known without running it";
            let help = "put API types and markers into a module without it, written out";
            self.session.report(Diagnostic::error(span, message).help(help));
        }
    }

    fn trait_item(&mut self, item: syn::ItemTrait, module: ModuleId) {
        self.name(module, &item.ident, Name::Opaque);
        for inner in item.items {
            if let TraitItem::Fn(inner) = inner {
                let whole = if self.accounts {
                    inner.span().byte_range()
                } else {
                    0..0
                };
                self.function(inner.attrs, &inner.sig, None, whole, module);
            }
        }
    }

    fn impl_items(&mut self, item: syn::ItemImpl, module: ModuleId) {
        for inner in item.items {
            if let ImplItem::Fn(inner) = inner {
                let whole = if self.accounts {
                    inner.span().byte_range()
                } else {
                    0..0
                };
                self.function(inner.attrs, &inner.sig, Some(&item.self_ty), whole, module);
            }
        }
    }

    fn function(
        &mut self,
        mut attrs: Vec<Attribute>,
        signature: &syn::Signature,
        self_type: Option<&syn::Type>,
        whole: Range<usize>,
        module: ModuleId,
    ) {
        self.account_for_attributes(&attrs);
        if cfg::configure_attrs(&mut attrs, &self.cfg, &mut self.session) {
            self.rules(&attrs);
            self.webhooks(&attrs, signature, self_type, module);
        } else {
            self.accounted.push(whole);
        }
    }

    fn alias(&mut self, item: syn::ItemType, module: ModuleId) {
        let mut generics = Vec::new();
        for param in &item.generics.params {
            if let GenericParam::Type(param) = param {
                let default = param
                    .default
                    .as_ref()
                    .map(|(_, ty)| parse_type_ref(ty, &mut self.session));
                generics.push((param.ident.unraw().to_string(), default));
            }
        }
        let target = parse_type_ref(&item.ty, &mut self.session);
        let id = AliasId(self.collector.package.aliases.len());
        self.collector.package.aliases.push(Alias {
            file: self.id,
            module,
            generics,
            target,
        });
        self.name(module, &item.ident, Name::Alias(id));
    }

    fn imports(&mut self, item: &syn::ItemUse, module: ModuleId) {
        let module = &mut self.collector.package.modules[module.0];
        for import in imports::imports(item) {
            match import {
                // A derive or a function of the same name does not take a type's place.
                Import::Name(name, path) => {
                    module.names.entry(name).or_insert(Name::Import(path));
                }
                Import::Glob(path) => module.globs.push(path),
            }
        }
    }

    fn module(&mut self, item: syn::ItemMod, parent: ModuleId, location: &Location) {
        if self.collector.package.modules.len() >= MAX_MODULES {
            let span = self.session.spans.add(&item.ident);
            return self.session.report(Diagnostic::error(
                span,
                "the package has too many modules to be read",
            ));
        }
        let package = self.collector.package.module(parent).package;
        let id = self.collector.add_module(package, Some(parent));
        self.name(parent, &item.ident, Name::Module(id));
        let written = path::path_attribute(&item.attrs);
        let macros = item.attrs.iter().find(|attr| !attributes::is_harmless(attr));
        let rewritten = macros.map(|attr| self.session.spans.add(attr));
        let Some((_, items)) = item.content else {
            if rewritten.is_some() {
                self.rewritten = rewritten;
                self.refuse_rewritten_module();
            }
            return self.module_file(&item.ident, id, location, written);
        };
        let outer = self.rewritten;
        self.rewritten = rewritten.or(outer);
        let name = written.unwrap_or_else(|| item.ident.unraw().to_string());
        let folder = path::join(&location.folder, &name);
        let location = Location {
            path_folder: folder.clone(),
            folder,
        };
        self.items(items, id, &location);
        self.rewritten = outer;
    }

    fn module_file(
        &mut self,
        ident: &syn::Ident,
        id: ModuleId,
        location: &Location,
        written: Option<String>,
    ) {
        let mut ancestors = self.open.ancestors.clone();
        ancestors.push(self.open.path.clone());
        let place = Place {
            file: self.id,
            span: self.session.spans.add(ident),
        };
        let declared = Declared::Module {
            name: ident.unraw().to_string(),
            folder: location.folder.clone(),
            written: written.map(|path| path::join(&location.path_folder, &path)),
            place,
            ancestors,
        };
        self.collector.declare(id, declared, !self.is_foreign);
    }

    /// Has a file read into a module, unless the file is being read already.
    fn open(&mut self, path: String, module: ModuleId, span: SpanId) {
        let mut ancestors = self.open.ancestors.clone();
        ancestors.push(self.open.path.clone());
        if ancestors.contains(&path) {
            let message = format!("the file `{path}` contains itself");
            return self.session.report(Diagnostic::error(span, message));
        }
        self.collector.files.push(OpenFile {
            module,
            folder: path::parent(&path).to_owned(),
            path,
            ancestors,
        });
    }

    /// The items of another file, here.
    fn include(&mut self, mac: &Macro, module: ModuleId) {
        let span = self.session.spans.add(mac);
        let diagnostic = match include::argument(mac) {
            Included::Path(written) => {
                let path = path::join(path::parent(&self.open.path), &written);
                if self.collector.is_file(&path) {
                    return self.open(path, module, span);
                }
                Diagnostic::error(span, format!("there is no file `{path}` to include"))
            }
            Included::Built => Diagnostic::warning(span, "what the build script writes is not read")
                .help("manifests come from source text: kinds and markers in this file would be left out"),
            Included::Unknown => {
                Diagnostic::error(span, "which file this includes cannot be told from the source")
                    .help("write the path as one string, or declare the file with `mod`")
            }
        };
        self.session.report(diagnostic);
    }

    fn rules(&mut self, attrs: &[Attribute]) {
        if self.is_foreign {
            return;
        }
        let mut rules = rbac_attributes(attrs).peekable();
        if rules.peek().is_some() {
            self.refuse_rewritten_module();
        }
        for attr in rules {
            let rule: Option<RbacRule> = parse_rbac_attribute(attr, &mut self.session);
            self.collector.package.rules.extend(rule);
        }
    }

    /// The webhooks that call a function.
    fn webhooks(
        &mut self,
        attrs: &[Attribute],
        signature: &syn::Signature,
        self_type: Option<&syn::Type>,
        module: ModuleId,
    ) {
        if self.is_foreign {
            return;
        }
        for attr in webhook_attributes(attrs) {
            self.refuse_rewritten_module();
            if let Some(webhook) = parse_webhook_attribute(attr, &mut self.session) {
                let place = (self.id, module);
                let handler = handler::read(webhook, signature, self_type, place, &mut self.session);
                self.collector.package.handlers.push(handler);
            }
        }
    }

    fn misplaced_webhooks(&mut self, attrs: &[Attribute]) {
        for attr in webhook_attributes(attrs) {
            // What is wrong with the arguments is said as well, as by the macro.
            parse_webhook_attribute(attr, &mut self.session);
            let span = self.session.spans.add(attr);
            misplaced_webhook(span, &mut self.session);
        }
    }

    fn account_for_attributes(&mut self, attrs: &[Attribute]) {
        if self.accounts {
            self.accounted
                .extend(attrs.iter().map(|attr| attr.span().byte_range()));
        }
    }

    /// Every marker token of the file must have been met.
    fn account(&mut self, scan: &Scan) {
        for mark in &scan.marks {
            if !self.accounted.iter().any(|range| range.contains(&mark.at)) {
                let diagnostic = unaccounted(mark);
                self.collector.report.push(crate::Diagnostic {
                    path: self.open.path.clone(),
                    ..diagnostic
                });
            }
        }
    }
}

fn unaccounted(mark: &Mark) -> crate::Diagnostic {
    let (severity, message, help) = match (mark.kind, mark.in_body) {
        (MarkKind::Kind, false) => (
            Severity::Error,
            "this kind is hidden from rbuilder by the macro around it",
            "write the struct out: rbuilder reads source text and does not expand macros",
        ),
        (MarkKind::Rbac | MarkKind::Webhook, false) => (
            Severity::Error,
            "this marker is hidden from rbuilder by the macro around it",
            "put the marker on an item outside of the macro",
        ),
        (MarkKind::Kind, true) => (
            Severity::Warning,
            "a kind inside a function is not part of the API",
            "move the struct out of the function",
        ),
        (MarkKind::Rbac | MarkKind::Webhook, true) => (
            Severity::Error,
            "a marker inside a function is not read",
            "put the marker on the function",
        ),
    };
    crate::Diagnostic {
        path: String::new(),
        range: mark.at..mark.at + mark.kind.len(),
        severity,
        message: message.into(),
        help: Some(help.into()),
    }
}
