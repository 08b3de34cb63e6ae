//! Collects diagnostics and sorts them by place.

use std::ops::Range;

use rbuilder_diagnostic::Severity;

use crate::Diagnostic;
use crate::place::{FileId, Files, Place};

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
        self.list
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns true if an error with this message has been reported within a part of a file.
    pub(crate) fn has_error(&self, file: FileId, part: Range<usize>, message: &str) -> bool {
        let path = self.files.path(file);
        self.list.iter().any(|known| {
            known.severity == Severity::Error
                && known.message == message
                && known.path == *path
                && part.start <= known.range.start
                && known.range.end <= part.end
        })
    }

    /// Adds the diagnostics of `rbuilder-syntax` about a file.
    pub(crate) fn add_all(
        &mut self,
        file: FileId,
        found: impl IntoIterator<Item = rbuilder_syntax::Diagnostic>,
    ) {
        for diagnostic in found {
            let place = Place {
                file,
                span: diagnostic.place,
            };
            self.add(place, diagnostic.severity, diagnostic.message, diagnostic.help);
        }
    }

    /// Adds a diagnostic about a place.
    pub(crate) fn add(
        &mut self,
        place: Place,
        severity: Severity,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.push(Diagnostic {
            path: self.files.path(place.file).to_owned(),
            range: place.span.range(),
            severity,
            message: message.into(),
            help,
        });
    }

    pub(crate) fn error(&mut self, place: Place, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.add(place, Severity::Error, message, help);
    }

    pub(crate) fn warning(&mut self, place: Place, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.add(place, Severity::Warning, message, help);
    }

    /// Returns the diagnostics by place, without duplicates: an item that two targets share is read twice.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        let key = |d: &Diagnostic| {
            (
                d.path.clone(),
                d.range.start,
                d.range.end,
                d.severity,
                d.message.clone(),
            )
        };
        self.list.sort_by_cached_key(key);
        self.list.dedup();
        self.list
    }
}
