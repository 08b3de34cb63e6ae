//! Marker tokens. The generator must not miss one of them, wherever in a file it is.

use crate::Diagnostic;
use rbuilder_reader::token::{Mark, MarkWords, Tokens, lex_marked};

/// Which marker a token belongs to.
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

    /// Returns which marker it is that [`lex_file`] has found.
    pub fn of(mark: &Mark) -> Self {
        match mark.word {
            "rbac" => MarkKind::Rbac,
            "webhook" => MarkKind::Webhook,
            _ => MarkKind::Kind,
        }
    }
}

/// Splits a file into tokens, and records those of markers as well as comments that are Go markers.
///
/// # Errors
///
/// Returns an error if the text isn't Rust, as far as tokens can tell.
pub fn lex_file(text: &str) -> Result<Tokens<'_>, Diagnostic> {
    lex_marked(text, &WORDS)
}
