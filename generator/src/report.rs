//! Collects diagnostics with what they concern, and sorts them by place.
//!
//! An error holds back the outputs that it concerns. While a kind's schema is made, whatever is found concerns that kind.
//! A schema is made once for all kinds that use it, so whoever remembers one remembers the errors in it as well
//! ([`Report::errors_since`]) and charges them to the next kind that takes it ([`Report::charge`]).

use std::collections::BTreeSet;
use std::ops::Range;

use crate::kube_release::KubeRelease;
use crate::place::{FileId, Files, Place};
use crate::sources::is_within;
use crate::{Diagnostic, FileRange, advice};

/// A diagnostic about a place of the files that have been read.
pub(crate) type PlacedDiagnostic = rbuilder_diagnostic::Diagnostic<Place>;

/// The part of a run that a diagnostic concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Concern {
    /// All outputs: the run cannot be trusted.
    Run,
    /// The outputs that combine the markers of all source, which are the roles and the webhook configurations.
    Markers,
    /// A part of the source, such as a type, and whatever needs it, to which it is charged.
    Part,
    /// The CRD of a kind, by its position among the kinds of the run.
    Kind(usize),
    Roles,
    Webhooks,
}

/// A diagnostic and what it concerns.
#[derive(Debug)]
struct Entry {
    diagnostic: Diagnostic,
    concerns: BTreeSet<Concern>,
}

/// The position of an error among the diagnostics of a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorId(usize);

/// The state of a report before an attempt.
pub(crate) struct Attempt {
    diagnostics: usize,
    errors: usize,
    held_back: BTreeSet<Concern>,
}

/// The diagnostics of a run, and the files they are about.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) files: Files,
    /// The folders of packages that nobody can edit.
    sealed: Vec<String>,
    list: Vec<Entry>,
    /// The part that diagnostics concern which are added now.
    concern: Concern,
    /// The errors in the order in which they were added or charged.
    log: Vec<ErrorId>,
    /// The parts that errors concern.
    held_back: BTreeSet<Concern>,
    /// The release of kube that the advice is for; the newest if nothing says it.
    kube: Option<KubeRelease>,
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
        }
    }
}

impl Report {
    /// Notes that nobody can edit the files in a folder: advice is about the field that leads there.
    pub(crate) fn seal(&mut self, folder: &str) {
        self.sealed.push(folder.to_owned());
    }

    /// Returns whether a file is in such a folder.
    pub(crate) fn is_sealed(&self, path: &str) -> bool {
        self.find_sealed(path).is_some()
    }

    fn find_sealed(&self, path: &str) -> Option<&str> {
        let mut folders = self.sealed.iter();
        folders.find(|folder| is_within(folder, path)).map(String::as_str)
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
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

    /// Sets the release of kube that the program is built with, for which all advice is given.
    pub(crate) fn set_kube(&mut self, kube: Option<KubeRelease>) {
        self.kube = kube;
    }

    /// Sets what is concerned by diagnostics from now on. Returns what was until now.
    pub(crate) fn set_concern(&mut self, concern: Concern) -> Concern {
        std::mem::replace(&mut self.concern, concern)
    }

    /// The number of errors that have been added or charged.
    pub(crate) fn error_count(&self) -> usize {
        self.log.len()
    }

    /// The errors that have been added or charged since there were `count` of them.
    pub(crate) fn errors_since(&self, count: usize) -> Vec<ErrorId> {
        self.log[count..].to_vec()
    }

    /// Notes that errors concern what is being made now as well.
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

    /// Returns true if an error concerns this, or everything.
    pub(crate) fn holds_back(&self, concern: Concern) -> bool {
        self.held_back.contains(&concern) || self.held_back.contains(&Concern::Run)
    }

    /// Begins an attempt that need not succeed, whose diagnostics can be [forgotten](Report::forget).
    pub(crate) fn begin_attempt(&self) -> Attempt {
        Attempt {
            diagnostics: self.list.len(),
            errors: self.log.len(),
            held_back: self.held_back.clone(),
        }
    }

    /// Forgets the diagnostics since an attempt began.
    pub(crate) fn forget(&mut self, attempt: Attempt) {
        self.list.truncate(attempt.diagnostics);
        self.log.truncate(attempt.errors);
        self.held_back = attempt.held_back;
    }

    /// Returns true if an error has been reported within a part of a file.
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

    /// Adds diagnostics about several files.
    pub(crate) fn add_from_files(&mut self, found: &[(FileId, rbuilder_syntax::Diagnostic)]) {
        for (file, diagnostic) in found {
            self.add_all(*file, [diagnostic.clone()]);
        }
    }

    /// Adds a diagnostic about a place.
    pub(crate) fn add(&mut self, diagnostic: PlacedDiagnostic) {
        let files = &self.files;
        let diagnostic =
            diagnostic.map_place(|place| FileRange::new(files.path(place.file), place.span.range()));
        self.push(diagnostic);
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

    /// Returns the diagnostics by place, each with what it concerns, without duplicates: an item that two targets share
    /// is read twice, and a type that two kinds need is complained about for each.
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
