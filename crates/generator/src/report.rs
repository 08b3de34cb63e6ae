//! Collects diagnostics together with the outputs that they affect.
//!
//! An error holds back the outputs that it affects. While the schema of a kind is built, all errors
//! affect that kind. Kinds share schemas, so the caller caches the errors along with a schema
//! ([`Report::errors_since`]) and adds them to each further kind that uses it ([`Report::charge`]).
//!
//! In the end, diagnostics are sorted by place and deduplicated.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::codes::{Allows, Levels};
use rbuilder_syntax::Allow;

use crate::kube_release::KubeRelease;
use crate::place::{FileId, Files, Place};
use crate::sources::is_within;
use crate::{Diagnostic, FileRange, advice};

pub(crate) type PlacedDiagnostic = rbuilder_diagnostic::Diagnostic<Place>;

/// What a diagnostic affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Concern {
    Run,
    /// The outputs that combine markers from all sources: the roles and the webhook configurations.
    Markers,
    /// A part of the source such as a type. The error is charged to everything that uses the part.
    Part,
    /// The CRD of a kind, by its position in the run.
    Kind(usize),
    Roles,
    Webhooks,
}

#[derive(Debug)]
struct Entry {
    diagnostic: Diagnostic,
    concerns: BTreeSet<Concern>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorId(usize);

pub(crate) struct Attempt {
    diagnostics: usize,
    errors: usize,
    held_back: BTreeSet<Concern>,
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) files: Files,
    /// Directories of packages, which users cannot edit.
    sealed: Vec<String>,
    list: Vec<Entry>,
    /// What new diagnostics affect.
    concern: Concern,
    /// Errors in the order in which they were added or charged.
    log: Vec<ErrorId>,
    held_back: BTreeSet<Concern>,
    /// The version of kube that help is written for. `None` is the newest.
    kube: Option<KubeRelease>,
    levels: Levels,
    allows: Allows,
}

impl Default for Report {
    fn default() -> Self {
        Report {
            files: Files::default(),
            sealed: Vec::new(),
            list: Vec::new(),
            concern: Concern::Run,
            log: Vec::new(),
            held_back: BTreeSet::new(),
            kube: None,
            levels: Levels::default(),
            allows: Allows::default(),
        }
    }
}

impl Report {
    pub(crate) fn with_levels(levels: Levels) -> Report {
        Report {
            levels,
            ..Report::default()
        }
    }

    /// Marks a directory as not editable by users. Help for errors there is about the field that
    /// uses the package.
    pub(crate) fn seal(&mut self, folder: &str) {
        self.sealed.push(folder.to_owned());
    }

    pub(crate) fn is_sealed(&self, path: &str) -> bool {
        self.find_sealed(path).is_some()
    }

    fn find_sealed(&self, path: &str) -> Option<&str> {
        let mut folders = self.sealed.iter();
        folders.find(|folder| is_within(folder, path)).map(String::as_str)
    }

    /// Suppresses these warnings from now on. `is_checked` tells whether the run finds all warnings
    /// about the item; otherwise a code can't be called unused.
    pub(crate) fn allow(&mut self, file: FileId, allow: &Allow, is_checked: bool) {
        self.allows.add(self.files.path(file), allow, is_checked);
    }

    /// Reports codes in `allow(…)` that have no effect. Unused codes are only known if the run is
    /// complete. Errors about codes don't hold back anything.
    pub(crate) fn check_allows(&mut self, is_complete: bool) {
        let outer = self.set_concern(Concern::Part);
        let mut found = self.allows.find_errors();
        if is_complete {
            found.extend(self.allows.find_unused());
        }
        found.into_iter().for_each(|diagnostic| self.push(diagnostic));
        self.set_concern(outer);
    }

