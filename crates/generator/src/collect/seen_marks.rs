//! Tracks which marker tokens a parser has read. The others are reported, unless their items are
//! not compiled.

use rbuilder_diagnostic::Severity;
use rbuilder_reader::Span;
use rbuilder_reader::token::Mark;
use rbuilder_syntax::{Diagnostic, MarkKind};

/// The marker tokens of a file, and whether any parser has seen each of them.
pub(super) struct SeenMarks<'t> {
    marks: &'t [Mark],
    seen: Vec<bool>,
}

impl<'t> SeenMarks<'t> {
    pub(super) fn new(marks: &'t [Mark]) -> Self {
        SeenMarks {
            marks,
            seen: vec![false; marks.len()],
        }
    }

    pub(super) fn note(&mut self, span: Span) {
        let first = self.marks.partition_point(|mark| mark.at < span.start);
        for (mark, seen) in self.marks[first..].iter().zip(&mut self.seen[first..]) {
            if !span.contains(mark.at) {
                return;
            }
            *seen = true;
        }
    }

    pub(super) fn unseen(&self) -> impl Iterator<Item = &'t Mark> {
        let marks = self.marks.iter().zip(&self.seen);
        marks.filter(|(_, seen)| !**seen).map(|(mark, _)| mark)
    }
}

/// Returns a diagnostic for each unseen token, but only one per macro, along with the macro's index
/// in `macros`.
pub(super) fn report_unseen<'m>(
    unseen: impl Iterator<Item = &'m Mark>,
    macros: &[Span],
) -> Vec<(Diagnostic, Option<usize>)> {
    let mut found: Vec<(Diagnostic, Option<usize>)> = Vec::new();
    for mark in unseen {
        let within = macros.iter().position(|span| span.contains(mark.at));
        let is_told = found
            .iter()
            .any(|(_, earlier)| within.is_some() && *earlier == within);
        if !is_told {
            found.push((unseen_mark(mark), within));
        }
    }
    found
}

fn unseen_mark(mark: &Mark) -> Diagnostic {
    let (severity, message, help) = match (MarkKind::of(mark), mark.in_body) {
        (MarkKind::Kind, false) => (
            Severity::Error,
            "this kind is inside a macro, which rbuilder does not expand",
            "write the struct outside of the macro",
        ),
        (MarkKind::Rbac | MarkKind::Webhook, false) => (
            Severity::Error,
            "this marker is inside a macro, which rbuilder does not expand",
            "move the marker to an item outside of the macro",
        ),
        (MarkKind::Kind, true) => (
            Severity::Warning,
            "a kind inside a function is not part of the API",
            "move the struct out of the function",
        ),
        (MarkKind::Rbac | MarkKind::Webhook, true) => (
            Severity::Error,
            "markers inside a function are not read",
            "move the marker to the function",
        ),
    };
    Diagnostic::new(severity, mark.span(), message).help(help)
}
