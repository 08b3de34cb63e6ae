//! Diagnostics about a source text.

use rbuilder_reader::Span;

/// A diagnostic about a span of a text.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<Span>;
/// The diagnostics about a text.
pub type Diagnostics = rbuilder_diagnostic::Diagnostics<Span>;

/// Rewords a syntax error that prevents the whole text from being parsed.
pub fn describe_malformed(reason: Diagnostic) -> Diagnostic {
    if reason.is_error() {
        return reason.map_message(|message| format!("syntax error: {message}"));
    }
    Diagnostic::error(reason.place, reason.message)
        .help("reduce the nesting: rbuilder reads up to fifty levels")
}
