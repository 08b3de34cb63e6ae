//! One file: its items into the package, and the account of its marker tokens.

use rbuilder_syntax::cfg::Cfg;
use rbuilder_syntax::grammar::{
    Alias as AliasItem, Body, Function, Generic, Implementation, Item, ItemKind, Items, Macro, TypeItem,
};
use rbuilder_syntax::token::{Cursor, Ident, Malformed, Tokens, lex};
use rbuilder_syntax::{
    Attribute, Diagnostic, Diagnostics, RbacRule, SchemaMode, Session, Span, Type, derives_named,
    misplaced_webhook, parse_rbac_attribute, parse_type, parse_webhook_attribute, rbac_attributes,
    warn_of_go_marker, webhook_attributes,
};

use super::account::Account;
use super::imports::{self, Import};
use super::include::{self, Included};
use super::path::{self, Location};
use super::{Collector, Content, Declared, MAX_MODULES, OpenFile, attributes, handler};
use crate::cargo::Dependency;
use crate::package::{
    Alias, AliasId, ByHand, Direction, File, FileId, ModuleId, Name, Place, PlacedRule, TypeId,
    TypeItem as PackageType,
};
use crate::selection::{SchemaAsked, Skipped};

fn joined(mut first: Diagnostics, second: Diagnostics) -> Diagnostics {
    second
        .into_vec()
        .into_iter()
        .for_each(|diagnostic| first.push(diagnostic));
    first
}

/// What a build script that writes kinds or markers has in it.
pub(super) const BUILT_MARKERS: [&str; 3] = ["CustomResource", "rbac(", "webhook("];

/// The derives of schemars and kube that give a type a schema.
const THEIRS: &[&str] = &["JsonSchema", "KubeSchema"];

impl Collector<'_> {
    /// Reads one file into its module. What is wrong with it does not keep others from being read.
    pub(super) fn read(&mut self, open: OpenFile) {
        self.seen.insert(open.path.clone());
        let Some(text) = self.text(&open.path) else {
            return;
        };
        let id = FileId(self.package.files.len());
        self.package.files.push(File {
            path: open.path.clone(),
        });
        let said = match lex(&text) {
            Ok(tokens) => self.read_tokens(&tokens, &open, id),
            Err(malformed) => vec![malformed.into_diagnostic()],
        };
        self.report.add_all(&self.package.files[id.0], said);
    }

    fn read_tokens(&mut self, tokens: &Tokens<'_>, open: &OpenFile, id: FileId) -> Vec<Diagnostic> {
        let cfg = self.cfg_of(open.module);
        let is_foreign = self.package.module(open.module).is_foreign;
        let mut reader = FileReader {
            collector: self,
            open,
            id,
            cfg: &cfg,
            session: Session::default(),
            is_foreign,
            account: Account::new(if is_foreign { &[] } else { tokens.marks() }),
            rewritten: None,
            doubts: Vec::new(),
        };
        if !is_foreign {
            reader.go_markers(tokens);
        }
        match reader.file(tokens) {
            Ok(()) => {
                let missed: Vec<_> = reader.account.complaints().collect();
                missed
                    .into_iter()
                    .for_each(|complaint| reader.session.report(complaint));
            }
            // Behind this place nothing has been read, so no account can be given.
            Err(malformed) => reader.session.report(malformed.into_diagnostic()),
        }
        reader.session.diagnostics.into_vec()
    }
}

struct FileReader<'c, 'a> {
    collector: &'c mut Collector<'a>,
    open: &'c OpenFile,
    id: FileId,
    cfg: &'c Cfg,
    session: Session,
    /// Whether only types that others use are wanted of the package.
    is_foreign: bool,
    account: Account<'c>,
    /// The attribute macro on a module around the items, until it is complained about.
    rewritten: Option<Span>,
    /// Complaints about the conditions of the item being read and of those around it, until one turns out to
    /// matter.
    doubts: Vec<Diagnostic>,
}