    pub(crate) fn take_allows(&mut self) -> Allows {
        std::mem::take(&mut self.allows)
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        if self.allows.covers(&diagnostic) {
            return;
        }
        let Some(diagnostic) = self.levels.apply(diagnostic) else {
            return;
        };
        let help = self
            .find_sealed(&diagnostic.place.path)
            .map(advice::for_published);
        let diagnostic = match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        };
        let id = ErrorId(self.list.len());
        let is_error = diagnostic.is_error();
        self.list.push(Entry {
            diagnostic,
            concerns: BTreeSet::from([self.concern]),
        });
        if is_error {
            self.log.push(id);
            self.held_back.insert(self.concern);
        }
    }

    pub(crate) fn set_kube(&mut self, kube: Option<KubeRelease>) {
        self.kube = kube;
    }

    /// Returns the previous value, for the caller to restore.
    pub(crate) fn set_concern(&mut self, concern: Concern) -> Concern {
        std::mem::replace(&mut self.concern, concern)
    }

    pub(crate) fn error_count(&self) -> usize {
        self.log.len()
    }

    pub(crate) fn errors_since(&self, count: usize) -> Vec<ErrorId> {
        self.log[count..].to_vec()
    }

    pub(crate) fn charge(&mut self, errors: &[ErrorId]) {
        for id in errors {
            self.list[id.0].concerns.insert(self.concern);
            // Log the error again, so that `errors_since` includes it in an outer schema.
            self.log.push(*id);
            self.held_back.insert(self.concern);
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.log.is_empty()
    }

    /// Returns true if an error holds back this output or all outputs.
    pub(crate) fn holds_back(&self, concern: Concern) -> bool {
        self.held_back.contains(&concern) || self.held_back.contains(&Concern::Run)
    }

    /// Starts an attempt, whose diagnostics can be [discarded](Report::forget) if it fails.
    pub(crate) fn begin_attempt(&self) -> Attempt {
        Attempt {
            diagnostics: self.list.len(),
            errors: self.log.len(),
            held_back: self.held_back.clone(),
        }
    }

    pub(crate) fn forget(&mut self, attempt: Attempt) {
        self.list.truncate(attempt.diagnostics);
        self.log.truncate(attempt.errors);
        self.held_back = attempt.held_back;
    }

    pub(crate) fn has_error_within(&self, file: FileId, part: Range<usize>) -> bool {
        let path = self.files.path(file);
        self.list.iter().any(|Entry { diagnostic, .. }| {
            let place = &diagnostic.place;
            diagnostic.is_error()
                && place.path == path
                && part.start <= place.range.start
                && place.range.end <= part.end
        })
    }

    pub(crate) fn add_all(
        &mut self,
        file: FileId,
        found: impl IntoIterator<Item = rbuilder_syntax::Diagnostic>,
    ) {
        for diagnostic in found {
            self.add(diagnostic.map_place(|span| Place { file, span }));
        }
    }

    pub(crate) fn add_from_files(&mut self, found: &[(FileId, rbuilder_syntax::Diagnostic)]) {
        for (file, diagnostic) in found {
            self.add_all(*file, [diagnostic.clone()]);
        }
    }

    pub(crate) fn add(&mut self, diagnostic: PlacedDiagnostic) {
        let files = &self.files;
        let diagnostic =
            diagnostic.map_place(|place| FileRange::new(files.path(place.file), place.span.range()));
        self.push(diagnostic);
    }

    /// Reports an error, without help if `help` is empty.
    pub(crate) fn error(&mut self, place: Place, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.add(PlacedDiagnostic::error(place, message).maybe_help(help));
    }

    pub(crate) fn warning(&mut self, place: Place, message: impl Into<String>, help: &str) {
        let help = (!help.is_empty()).then(|| help.to_owned());
        self.add(PlacedDiagnostic::warning(place, message).maybe_help(help));
    }

    pub(crate) fn note(&mut self, place: Place, message: impl Into<String>) {
        self.add(PlacedDiagnostic::note(place, message));
    }

    /// Returns the diagnostics by place, together with the concerns they affect.
    pub(crate) fn into_sorted(mut self) -> Vec<(Diagnostic, BTreeSet<Concern>)> {
        if let Some(kube) = self.kube {
            for Entry { diagnostic, .. } in &mut self.list {
                diagnostic.help = diagnostic.help.take().map(|help| advice::for_kube(&help, kube));
            }
        }
        // Include the message, so that duplicates end up next to each other.
        self.list.sort_by_cached_key(|Entry { diagnostic: d, .. }| {
            (
                d.place.path.clone(),
                d.place.range.start,
                d.place.range.end,
                d.severity,
                d.message.clone(),
            )
        });
        // Merge duplicates: an item in two targets is read twice, and a type is reported for each
        // kind that uses it.
        let mut sorted: Vec<(Diagnostic, BTreeSet<Concern>)> = Vec::new();
        for Entry { diagnostic, concerns } in self.list {
            match sorted.last_mut() {
                Some((last, known)) if *last == diagnostic => known.extend(concerns),
                _ => sorted.push((diagnostic, concerns)),
            }
        }
        sorted
    }
}
