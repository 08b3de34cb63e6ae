//! Reads one file: adds its items to the package, and keeps track of which marker tokens were seen.

use rbuilder_reader::cfg::Cfg;
use rbuilder_reader::grammar::{Implementation, InnerAttributes, Item, ItemKind, Items};
use rbuilder_reader::token::{Ident, Tokens};
use rbuilder_reader::{Span, has_derive};
use rbuilder_syntax::{
    Diagnostic, Diagnostics, ModuleVersion, Session, check_conditions, describe_malformed, lex_file,
};

use super::macro_call::{MacroCall, Wrapped};
use super::path::{self, Location};
use super::renamed::RenamedDerives;
use super::seen_marks::SeenMarks;
use super::{Collector, Content, OpenFile, attributes, include, merges, patches};
use crate::Calls;
use crate::gap::{Gap, GapId, GapSort};
use crate::package::{ModuleId, Name};
use crate::place::FileId;
use crate::selection::may_call_crd;
use crate::sources::is_in_file;

fn has_hidden_kind(text: &str, item: &Item<'_>) -> bool {
    let [written, _] = item.written;
    text[written.range()].contains("CustomResource") && !has_derive(&item.attrs, "CustomResource")
}

/// A file with none of these words can neither send requests nor pass on a client.
const WORDS: [&str; 3] = ["rbuilder", "kube", "Ctx"];

fn may_send(text: &str) -> bool {
    WORDS.iter().any(|word| is_in_file(word, text))
}

fn joined(mut first: Diagnostics, second: Diagnostics) -> Diagnostics {
    second
        .into_vec()
        .into_iter()
        .for_each(|diagnostic| first.push(diagnostic));
    first
}

impl Collector<'_> {
    /// An error in one file doesn't stop the others from being read.
    pub(super) fn read(&mut self, open: OpenFile) {
        self.seen.insert(open.path.clone());
        let Some(text) = self.text(&open.path) else {
            return self.add_missing(&open);
        };
        merges::find_merges(&text, &mut self.package.merges);
        if may_call_crd(&text) && !self.package.module(open.module).is_foreign {
            self.callers.push(open.path.clone());
        }
        let id = self.report.files.add(&open.path);
        let said = match lex_file(&text) {
            Ok(tokens) => self.read_tokens(&tokens, &open, id),
            Err(malformed) => {
                let reason = describe_malformed(malformed);
                let first = self.package.modules.len();
                self.add_unread(open.module, first, id, &text, reason.clone());
                vec![reason]
            }
        };
        // Users cannot edit a published package, so don't report its errors. Its types keep their
        // diagnostics, and a gap is reported only if a type that a kind needs may be in it.
        if !self.package.member(open.module).is_published {
            self.report.add_all(id, said);
        }
    }

    fn add_missing(&mut self, open: &OpenFile) {
        // Errors in the user's own files have been reported by now.
        if !self.package.member(open.module).is_published {
            return;
        }
        let reason = match self.sources.text(&open.path) {
            Err(reason) => format!("failed to read the file: {reason}"),
            Ok(_) => "the package does not have this file".to_owned(),
        };
        let id = self.report.files.add(&open.path);
        let reason = Diagnostic::error(Span::default(), reason);
        self.add_gap(open.module, Gap::of_build(id, reason));
    }

    fn read_tokens(&mut self, tokens: &Tokens<'_>, open: &OpenFile, id: FileId) -> Vec<Diagnostic> {
        let cfg = self.cfg_of(open.module);
        let is_foreign = self.package.module(open.module).is_foreign;
        let follows_calls = !is_foreign && self.follows_calls(open.module);
        let may_send = follows_calls && (self.calls == Some(Calls::All) || may_send(tokens.text()));
        let first_inner = self.package.modules.len();
        let mut reader = FileReader {
            collector: self,
            open,
            id,
            cfg: &cfg,
            text: tokens.text(),
            session: Session::default(),
            is_foreign,
            seen_marks: SeenMarks::new(if is_foreign { &[] } else { tokens.marks() }),
            may_patch: !is_foreign && patches::may_patch(tokens.text()),
            follows_calls,
            may_send,
            renamed: RenamedDerives::find(tokens),
            wrapped: None,
            macros: Vec::new(),
            rewritten: None,
            version: None,
            pending: Vec::new(),
        };
        if !is_foreign {
            reader.go_markers(tokens);
        }
        match reader.file(tokens) {
            Ok(()) => {
                reader.add_macros(tokens);
            }
            // Nothing after this point was read, so don't report marker tokens there as unseen.
            Err(malformed) => {
                let reason = describe_malformed(malformed);
                reader.session.report(reason.clone());
                let said = reader.session.diagnostics.into_vec();
                self.add_unread(open.module, first_inner, id, tokens.text(), reason);
                return said;
            }
        }
        reader.add_allows(!is_foreign);
        reader.session.diagnostics.into_vec()
    }
}

