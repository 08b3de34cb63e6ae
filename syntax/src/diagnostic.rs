//! Diagnostics about one text.

use rbuilder_reader::Span;

/// A diagnostic about a part of one text.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<Span>;
/// Diagnostics about one text.
pub type Diagnostics = rbuilder_diagnostic::Diagnostics<Span>;

/// Returns the error about a text that the reader cannot read.
pub fn describe_malformed(reason: Diagnostic) -> Diagnostic {
    if reason.is_error() {
        return reason.map_message(|message| format!("syntax error: {message}"));
    }
    Diagnostic::error(reason.place, reason.message)
        .help("reduce the nesting: rbuilder reads up to fifty levels")
}
