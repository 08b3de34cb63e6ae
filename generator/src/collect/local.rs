//! Items that the bodies of functions declare, for functions that return a schema.

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

/// The bytes at most that are written again to read such items, all of them together.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// The words that begin the items that are read, except those that follow another of them.
const KEYWORDS: &[&str] = &[
    "use", "struct", "enum", "type", "const", "static", "fn", "impl", "trait", "union", "mod",
];

/// The words that items inside of a body may not have: kinds and markers there are reported as unread, and a module may have
/// a file of its own.
const REFUSED: &[&str] = &["CustomResource", "rbac", "webhook", "versioned", "mod", "include"];

impl FileReader<'_, '_> {
    /// Reads the items that a body declares between its statements into a module of their own. Nothing if some of them are
    /// not read.
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
        // An item takes the place of a type parameter of the same name, which is looked up first.
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

    /// Reads items of this file from another text, in which they stand where they stand in the file. Returns false if there is
    /// something wrong with them.
    pub(super) fn read_written_items(&mut self, text: &str, module: ModuleId) -> bool {
        let Ok(tokens) = lex(text) else { return false };
        let mut reader = FileReader {
            collector: &mut *self.collector,
            open: self.open,
            id: self.id,
            cfg: self.cfg,
            text,
            session: Session::default(),
            is_foreign: self.is_foreign,
            seen_marks: SeenMarks::new(&[]),
            may_patch: false,
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

/// The items of a body, each where it stands in its file, and blanks in place of everything else.
fn place_items(body: &str, start: u32, items: &[Span]) -> String {
    let mut text = String::with_capacity(start as usize + body.len());
    for span in items {
        let at = start as usize + span.start as usize;
        text.extend(repeat_n(' ', at - text.len()));
        text.push_str(&body[span.range()]);
    }
    text
}