impl Collector<'_> {
    /// Records that items of a file may be missing from its module and its inline modules (those
    /// from index `first` on).
    fn add_unread(&mut self, module: ModuleId, first: usize, file: FileId, text: &str, reason: Diagnostic) {
        let gap = GapId(self.package.gaps.len());
        self.add_gap(
            module,
            Gap {
                file,
                sort: GapSort::Unread,
                text: text.into(),
                hides_kind: text.contains("CustomResource"),
                reason,
            },
        );
        for inner in &mut self.package.modules[first..] {
            inner.gaps.push(gap);
        }
    }
}

pub(super) struct FileReader<'c, 'a> {
    pub(super) collector: &'c mut Collector<'a>,
    pub(super) open: &'c OpenFile,
    pub(super) id: FileId,
    pub(super) cfg: &'c Cfg,
    pub(super) text: &'c str,
    pub(super) session: Session,
    /// True in a path dependency, where only the types that a kind needs are used.
    pub(super) is_foreign: bool,
    pub(super) seen_marks: SeenMarks<'c>,
    pub(super) may_patch: bool,
    pub(super) follows_calls: bool,
    pub(super) may_send: bool,
    pub(super) renamed: RenamedDerives,
    /// Set while reading items from the tokens of a macro call.
    pub(super) wrapped: Option<Wrapped>,
    /// Macro calls between items.
    pub(super) macros: Vec<MacroCall>,
    /// The error about an attribute macro on an enclosing module.
    pub(super) rewritten: Option<Diagnostic>,
    /// Set inside a module with stackable-versioned's `#[versioned]`.
    pub(super) version: Option<ModuleVersion>,
    /// Diagnostics about `cfg` conditions on the current item and its enclosing modules. Reported
    /// only if the item turns out to matter.
    pub(super) pending: Vec<Diagnostic>,
}

