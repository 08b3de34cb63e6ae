//! The account of a file's marker tokens: each must be met by a reader, or rightly left out.

use rbuilder_diagnostic::Severity;
use rbuilder_syntax::token::{Mark, MarkKind};
use rbuilder_syntax::{Diagnostic, Span};

/// Which marker tokens have been met.
pub(super) struct Account<'t> {
    marks: &'t [Mark],
    met: Vec<bool>,
}

impl<'t> Account<'t> {
    pub(super) fn new(marks: &'t [Mark]) -> Self {
        Account {
            marks,
            met: vec![false; marks.len()],
        }
    }

    /// Notes that a reader has seen everything in a place, or that a place is not compiled.
    pub(super) fn meet(&mut self, span: Span) {
        let first = self.marks.partition_point(|mark| mark.at < span.start);
        for (mark, met) in self.marks[first..].iter().zip(&mut self.met[first..]) {
            if !span.contains(mark.at) {
                return;
            }
            *met = true;
        }
    }

    /// Complaints about those that no reader has met.
    pub(super) fn complaints(&self) -> impl Iterator<Item = Diagnostic> {
        let marks = self.marks.iter().zip(&self.met);
        marks.filter(|(_, met)| !**met).map(|(mark, _)| unaccounted(mark))
    }
}

/// Where a mark is.
pub(crate) fn place_of_mark(mark: &Mark) -> Span {
    let length = u32::try_from(mark.kind.word().len()).unwrap_or_default();
    Span {
        start: mark.at,
        end: mark.at + length,
    }
}

fn unaccounted(mark: &Mark) -> Diagnostic {
    let (severity, message, help) = match (mark.kind, mark.in_body) {
        (MarkKind::Kind, false) => (
            Severity::Error,
            "this kind is hidden from rbuilder by the macro around it",
            "write the struct out: rbuilder reads source text and does not expand macros",
        ),
        (MarkKind::Rbac | MarkKind::Webhook, false) => (
            Severity::Error,
            "this marker is hidden from rbuilder by the macro around it",
            "put the marker on an item outside of the macro",
        ),
        (MarkKind::Kind, true) => (
            Severity::Warning,
            "a kind inside a function is not part of the API",
            "move the struct out of the function",
        ),
        (MarkKind::Rbac | MarkKind::Webhook, true) => (
            Severity::Error,
            "a marker inside a function is not read",
            "put the marker on the function",
        ),
    };
    Diagnostic::new(severity, place_of_mark(mark), message).help(help)
}
