//! A complaint as data: said once here, shown by the compiler and by the command line in the same words.

use crate::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is written while one stands.
    Error,
    /// The output is written all the same.
    Warning,
    /// Nothing is wrong, and the output is not all that one may expect.
    Note,
}

/// One complaint about one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Diagnostic {
    /// Where.
    pub span: Span,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong: a phrase in lower case, names in backticks.
    pub message: String,
    /// What to write instead, a phrase.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            span,
            severity: Severity::Error,
            message: message.into(),
            help: None,
        }
    }

    /// A warning at a place.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            span,
            severity: Severity::Warning,
            message: message.into(),
            help: None,
        }
    }

    /// Says what to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Message and help as one text: what a compile error says.
    pub fn text(&self) -> String {
        match &self.help {
            Some(help) => format!("{}\nhelp: {help}", self.message),
            None => self.message.clone(),
        }
    }
}

/// Collects complaints within a stage, so that one mistake does not hide the next.
#[derive(Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Whether an error was added.
    pub fn has_errors(&self) -> bool {
        self.list
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// How many errors were added, so that a stage can tell its own from earlier ones.
    pub fn error_count(&self) -> usize {
        self.list
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .count()
    }

    /// All of them, in the order they were found.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}
