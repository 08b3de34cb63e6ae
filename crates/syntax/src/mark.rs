//! Marker tokens. The generator must not miss any of them, wherever it is in a file.

use crate::Diagnostic;
use rbuilder_reader::token::{Mark, MarkWords, Tokens, lex_marked};

/// The marker that a token belongs to.
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
    // Go markers start with a `+`.
    comments: Some(b'+'),
};

impl MarkKind {
    /// Returns the token itself.
    pub fn word(self) -> &'static str {
        match self {
            MarkKind::Kind => "CustomResource",
            MarkKind::Rbac => "rbac",
            MarkKind::Webhook => "webhook",
        }
    }

    /// Returns the kind of a marker found by [`lex_file`].
    pub fn of(mark: &Mark) -> Self {
        match mark.word {
            "rbac" => MarkKind::Rbac,
            "webhook" => MarkKind::Webhook,
            _ => MarkKind::Kind,
        }
    }
}

/// Splits a file into tokens, recording marker tokens and comments that are Go markers.
///
/// # Errors
///
/// Returns an error if the text can't be split into Rust tokens.
pub fn lex_file(text: &str) -> Result<Tokens<'_>, Diagnostic> {
    lex_marked(text, &WORDS)
}
