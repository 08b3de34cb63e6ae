//! Collects complaints and brings them into the order in which they are said.

use std::ops::Range;

use rbuilder_diagnostic::Severity;

use crate::Diagnostic;
use crate::package::{File, Package, Place};

/// Everything to be said about a package.
#[derive(Debug, Default)]
pub(crate) struct Report {
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

    /// Whether an error was told in a part of a file.
    pub(crate) fn is_told(&self, package: &Package, place: Place, part: Range<usize>, message: &str) -> bool {
        let path = &package.files[place.file.0].path;
        self.list.iter().any(|told| {
            told.severity == Severity::Error
                && told.message == message
                && told.path == *path
                && part.start <= told.range.start
                && told.range.end <= part.end
        })
    }

    /// Adds what `rbuilder-syntax` said about a file.
    pub(crate) fn add_all(
        &mut self,
        file: &File,
        found: impl IntoIterator<Item = rbuilder_syntax::Diagnostic>,
    ) {
        for diagnostic in found {
            self.push(Diagnostic {
                path: file.path.clone(),
                range: diagnostic.place.range(),
                severity: diagnostic.severity,
                message: diagnostic.message,
                help: diagnostic.help,
            });
        }
    }

    /// Adds a complaint about a place of a package that has been collected.
    pub(crate) fn say(
        &mut self,
        package: &Package,
        place: Place,
        severity: Severity,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        let file = &package.files[place.file.0];
        let range = place.span.range();
        self.push(Diagnostic {
            path: file.path.clone(),
            range,
            severity,
            message: message.into(),
            help,
        });
    }

    pub(crate) fn error(&mut self, package: &Package, place: Place, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.say(package, place, Severity::Error, message, help);
    }

    pub(crate) fn warning(
        &mut self,
        package: &Package,
        place: Place,
        message: impl Into<String>,
        help: &str,
    ) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.say(package, place, Severity::Warning, message, help);
    }

    /// By place, without duplicates: an item that two targets share is read twice.
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
