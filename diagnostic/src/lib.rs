//! Errors, warnings and notes as data, said once and shown by rustc and by the command in the same words.
//!
//! A [`Diagnostic`] is generic over its place, because the crates that find mistakes know different places: a path in
//! a schema, bytes of an expression, a span of one text, a range of a named file. A crate reports in the places it
//! knows, and its caller, who knows more, converts them with [`Diagnostic::map_place`]. Printing is the caller's too.

pub mod suggest;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is written while one stands.
    Error,
    /// The output is written all the same.
    Warning,
    /// Nothing is wrong, but the output may not be all that one expects.
    Note,
}

/// An error, a warning or a note about one place.
///
/// The order is that of places, then severity, message and help. Outside of this crate a diagnostic is made by
/// [`error`](Diagnostic::error), [`warning`](Diagnostic::warning), [`note`](Diagnostic::note) or
/// [`new`](Diagnostic::new) and completed by [`help`](Diagnostic::help), so that it can gain parts (a stable code)
/// without a change where it is made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Diagnostic<P> {
    /// The place it is about.
    pub place: P,
    /// Its severity.
    pub severity: Severity,
    /// The mistake: a phrase in lower case, names in backticks.
    pub message: String,
    /// The advice, as an imperative; `None` where the message says all.
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

    /// Sets the help, or removes it.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    /// Changes the message, as a crate does that adds what the message is about.
    #[must_use]
    pub fn map_message(mut self, message: impl FnOnce(String) -> String) -> Self {
        self.message = message(self.message);
        self
    }

    /// Returns whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Converts the place, as a crate does that knows it better than the one that reported.
    #[must_use]
    pub fn map_place<Q>(self, place: impl FnOnce(P) -> Q) -> Diagnostic<Q> {
        Diagnostic {
            place: place(self.place),
            severity: self.severity,
            message: self.message,
            help: self.help,
        }
    }

    /// Moves it to another place.
    #[must_use]
    pub fn at<Q>(self, place: Q) -> Diagnostic<Q> {
        self.map_place(|_| place)
    }

    /// Returns message and help as one string, as a compile error shows them.
    pub fn text(&self) -> String {
        match &self.help {
            Some(help) => format!("{}\nhelp: {help}", self.message),
            None => self.message.clone(),
        }
    }
}

/// Collects diagnostics within a stage, so that one mistake does not hide the next.
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
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic<P>) {
        self.list.push(diagnostic);
    }

    /// Returns whether an error was added.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// Counts the errors added so far, so that a stage can tell its own from earlier ones.
    pub fn error_count(&self) -> usize {
        self.list
            .iter()
            .filter(|diagnostic| diagnostic.is_error())
            .count()
    }

    /// Returns all of them, in the order they were added.
    pub fn into_vec(self) -> Vec<Diagnostic<P>> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_changes_the_place_only() {
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
    fn places_order_before_severities() {
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
    fn warnings_and_notes_are_no_errors() {
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(Diagnostic::warning((), "a"));
        diagnostics.push(Diagnostic::note((), "b"));
        assert!(!diagnostics.has_errors());
        diagnostics.push(Diagnostic::error((), "c"));
        assert!(diagnostics.has_errors());
        assert_eq!((diagnostics.error_count(), diagnostics.into_vec().len()), (1, 3));
    }
}
