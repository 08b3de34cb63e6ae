//! Items in the bodies of functions that return a schema.

use std::iter::repeat_n;

use rbuilder_reader::grammar::Items;
use rbuilder_reader::token::lex;
use rbuilder_reader::{Span, find_local_items};
use rbuilder_syntax::Session;

use super::file::FileReader;
use super::path::Location;
use super::seen_marks::SeenMarks;
use crate::gap::words;
use crate::package::{LocalItems, ModuleId};

/// Maximum number of bytes lexed again, for all bodies together.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// Keywords that start an item. `pub` and `unsafe` aren't needed: one of these follows them.
const KEYWORDS: &[&str] = &[
    "use", "struct", "enum", "type", "const", "static", "fn", "impl", "trait", "union", "mod",
];

/// Local items containing these words are given up: markers in a body are reported as unread, and a
/// module may be in another file.
const REFUSED: &[&str] = &["CustomResource", "rbac", "webhook", "versioned", "mod", "include"];

impl FileReader<'_, '_> {
    /// Reads the items declared in a body into a module of their own. Returns `None` unless all of
    /// them can be read.
    pub(super) fn local_items(
        &mut self,
        body: &str,
        start: u32,
        type_parameters: &[String],
        module: ModuleId,
    ) -> Option<LocalItems> {
        if !words(body).any(|word| KEYWORDS.contains(&word)) {
            return Some(LocalItems::None);
        }
        let tokens = lex(body).ok()?;
        let items = find_local_items(tokens.cursor());
        if items.is_empty() {
            return Some(LocalItems::None);
        }
        let mut texts = items.iter().map(|span| &body[span.range()]);
        if texts.any(|text| words(text).any(|word| REFUSED.contains(&word))) {
            return None;
        }
        let bytes = start as usize + body.len();
        self.collector.local_bytes = self.collector.local_bytes.checked_sub(bytes)?;
        let inner = self.read_local_items(&place_items(body, start, &items), module)?;
        // A local item shadows a type parameter of the same name, but the lookup tries type
        // parameters first.
        let names = &self.collector.package.module(inner).names;
        let is_hidden = type_parameters.iter().any(|name| names.contains_key(name));
        (!is_hidden).then_some(LocalItems::Module(inner))
    }

    fn read_local_items(&mut self, text: &str, module: ModuleId) -> Option<ModuleId> {
        let package = self.collector.package.module(module).package;
        let inner = self.collector.add_module(package, Some(module));
        self.collector.package.modules[inner.0].is_body = true;
        self.read_written_items(text, inner).then_some(inner)
    }

    /// Reads items from `text` as if they were written in this file; each must be at its original
    /// offset. Returns false on errors.
    pub(super) fn read_written_items(&mut self, text: &str, module: ModuleId) -> bool {
        let Ok(tokens) = lex(text) else { return false };
        let mut session = Session::default();
        session.set_module_version(self.version.clone());
        let mut reader = FileReader {
            collector: &mut *self.collector,
            open: self.open,
            id: self.id,
            cfg: self.cfg,
            text,
            session,
            is_foreign: self.is_foreign,
            seen_marks: SeenMarks::new(&[]),
            may_patch: false,
            follows_calls: false,
            may_send: false,
            renamed: self.renamed.clone(),
            wrapped: self.wrapped.clone(),
            macros: Vec::new(),
            rewritten: self.rewritten.clone(),
            version: self.version.clone(),
            pending: self.pending.clone(),
        };
        let nowhere = Location {
            folder: String::new(),
            path_folder: String::new(),
        };
        let items = Items::new(tokens.cursor(), Some(reader.cfg));
        let read = reader.items(items, module, &nowhere);
        read.is_ok() && reader.session.diagnostics.into_vec().is_empty()
    }
}

/// Puts the items at their offsets in the file, padded with spaces.
fn place_items(body: &str, start: u32, items: &[Span]) -> String {
    let mut text = String::with_capacity(start as usize + body.len());
    for span in items {
        let at = start as usize + span.start as usize;
        text.extend(repeat_n(' ', at - text.len()));
        text.push_str(&body[span.range()]);
    }
    text
}
