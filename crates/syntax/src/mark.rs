//! Marker tokens. The generator must not miss one of them, wherever in a file it is.

use crate::Diagnostic;
use rbuilder_reader::token::{Mark, MarkWords, Tokens, lex_marked};

/// The type of a marker token.
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
    /// Returns the word of the marker.
    pub fn word(self) -> &'static str {
        match self {
            MarkKind::Kind => "CustomResource",
            MarkKind::Rbac => "rbac",
            MarkKind::Webhook => "webhook",
        }
    }

    /// Returns the type of a mark found by [`lex_file`].
    pub fn of(mark: &Mark) -> Self {
        match mark.word {
            "rbac" => MarkKind::Rbac,
            "webhook" => MarkKind::Webhook,
            _ => MarkKind::Kind,
        }
    }
}

/// Tokenizes a file, and records marker tokens and comments that are Go markers.
///
/// # Errors
///
/// Returns an error if the text is not valid Rust at the token level.
pub fn lex_file(text: &str) -> Result<Tokens<'_>, Diagnostic> {
    lex_marked(text, &WORDS)
}
