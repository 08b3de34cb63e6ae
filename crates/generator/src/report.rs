//! Collects diagnostics together with the outputs that they affect.
//!
//! An error prevents the outputs that it affects. While a kind's schema is being built, all errors
//! affect that kind. Schemas are shared between kinds, so a cache stores the errors along with the
//! schema ([`Report::errors_since`]) and adds them to each further kind that uses it
//! ([`Report::charge`]).
//!
//! Finally, diagnostics are sorted by place, and duplicates are removed.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::codes::{Allows, Levels};
use rbuilder_syntax::Allow;

use crate::kube_release::KubeRelease;
use crate::place::{FileId, Files, Place};
use crate::sources::is_within;
use crate::{Diagnostic, FileRange, advice};

/// A diagnostic at a place in a file that has been read.
pub(crate) type PlacedDiagnostic = rbuilder_diagnostic::Diagnostic<Place>;

/// The outputs that a diagnostic affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Concern {
    /// All outputs.
    Run,
    /// The outputs that combine markers from all sources: the roles and the webhook configurations.
    Markers,
    /// Part of the source, such as a type. The error is charged to everything that uses that part.
    Part,
    /// The CRD of a kind, by the kind's position in the run.
    Kind(usize),
    Roles,
    Webhooks,
}

/// A diagnostic and what it affects.
#[derive(Debug)]
struct Entry {
    diagnostic: Diagnostic,
    concerns: BTreeSet<Concern>,
}

/// The index of an error in a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorId(usize);

/// The state of a report before an attempt.
pub(crate) struct Attempt {
    diagnostics: usize,
    errors: usize,
    held_back: BTreeSet<Concern>,
}

/// The diagnostics of a run and the files they refer to.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) files: Files,
    /// Directories of packages that the user cannot edit.
    sealed: Vec<String>,
    list: Vec<Entry>,
    /// The outputs that new diagnostics affect.
    concern: Concern,
    /// Errors in the order in which they were added or charged.
    log: Vec<ErrorId>,
    /// Everything affected by an error.
    held_back: BTreeSet<Concern>,
    /// The version of kube for which help is written; `None` for the newest.
    kube: Option<KubeRelease>,
    levels: Levels,
    /// The warnings suppressed in the source.
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
    /// Creates a report that applies levels to its diagnostics.
    pub(crate) fn with_levels(levels: Levels) -> Report {
        Report {
            levels,
            ..Report::default()
        }
    }

    /// Marks a directory as not editable. Help for errors there refers to the field that uses the
    /// package.
    pub(crate) fn seal(&mut self, folder: &str) {
        self.sealed.push(folder.to_owned());
    }

    /// Returns whether a file is in a directory that the user cannot edit.
    pub(crate) fn is_sealed(&self, path: &str) -> bool {
        self.find_sealed(path).is_some()
    }

    fn find_sealed(&self, path: &str) -> Option<&str> {
        let mut folders = self.sealed.iter();
        folders.find(|folder| is_within(folder, path)).map(String::as_str)
    }

    /// Suppresses warnings from now on. `is_checked` indicates whether the run finds all warnings
    /// about the item.
    pub(crate) fn allow(&mut self, file: FileId, allow: &Allow, is_checked: bool) {
        self.allows.add(self.files.path(file), allow, is_checked);
    }

    /// Reports codes in `allow(…)` without effect. Unused codes are only reported if the run is
    /// complete. An error about them affects no output.
    pub(crate) fn check_allows(&mut self, is_complete: bool) {
        let outer = self.set_concern(Concern::Part);
        let mut found = self.allows.find_errors();
        if is_complete {
            found.extend(self.allows.find_unused());
        }
        found.into_iter().for_each(|diagnostic| self.push(diagnostic));
        self.set_concern(outer);
    }

    /// Takes the warnings suppressed in the source.
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

    /// Sets the version of kube that the program uses, for which help is written.
    pub(crate) fn set_kube(&mut self, kube: Option<KubeRelease>) {
        self.kube = kube;
    }

    /// Sets the outputs that further diagnostics affect and returns the previous value.
    pub(crate) fn set_concern(&mut self, concern: Concern) -> Concern {
        std::mem::replace(&mut self.concern, concern)
    }

    /// Returns the number of errors that have been added or charged.
    pub(crate) fn error_count(&self) -> usize {
        self.log.len()
    }

    /// Returns the errors added or charged after the first `count`.
    pub(crate) fn errors_since(&self, count: usize) -> Vec<ErrorId> {
        self.log[count..].to_vec()
    }

    /// Records that errors also affect the output that is being built.
    pub(crate) fn charge(&mut self, errors: &[ErrorId]) {
        for id in errors {
            self.list[id.0].concerns.insert(self.concern);
            self.log.push(*id);
            self.held_back.insert(self.concern);
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.log.is_empty()
    }

    /// Returns whether an error prevents this output or all outputs.
    pub(crate) fn holds_back(&self, concern: Concern) -> bool {
        self.held_back.contains(&concern) || self.held_back.contains(&Concern::Run)
    }

    /// Starts an attempt that may fail. Its diagnostics can be [discarded](Report::forget).
    pub(crate) fn begin_attempt(&self) -> Attempt {
        Attempt {
            diagnostics: self.list.len(),
            errors: self.log.len(),
            held_back: self.held_back.clone(),
        }
    }

    /// Discards the diagnostics added since an attempt started.
    pub(crate) fn forget(&mut self, attempt: Attempt) {
        self.list.truncate(attempt.diagnostics);
        self.log.truncate(attempt.errors);
        self.held_back = attempt.held_back;
    }

    /// Returns whether an error has been reported in part of a file.
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

    /// Adds diagnostics from `rbuilder-syntax` for a file.
    pub(crate) fn add_all(
        &mut self,
        file: FileId,
        found: impl IntoIterator<Item = rbuilder_syntax::Diagnostic>,
    ) {
        for diagnostic in found {
            self.add(diagnostic.map_place(|span| Place { file, span }));
        }
    }

    /// Adds diagnostics for several files.
    pub(crate) fn add_from_files(&mut self, found: &[(FileId, rbuilder_syntax::Diagnostic)]) {
        for (file, diagnostic) in found {
            self.add_all(*file, [diagnostic.clone()]);
        }
    }

    /// Adds a diagnostic.
    pub(crate) fn add(&mut self, diagnostic: PlacedDiagnostic) {
        let files = &self.files;
        let diagnostic =
            diagnostic.map_place(|place| FileRange::new(files.path(place.file), place.span.range()));
        self.push(diagnostic);
    }

    /// Adds an error; an empty `help` means no help.
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

    /// Returns the diagnostics sorted by place, along with the affected outputs. Duplicates are
    /// merged: an item in two targets is read twice, and a type used by two kinds is reported for
    /// each.
    pub(crate) fn into_sorted(mut self) -> Vec<(Diagnostic, BTreeSet<Concern>)> {
        if let Some(kube) = self.kube {
            for Entry { diagnostic, .. } in &mut self.list {
                diagnostic.help = diagnostic.help.take().map(|help| advice::for_kube(&help, kube));
            }
        }
        self.list.sort_by_cached_key(|Entry { diagnostic: d, .. }| {
            (
                d.place.path.clone(),
                d.place.range.start,
                d.place.range.end,
                d.severity,
                d.message.clone(),
            )
        });
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
