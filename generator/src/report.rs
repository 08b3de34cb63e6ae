//! Collects diagnostics and sorts them by place.

use std::ops::Range;

use crate::place::{FileId, Files, Place};
use crate::{Diagnostic, FileRange};

/// A diagnostic about a place of the files that have been read.
pub(crate) type PlacedDiagnostic = rbuilder_diagnostic::Diagnostic<Place>;

/// The diagnostics of a run, and the files they are about.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) files: Files,
    list: Vec<Diagnostic>,
}

impl Report {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// Returns true if an error with this message has been reported within a part of a file.
    pub(crate) fn has_error(&self, file: FileId, part: Range<usize>, message: &str) -> bool {
        let path = self.files.path(file);
        self.list.iter().any(|known| {
            known.is_error()
                && known.message == message
                && known.place.path == path
                && part.start <= known.place.range.start
                && known.place.range.end <= part.end
        })
    }

    /// Adds the diagnostics of `rbuilder-syntax` about a file.
    pub(crate) fn add_all(
        &mut self,
        file: FileId,
        found: impl IntoIterator<Item = rbuilder_syntax::Diagnostic>,
    ) {
        for diagnostic in found {
            self.add(diagnostic.map_place(|span| Place { file, span }));
        }
    }

    /// Adds a diagnostic about a place.
    pub(crate) fn add(&mut self, diagnostic: PlacedDiagnostic) {
        let files = &self.files;
        let diagnostic =
            diagnostic.map_place(|place| FileRange::new(files.path(place.file), place.span.range()));
        self.list.push(diagnostic);
    }

    /// Adds an error about a place; an empty `help` is none.
    pub(crate) fn error(&mut self, place: Place, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.add(PlacedDiagnostic::error(place, message).maybe_help(help));
    }

    pub(crate) fn warning(&mut self, place: Place, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.add(PlacedDiagnostic::warning(place, message).maybe_help(help));
    }

    /// Returns the diagnostics by place, without duplicates: an item that two targets share is read twice.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        let key = |d: &Diagnostic| {
            (
                d.place.path.clone(),
                d.place.range.start,
                d.place.range.end,
                d.severity,
                d.message.clone(),
            )
        };
        self.list.sort_by_cached_key(key);
        self.list.dedup();
        self.list
    }
}