impl<'c> FileReader<'c, '_> {
    fn file(&mut self, tokens: &Tokens<'_>) -> Result<(), Diagnostic> {
        let mut items = Items::new(tokens.cursor(), Some(self.cfg));
        let InnerAttributes {
            attrs,
            active,
            conditions,
        } = items.read_inner_attributes()?;
        self.pending.extend(check_conditions(&conditions));
        attrs.iter().for_each(|attr| self.seen_marks.note(attr.span()));
        if !active {
            self.seen_marks.note(tokens.span());
            return Ok(());
        }
        self.session.scope = tokens.span();
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

    pub(super) fn items(
        &mut self,
        mut items: Items<'_, 'c>,
        module: ModuleId,
        location: &Location,
    ) -> Result<(), Diagnostic> {
        while self.one_item(&mut items, module, location)? {}
        Ok(())
    }

    /// Returns false if there are no more items.
    pub(super) fn one_item(
        &mut self,
        items: &mut Items<'_, 'c>,
        module: ModuleId,
        location: &Location,
    ) -> Result<bool, Diagnostic> {
        let types = self.collector.package.types.len();
        let outer = std::mem::take(&mut self.session.diagnostics);
        let read = self.next_item(items, module, location);
        self.add_allows(!self.is_foreign);
        let said = std::mem::take(&mut self.session.diagnostics);
        // Diagnostics about a path dependency stay with the type and are reported only if a kind
        // uses it.
        if self.is_foreign && read.is_ok() {
            self.session.diagnostics = outer;
            if let Some(item) = self.collector.package.types.get_mut(types) {
                item.reserved.extend(said.into_vec());
            }
        } else {
            self.session.diagnostics = joined(outer, said);
        }
        read
    }

    fn next_item(
        &mut self,
        items: &mut Items<'_, 'c>,
        module: ModuleId,
        location: &Location,
    ) -> Result<bool, Diagnostic> {
        let before = items.clone();
        let Some(item) = items.read()? else {
            return Ok(false);
        };
        let outside = self.pending.len();
        self.pending.extend(check_conditions(&item.conditions));
        self.item(item, &before, module, location)?;
        self.pending.truncate(outside);
        Ok(true)
    }

    /// Reports `cfg` conditions on the item and its modules that can't be evaluated.
    pub(super) fn report_pending(&mut self) {
        for diagnostic in self.pending.clone() {
            self.session.report(diagnostic);
        }
        let open = self.open;
        self.collector.report.add_from_files(&open.doubts);
    }

    /// `items` still starts at the item, for macros that read it more than once.
    fn item(
        &mut self,
        item: Item<'_>,
        items: &Items<'_, 'c>,
        module: ModuleId,
        location: &Location,
    ) -> Result<(), Diagnostic> {
        item.written.iter().for_each(|span| self.seen_marks.note(*span));
        let is_test = attributes::is_test(&item.attrs);
        if !is_test && (!item.active || has_hidden_kind(self.text, &item)) {
            self.note_kinds_behind_feature(&item, location);
        }
        if !item.active || is_test {
            self.seen_marks.note(item.span);
            return Ok(());
        }
        let whole = attributes::whole_span(&item);
        self.session.scope = whole;
        let mut attrs = item.attrs;
        self.renamed.add_to(&mut attrs);
        let item_text = &self.text[item.span.range()];
        self.rules(&attrs);
        if !matches!(item.kind, ItemKind::Function(_)) {
            self.misplaced_webhooks(&attrs);
        }
        match item.kind {
            ItemKind::Type(item) => {
                let source = (&attrs[..], &self.text[whole.range()]);
                if self.versioned_type(items, source, item.ident, module, location)? {
                    return Ok(());
                }
                self.fields(&item, module);
                self.type_item(item, &attrs, module, item_text, whole);
            }
            ItemKind::Trait(ident, content) => {
                self.name(module, ident, Name::Opaque);
                return self.members(Items::new(content, Some(self.cfg)), None, module);
            }
            ItemKind::Impl(item) => {
                self.by_hand(&item, module)?;
                return self.members(Items::new(item.content, Some(self.cfg)), Some(&item), module);
            }
            ItemKind::Function(function) => {
                self.function_value(&function, None, module);
                self.function(&function, None, module);
                self.patches(&function, None, module);
                return self.webhooks(&attrs, &function, None, module);
            }
            ItemKind::Constant(constant) => self.constant_value(&constant, None, module),
            ItemKind::Alias(item) => self.alias(item, module),
            ItemKind::Use(tree) => return self.imports(tree, module),
            ItemKind::ExternCrate(ident, rename) => {
                let path = match ident.text {
                    // As in `extern crate self as name;`.
                    "self" => vec!["crate".to_owned()],
                    // The empty segment is a leading `::`.
                    name => vec![String::new(), name.to_owned()],
                };
                self.name(module, rename.unwrap_or(ident), Name::Import(path));
            }
            ItemKind::Module(ident, content) => {
                return self.module(ident, content, &attrs, module, location, item_text);
            }
            ItemKind::Macro(mac) if include::is_include(&mac) => self.include(&mac, module, Content::Items),
            ItemKind::Macro(mac) if mac.path.last() == Some(&"lazy_static") => {
                self.lazy_statics(mac.body, module);
                self.macros.push(MacroCall::new(mac.span, module, location));
            }
            ItemKind::Macro(mac) => self.macros.push(MacroCall::new(mac.span, module, location)),
            ItemKind::Other => {}
        }
        Ok(())
    }

    fn members(
        &mut self,
        mut items: Items<'_, 'c>,
        around: Option<&Implementation<'_>>,
        module: ModuleId,
    ) -> Result<(), Diagnostic> {
        let outside = self.pending.len();
        while let Some(item) = items.read()? {
            self.pending.truncate(outside);
            self.pending.extend(check_conditions(&item.conditions));
            item.written.iter().for_each(|span| self.seen_marks.note(*span));
            if !item.active {
                self.seen_marks.note(item.span);
                continue;
            }
            self.session.scope = attributes::whole_span(&item);
            self.rules(&item.attrs);
            match item.kind {
                ItemKind::Function(function) => {
                    if around.is_some() {
                        self.function_value(&function, around, module);
                        self.function(&function, around, module);
                    }
                    self.patches(&function, around, module);
                    self.webhooks(&item.attrs, &function, around, module)?;
                }
                ItemKind::Constant(constant) if around.is_some() => {
                    self.constant_value(&constant, around, module);
                }
                ItemKind::Macro(mac) if include::is_include(&mac) => {
                    self.include(&mac, module, Content::Members);
                }
                _ => {}
            }
        }
        self.pending.truncate(outside);
        Ok(())
    }

    /// Suppresses the warnings named by the `allow(…)` markers read so far. `is_checked` tells
    /// whether this run finds all warnings about their items; otherwise a marker can't be called
    /// unused.
    pub(super) fn add_allows(&mut self, is_checked: bool) {
        for mut allow in std::mem::take(&mut self.session.allows) {
            if let Some(wrapped) = &self.wrapped {
                wrapped.place_allow(&mut allow);
            }
            self.collector.report.allow(self.id, &allow, is_checked);
        }
    }

    pub(super) fn name(&mut self, module: ModuleId, ident: Ident<'_>, name: Name) {
        self.collector.package.modules[module.0]
            .names
            .insert(ident.text.to_owned(), name);
    }
}
