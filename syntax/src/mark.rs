//! Marker tokens: what a reader of manifests must not miss, wherever it stands.

use crate::Diagnostic;
use rbuilder_reader::token::{Mark, MarkWords, Tokens, lex_marked};

/// The sorts of marker tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// `CustomResource` in a `derive(…)`.
    Kind,
    /// `rbac(…)` in an attribute.
    Rbac,
    /// `webhook(…)` in an attribute.
    Webhook,
}

const WORDS: MarkWords = MarkWords {
    derives: &["CustomResource"],
    attributes: &["rbac", "webhook"],
    // Markers in Go.
    comments: Some(b'+'),
};

impl MarkKind {
    /// The word itself.
    pub fn word(self) -> &'static str {
        match self {
            MarkKind::Kind => "CustomResource",
            MarkKind::Rbac => "rbac",
            MarkKind::Webhook => "webhook",
        }
    }

    /// The sort of a mark that [`lex_file`] noted.
    pub fn of(mark: &Mark) -> Self {
        match mark.word {
            "rbac" => MarkKind::Rbac,
            "webhook" => MarkKind::Webhook,
            _ => MarkKind::Kind,
        }
    }
}

/// Reads the text of a file, and notes marker tokens and comments that are markers in Go.
///
/// # Errors
///
/// If the text is not Rust as far as tokens go.
pub fn lex_file(text: &str) -> Result<Tokens<'_>, Diagnostic> {
    lex_marked(text, &WORDS)
}