impl<'c> FileReader<'c, '_> {
    fn file(&mut self, tokens: &Tokens<'_>) -> Result<(), Malformed> {
        let mut items = Items::new(tokens.cursor(), Some(self.cfg));
        let (attrs, active) = items.inner_attributes(&mut self.session)?;
        attrs.iter().for_each(|attr| self.account.meet(attr.span()));
        if !active {
            self.account.meet(tokens.span());
            return Ok(());
        }
        self.rules(&attrs);
        self.misplaced_webhooks(&attrs);
        let module = self.open.module;
        match self.open.content {
            Content::Items => {
                let location = Location {
                    folder: self.open.folder.clone(),
                    path_folder: path::parent(&self.open.path).to_owned(),
                };
                self.items(items, module, &location)
            }
            Content::Members => self.members(items, None, module),
        }
    }

    /// Warns of comments that are markers in Go.
    fn go_markers(&mut self, tokens: &Tokens<'_>) {
        for span in tokens.go_comments() {
            let said = warn_of_go_marker(&tokens.text()[span.range()], *span);
            said.into_iter().for_each(|said| self.session.report(said));
        }
    }

    fn items(
        &mut self,
        mut items: Items<'_, 'c>,
        module: ModuleId,
        location: &Location,
    ) -> Result<(), Malformed> {
        loop {
            let types = self.collector.package.types.len();
            let outer = std::mem::take(&mut self.session.diagnostics);
            let read = self.next_item(&mut items, module, location);
            let said = std::mem::take(&mut self.session.diagnostics);
            // Of a path crate only what others use is wanted, so that complaints wait until somebody does.
            if self.is_foreign && read.is_ok() {
                self.session.diagnostics = outer;
                if let Some(item) = self.collector.package.types.get_mut(types) {
                    item.reserved.extend(said.into_vec());
                }
            } else {
                self.session.diagnostics = joined(outer, said);
            }
            if !read? {
                return Ok(());
            }
        }
    }

    /// Reads one item; false at the end.
    fn next_item(
        &mut self,
        items: &mut Items<'_, 'c>,
        module: ModuleId,
        location: &Location,
    ) -> Result<bool, Malformed> {
        let Some((item, doubts)) = self.next(items)? else {
            return Ok(false);
        };
        let outside = self.doubts.len();
        self.doubts.extend(doubts);
        self.item(item, module, location)?;
        self.doubts.truncate(outside);
        Ok(true)
    }

    /// Reads an item, and apart from all other complaints those about its conditions: they count only where it has
    /// to do with the API.
    fn next<'i>(
        &mut self,
        items: &mut Items<'i, 'c>,
    ) -> Result<Option<(Item<'i>, Vec<Diagnostic>)>, Malformed> {
        let earlier = std::mem::take(&mut self.session.diagnostics);
        let item = items.read(&mut self.session);
        let doubts = std::mem::replace(&mut self.session.diagnostics, earlier).into_vec();
        Ok(item?.map(|item| (item, doubts)))
    }

    /// Says what is not known about the conditions of an item, and of those around it.
    fn say_doubts(&mut self) {
        for doubt in std::mem::take(&mut self.doubts) {
            self.session.report(doubt);
        }
    }

    fn item(&mut self, item: Item<'_>, module: ModuleId, location: &Location) -> Result<(), Malformed> {
        item.written.iter().for_each(|span| self.account.meet(*span));
        if !item.active || attributes::is_test(&item.attrs) {
            self.account.meet(item.span);
            return Ok(());
        }
        let attrs = item.attrs;
        self.rules(&attrs);
        if !matches!(item.kind, ItemKind::Function(_)) {
            self.misplaced_webhooks(&attrs);
        }
        match item.kind {
            ItemKind::Type(item) => self.type_item(item, &attrs, module),
            ItemKind::Trait(ident, content) => {
                self.name(module, ident, Name::Opaque);
                return self.members(Items::new(content, Some(self.cfg)), None, module);
            }
            ItemKind::Impl(item) => {
                self.by_hand(&item, module)?;
                return self.members(Items::new(item.content, Some(self.cfg)), Some(&item), module);
            }
            ItemKind::Function(function) => return self.webhooks(&attrs, &function, None, module),
            ItemKind::Alias(item) => self.alias(item, module),
            ItemKind::Use(tree) => return self.imports(tree, module),
            ItemKind::ExternCrate(ident, rename) => {
                let path = match ident.text {
                    "self" => vec!["crate".to_owned()],
                    name => vec![String::new(), name.to_owned()],
                };
                self.name(module, rename.unwrap_or(ident), Name::Import(path));
            }
            ItemKind::Module(ident, content) => {
                return self.module(ident, content, &attrs, module, location);
            }
            ItemKind::Macro(mac) if include::is_include(&mac) => self.include(&mac, module, Content::Items),
            ItemKind::Macro(_) | ItemKind::Other => {}
        }
        Ok(())
    }

    /// Reads what stands in an `impl` or a trait.
    fn members(
        &mut self,
        mut items: Items<'_, 'c>,
        around: Option<&Implementation<'_>>,
        module: ModuleId,
    ) -> Result<(), Malformed> {
        let outside = self.doubts.len();
        while let Some((item, doubts)) = self.next(&mut items)? {
            self.doubts.truncate(outside);
            self.doubts.extend(doubts);
            item.written.iter().for_each(|span| self.account.meet(*span));
            if !item.active {
                self.account.meet(item.span);
                continue;
            }
            self.rules(&item.attrs);
            match item.kind {
                ItemKind::Function(function) => self.webhooks(&item.attrs, &function, around, module)?,
                ItemKind::Macro(mac) if include::is_include(&mac) => {
                    self.include(&mac, module, Content::Members);
                }
                _ => {}
            }
        }
        self.doubts.truncate(outside);
        Ok(())
    }

    /// Notes who writes or reads itself by hand.
    fn by_hand(&mut self, item: &Implementation<'_>, module: ModuleId) -> Result<(), Malformed> {
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

    fn name(&mut self, module: ModuleId, ident: Ident<'_>, name: Name) {
        self.collector.package.modules[module.0]
            .names
            .insert(ident.text.to_owned(), name);
    }

    fn type_item(&mut self, item: TypeItem<'_>, attrs: &[Attribute<'_>], module: ModuleId) {
        let ident = item.ident;
        let ours = derives_named(attrs, "CrdSchema") || derives_named(attrs, "CustomResource");
        let is_union = matches!(item.body, Body::Union);
        if is_union || !ours && !THEIRS.iter().any(|name| derives_named(attrs, name)) {
            return self.name(module, ident, Name::Opaque);
        }
        if ours {
            self.refuse_attribute_macros(attrs);
            self.say_doubts();
        }
        let earlier = std::mem::take(&mut self.session.diagnostics);
        self.say_doubts();
        let model = parse_type(attrs, item, &mut self.session);
        let said = std::mem::replace(&mut self.session.diagnostics, earlier).into_vec();
        let skipped = self.skipped(model.as_ref(), attrs, module);
        // A type with schemars' derive alone may have nothing to do with an API, and of a kind that is not written
        // only what others use has to be right.
        let (now, reserved) = if ours && !self.is_foreign && skipped.is_none() {
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
        self.collector.package.types.push(PackageType {
            file: self.id,
            module,
            model,
            reserved,
            serde: attributes::serde_derives(attrs),
            skipped,
        });
        self.name(module, ident, Name::Type(id));
    }

    /// Why no CRD is written for a type that is a kind of the package.
    fn skipped(&self, model: Option<&Type>, attrs: &[Attribute<'_>], module: ModuleId) -> Option<Skipped> {
        let resource = model?.custom_resource.as_ref().filter(|_| !self.is_foreign)?;
        let has_derive = std::iter::once(&"CrdSchema")
            .chain(THEIRS)
            .any(|name| derives_named(attrs, name));
        let schema = if resource.schema_mode == SchemaMode::Disabled && !has_derive {
            SchemaAsked::No
        } else {
            SchemaAsked::Yes
        };
        let package = self.collector.package.module(module).package;
        self.collector.selector.skips(package, resource, schema)
    }

    /// An attribute macro above the derive may change what the derive sees; one on a module around it, too.
    fn refuse_attribute_macros(&mut self, attrs: &[Attribute<'_>]) {
        let above = attrs.iter().take_while(|attr| !attr.is("derive"));
        for attr in above.filter(|attr| !attributes::is_harmless(attr)) {
            let message = "what this attribute makes of the type cannot be known without running it";
            let help = "move it below the derives if it only configures one of them; write the type out if it is a macro";
            self.session
                .report(Diagnostic::error(attr.span(), message).help(help));
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

    fn alias(&mut self, item: AliasItem<'_>, module: ModuleId) {
        let Some(target) = item.target else { return };
        let mut generics = Vec::new();
        for parameter in item.generics.list {
            if let Generic::Type(ident, default) = parameter {
                generics.push((ident.text.to_owned(), default));
            }
        }
        let id = AliasId(self.collector.package.aliases.len());
        self.collector.package.aliases.push(Alias {
            file: self.id,
            module,
            generics,
            target,
            reserved: self.doubts.clone(),
        });
        self.name(module, item.ident, Name::Alias(id));
    }

    fn imports(&mut self, tree: Cursor<'_>, module: ModuleId) -> Result<(), Malformed> {
        for import in imports::imports(tree)? {
            match import {
                Import::Name(name, path) => {
                    self.refuse_renamed(&name, &path, tree.span(), module);
                    // A derive or a function of the same name does not take a type's place.
                    let names = &mut self.collector.package.modules[module.0].names;
                    names.entry(name).or_insert(Name::Import(path));
                }
                Import::Glob(path) => self.collector.package.modules[module.0].globs.push(path),
            }
        }
        Ok(())
    }

    /// Derives and markers are known by their own names.
    fn refuse_renamed(&mut self, name: &str, path: &[String], span: Span, module: ModuleId) {
        let Some(real) = path.last().filter(|last| *last != name) else {
            return;
        };
        let dependencies = &self.collector.package.member(module).dependencies;
        let is_ours = || {
            let first = path.iter().find(|segment| !segment.is_empty());
            first.is_some_and(|first| match dependencies.get(first) {
                Some(Dependency::Other(real)) => real.starts_with("rbuilder"),
                _ => first == "rbuilder",
            })
        };
        let is_hidden = match real.as_str() {
            "CustomResource" | "CrdSchema" => true,
            "rbac" | "webhook" => is_ours(),
            _ => false,
        };
        if is_hidden && !self.is_foreign {
            let message =
                format!("`{real}` has another name here, and rbuilder knows this by its own name only");
            let help = format!("import `{real}` without `as`");
            self.session.report(Diagnostic::error(span, message).help(help));
        }
    }

    fn module(
        &mut self,
        ident: Ident<'_>,
        content: Option<Cursor<'_>>,
        attrs: &[Attribute<'_>],
        parent: ModuleId,
        location: &Location,
    ) -> Result<(), Malformed> {
        if self.collector.package.modules.len() >= MAX_MODULES {
            let message = "the package has too many modules to be read";
            self.session.report(Diagnostic::error(ident.span, message));
            return Ok(());
        }
        let package = self.collector.package.module(parent).package;
        let id = self.collector.add_module(package, Some(parent));
        self.name(parent, ident, Name::Module(id));
        let written = path::path_attribute(attrs);
        let macros = attrs.iter().find(|attr| !attributes::is_harmless(attr));
        let rewritten = macros.map(Attribute::span);
        let Some(content) = content else {
            if rewritten.is_some() {
                self.rewritten = rewritten;
                self.refuse_rewritten_module();
            }
            self.module_file(ident, id, location, written);
            return Ok(());
        };
        let outer = self.rewritten;
        self.rewritten = rewritten.or(outer);
        let name = written.as_deref().unwrap_or(ident.text);
        let folder = path::join(&location.folder, name);
        let location = Location {
            path_folder: folder.clone(),
            folder,
        };
        self.items(Items::new(content, Some(self.cfg)), id, &location)?;
        self.rewritten = outer;
        Ok(())
    }

    fn module_file(&mut self, ident: Ident<'_>, id: ModuleId, location: &Location, written: Option<String>) {
        let mut ancestors = self.open.ancestors.clone();
        ancestors.push(self.open.path.clone());
        let place = Place {
            file: self.id,
            span: ident.span,
        };
        let written = written.map(|path| path::join(&location.path_folder, &path));
        if !self.doubts.is_empty() && self.may_matter(ident.text, &location.folder, written.as_deref()) {
            self.say_doubts();
        }
        let declared = Declared::Module {
            name: ident.text.to_owned(),
            folder: location.folder.clone(),
            written,
            place,
            ancestors,
        };
        self.collector.declare(id, declared, !self.is_foreign);
    }

    /// Whether an API can depend on what is in a module's file or below it.
    fn may_matter(&self, name: &str, folder: &str, written: Option<&str>) -> bool {
        const WORDS: [&str; 7] = [
            "CustomResource",
            "CrdSchema",
            "JsonSchema",
            "KubeSchema",
            "rbac",
            "webhook",
            "include!",
        ];
        let sources = self.collector.sources;
        let inner = path::join(folder, name);
        let mut files = sources.rust_files(&inner).unwrap_or_default();
        files.push(format!("{inner}.rs"));
        if let Some(written) = written {
            files.push(written.to_owned());
            files.extend(sources.rust_files(path::parent(written)).unwrap_or_default());
        }
        files.iter().any(|path| match sources.text(path) {
            Ok(Some(text)) => WORDS.iter().any(|word| text.contains(word)),
            Ok(None) => false,
            Err(_) => true,
        })
    }

    /// Has a file read into a module, unless the file is being read already.
    fn open(&mut self, path: String, module: ModuleId, span: Span, content: Content) {
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
            content,
        });
    }

    /// The items of another file, here.
    fn include(&mut self, mac: &Macro<'_>, module: ModuleId, content: Content) {
        self.say_doubts();
        let span = mac.span;
        let diagnostic = match include::argument(mac) {
            Included::Path(written) => {
                let path = path::join(path::parent(&self.open.path), &written);
                if self.collector.is_file(&path) {
                    return self.open(path, module, span, content);
                }
                Diagnostic::error(span, format!("there is no file `{path}` to include"))
            }
            Included::Built => self.built(span),
            Included::Unknown => {
                Diagnostic::error(span, "which file this includes cannot be told from the source")
                    .help("write the path as one string, or declare the file with `mod`")
            }
        };
        self.session.report(diagnostic);
    }

    /// A file that the build script writes: it is an error where that script knows of kinds or markers.
    fn built(&mut self, span: Span) -> Diagnostic {
        let message = "what the build script writes is not read";
        let script = self.collector.build_script(self.open.module);
        // A type of such a file that a kind needs is found missing where the kind names it.
        if script.is_some_and(|text| BUILT_MARKERS.iter().any(|word| text.contains(word))) {
            let help = "write the kinds into a file of the package: manifests come from source text";
            return Diagnostic::error(span, message).help(help);
        }
        Diagnostic::warning(span, message)
            .help("manifests come from source text: kinds and markers in this file would be left out")
    }

    fn rules(&mut self, attrs: &[Attribute<'_>]) {
        if self.is_foreign {
            return;
        }
        let mut rules = rbac_attributes(attrs).peekable();
        if rules.peek().is_some() {
            self.refuse_rewritten_module();
            self.say_doubts();
        }
        for attr in rules {
            let rule: Option<RbacRule> = parse_rbac_attribute(attr, &mut self.session);
            let file = self.id;
            let placed = rule.map(|rule| PlacedRule { file, rule });
            self.collector.package.rules.extend(placed);
        }
    }
    /// The webhooks that call a function.
    fn webhooks(
        &mut self,
        attrs: &[Attribute<'_>],
        function: &Function<'_>,
        around: Option<&Implementation<'_>>,
        module: ModuleId,
    ) -> Result<(), Malformed> {
        if self.is_foreign {
            return Ok(());
        }
        for attr in webhook_attributes(attrs) {
            self.refuse_rewritten_module();
            self.say_doubts();
            if let Some(webhook) = parse_webhook_attribute(attr, &mut self.session) {
                let handler = handler::read(webhook, function, around, (self.id, module))?;
                self.collector.package.handlers.push(handler);
            }
        }
        Ok(())
    }

    fn misplaced_webhooks(&mut self, attrs: &[Attribute<'_>]) {
        for attr in webhook_attributes(attrs) {
            // What is wrong with the arguments is said as well, as by the macro.
            parse_webhook_attribute(attr, &mut self.session);
            misplaced_webhook(attr.span(), &mut self.session);
        }
    }
}
