//! Reads the items in calls of macros that pass items through.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use rbuilder_reader::grammar::Items;
use rbuilder_syntax::{Session, lex_file};

use super::file::FileReader;
use super::kind_macros::KindMacros;
use super::macro_call::{MacroCall, Wrapped};
use super::macro_rules::visit_macros;
use super::renamed::RenamedDerives;
use super::seen_marks::SeenMarks;
use super::wrappers::{Wrapper, find_items, read_wrapper};
use crate::package::ModuleId;

#[derive(Default)]
pub(super) struct Macros {
    /// For each macro name: the file of each definition, and the macro if it passes items through.
    by_name: BTreeMap<String, Vec<(String, Option<Wrapper>)>>,
    of_kinds: KindMacros,
}

impl Macros {
    pub(super) fn kinds(&self) -> &KindMacros {
        &self.of_kinds
    }
}

#[derive(Clone, Copy)]
pub(super) enum Call {
    Read,
    /// The macro derives kinds, but its items couldn't be read.
    Unread,
    DefinesKinds,
    Other,
}

impl FileReader<'_, '_> {
    /// Returns true for a `macro_rules!` that passes items through. The markers of such items are
    /// read at the macro call.
    pub(super) fn is_wrapper(text: &str) -> bool {
        let mut wraps = Vec::new();
        visit_macros(text, |_, rules| wraps.push(read_wrapper(rules).is_some()));
        // Must be the only one, since a definition can contain further definitions.
        wraps == [true]
    }

    pub(super) fn read_wrapped(&mut self, call: &MacroCall) -> Call {
        let module = call.module;
        let text = &self.text[call.span.range()];
        let path = text.split('!').next().unwrap_or_default();
        let name = path.rsplit("::").next().unwrap_or_default().trim();
        let macros = self.macros_of_package(module);
        let Some(known) = macros.by_name.get(name) else {
            return Call::Other;
        };
        // Textual scope decides which definition applies, so prefer definitions in the same file.
        let own: Vec<_> = known.iter().filter(|(path, _)| *path == self.open.path).collect();
        let candidates = if own.is_empty() {
            known.iter().collect()
        } else {
            own
        };
        let Some((_, first)) = candidates.first() else {
            return Call::Other;
        };
        let added = candidates.iter().filter_map(|(_, wrapper)| wrapper.as_ref());
        // Otherwise, markers in the call tell whether it hides a kind.
        let mut added = added.map(|wrapper| &wrapper.added);
        let unread = if added.any(|added| hides_kind(added, &self.renamed)) {
            Call::Unread
        } else if macros.of_kinds.defines_kinds(name) {
            Call::DefinesKinds
        } else {
            Call::Other
        };
        // The definitions differ, and it's unclear which of them applies.
        if candidates.iter().any(|(_, wrapper)| wrapper != first) {
            return unread;
        }
        let Some(wrapper) = first else {
            if matches!(unread, Call::DefinesKinds) {
                let folder = self.collector.package.member(module).folder.clone();
                self.collector.kind_errors.add_call(folder, name);
            }
            return unread;
        };
        let Some(items) = find_items(text, wrapper) else {
            return unread;
        };
        let start = call.span.start as usize;
        for range in items {
            let item = start + range.start..start + range.end;
            if !self.read_wrapped_item(item, &wrapper.added, call) {
                return unread;
            }
        }
        self.seen_marks.note(call.span);
        Call::Read
    }

    fn macros_of_package(&mut self, module: ModuleId) -> Rc<Macros> {
        let folder = self.collector.package.member(module).folder.clone();
        if let Some(known) = self.collector.macros.get(&folder) {
            return Rc::clone(known);
        }
        let mut macros = Macros::default();
        for path in self.collector.sources.rust_files(&folder).unwrap_or_default() {
            let Ok(Some(text)) = self.collector.sources.text(&path) else {
                continue;
            };
            visit_macros(&text, |name, rules| {
                macros.of_kinds.add_rules(name, rules);
                let known = macros.by_name.entry(name.to_owned()).or_default();
                known.push((path.clone(), read_wrapper(rules)));
            });
        }
        let macros = Rc::new(macros);
        self.collector.macros.insert(folder, Rc::clone(&macros));
        macros
    }

    /// Reads one item, prefixed with the attributes in `added`. Returns false on failure.
    fn read_wrapped_item(&mut self, item: Range<usize>, added: &str, call: &MacroCall) -> bool {
        let budget = &mut self.collector.local_bytes;
        // Keep the item at its original offset so that spans point into the real file.
        let (Some(blanks), Some(left)) = (item.start.checked_sub(added.len()), budget.checked_sub(item.end))
        else {
            return false;
        };
        *budget = left;
        let written = &self.text[item.clone()];
        let text = format!("{}{added}{written}", " ".repeat(blanks));
        let Ok(tokens) = lex_file(&text) else { return false };
        let mut session = Session::default();
        session.set_module_version(self.version.clone());
        let mut renamed = RenamedDerives::find(&tokens);
        renamed.extend(&self.renamed);
        let wrapped = Wrapped {
            call: call.span,
            item: item.clone(),
        };
        let first = self.collector.package.types.len();
        let mut reader = FileReader {
            collector: &mut *self.collector,
            open: self.open,
            id: self.id,
            cfg: self.cfg,
            text: &text,
            session,
            is_foreign: self.is_foreign,
            seen_marks: SeenMarks::new(if self.is_foreign { &[] } else { tokens.marks() }),
            follows_calls: false,
            may_send: false,
            may_patch: false,
            renamed,
            wrapped: Some(wrapped.clone()),
            macros: Vec::new(),
            rewritten: self.rewritten.clone(),
            version: self.version.clone(),
            pending: self.pending.clone(),
        };
        let items = Items::new(tokens.cursor(), Some(reader.cfg));
        let read = reader.items(items, call.module, &call.location);
        reader.add_macros(&tokens);
        let said = std::mem::take(&mut reader.session.diagnostics).into_vec();
        for said in said.into_iter().chain(read.err()) {
            self.session.report(said.map_place(|span| wrapped.place(span)));
        }
        for item in &mut self.collector.package.types[first..] {
            wrapped.place_within(item);
        }
        true
    }
}

fn hides_kind(attributes: &str, renamed: &RenamedDerives) -> bool {
    attributes.contains("CustomResource") || renamed.hide_kind_in(attributes)
}
