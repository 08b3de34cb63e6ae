//! Errors, warnings and notes as data, so that rustc and the command line show the same messages.
//!
//! A [`Diagnostic`] is generic over its place, because each crate knows different places. A crate
//! reports diagnostics with its own type of place, and the caller converts them with
//! [`Diagnostic::map_place`]. Printing is up to the caller too.
//!
//! | crate | place |
//! |---|---|
//! | `reader`, `syntax` | `Span`: a range of bytes of one text |
//! | `schema` | `()` for the markers of a value, `Site` for a part of a container, a path for a value in a schema |
//! | `cel` | a range of bytes of an expression; `RulePlace` for a rule of a schema |
//! | `generator` | `Place`: the number of a file and a `Span`; `FileRange` in its results |
//! | `cli` | `FileRange`; a flag, for an invalid name |

pub mod suggest;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Prevents any output from being written.
    Error,
    /// Does not prevent the output from being written.
    Warning,
    /// Nothing is wrong, but the output may lack something that the user expects.
    Note,
}

/// An error, warning or note about a place.
///
/// Diagnostics are ordered by place, then by severity, message and help.
///
/// Other crates create them with [`error`](Diagnostic::error), [`warning`](Diagnostic::warning),
/// [`note`](Diagnostic::note) or [`new`](Diagnostic::new), and add help with
/// [`help`](Diagnostic::help). The struct is non-exhaustive, so that fields (such as a stable code)
/// can be added without changes to these crates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Diagnostic<P> {
    /// The place that the diagnostic is about.
    pub place: P,
    /// The severity.
    pub severity: Severity,
    /// The problem: a phrase in lower case, with names in backticks.
    pub message: String,
    /// What to do, in the imperative. `None` if the message says enough.
    pub help: Option<String>,
}

impl<P> Diagnostic<P> {
    /// Creates a diagnostic without help.
    pub fn new(severity: Severity, place: P, message: impl Into<String>) -> Self {
        Diagnostic {
            place,
            severity,
            message: message.into(),
            help: None,
        }
    }

    /// Creates an error without help.
    pub fn error(place: P, message: impl Into<String>) -> Self {
        Diagnostic::new(Severity::Error, place, message)
    }

    /// Creates a warning without help.
    pub fn warning(place: P, message: impl Into<String>) -> Self {
        Diagnostic::new(Severity::Warning, place, message)
    }

    /// Creates a note without help.
    pub fn note(place: P, message: impl Into<String>) -> Self {
        Diagnostic::new(Severity::Note, place, message)
    }

    /// Sets the help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets or removes the help.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    /// Replaces the message, for example to add what it is about.
    #[must_use]
    pub fn map_message(mut self, message: impl FnOnce(String) -> String) -> Self {
        self.message = message(self.message);
        self
    }

    /// Returns whether this is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Converts the place, for example to one that includes the file.
    #[must_use]
    pub fn map_place<Q>(self, place: impl FnOnce(P) -> Q) -> Diagnostic<Q> {
        Diagnostic {
            place: place(self.place),
            severity: self.severity,
            message: self.message,
            help: self.help,
        }
    }

    /// Replaces the place.
    #[must_use]
    pub fn at<Q>(self, place: Q) -> Diagnostic<Q> {
        self.map_place(|_| place)
    }

    /// Returns the message and the help as one string, as in a compile error.
    pub fn text(&self) -> String {
        match &self.help {
            Some(help) => format!("{}\nhelp: {help}", self.message),
            None => self.message.clone(),
        }
    }
}

/// A list of diagnostics, which lets a stage continue after a mistake and find the next one.
#[derive(Clone, Debug)]
pub struct Diagnostics<P> {
    list: Vec<Diagnostic<P>>,
}

impl<P> Default for Diagnostics<P> {
    fn default() -> Self {
        Diagnostics { list: Vec::new() }
    }
}

impl<P> Diagnostics<P> {
    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic<P>) {
        self.list.push(diagnostic);
    }

    /// Returns whether any of the diagnostics is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// Returns the number of errors so far. A stage compares counts to detect errors of its own.
    pub fn error_count(&self) -> usize {
        self.list
            .iter()
            .filter(|diagnostic| diagnostic.is_error())
            .count()
    }

    /// Returns the diagnostics in the order in which they were added.
    pub fn into_vec(self) -> Vec<Diagnostic<P>> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_place_keeps_severity_and_text() {
        let diagnostic = Diagnostic::warning(3..5, "unknown key `nme`").help("did you mean `name`?");
        let moved = diagnostic.map_place(|range| ("PROJECT", range));
        assert_eq!(
            moved,
            Diagnostic::warning(("PROJECT", 3..5), "unknown key `nme`").help("did you mean `name`?")
        );
        assert_eq!(moved.text(), "unknown key `nme`\nhelp: did you mean `name`?");
        assert_eq!(moved.at(()).place, ());
    }

    #[test]
    fn sorts_by_place_before_severity() {
        let mut all = [
            Diagnostic::note(1, "c"),
            Diagnostic::warning(0, "b"),
            Diagnostic::error(1, "a"),
        ];
        all.sort();
        let order: Vec<_> = all.iter().map(|each| (each.place, each.severity)).collect();
        assert_eq!(
            order,
            [(0, Severity::Warning), (1, Severity::Error), (1, Severity::Note)]
        );
    }

    #[test]
    fn warnings_and_notes_are_not_errors() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(Diagnostic::warning((), "a"));
        diagnostics.push(Diagnostic::note((), "b"));
        assert!(!diagnostics.has_errors());
        diagnostics.push(Diagnostic::error((), "c"));
        assert!(diagnostics.has_errors());
        assert_eq!((diagnostics.error_count(), diagnostics.into_vec().len()), (1, 3));
    }
}
