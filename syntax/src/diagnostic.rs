//! Diagnostics about one text.

use rbuilder_reader::Span;
use rbuilder_reader::token::Malformed;

/// A diagnostic about a part of one text.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<Span>;
/// Diagnostics about one text.
pub type Diagnostics = rbuilder_diagnostic::Diagnostics<Span>;

/// Returns the error about a text that cannot be read.
pub fn describe_malformed(error: Malformed) -> Diagnostic {
    if error.too_deep {
        return Diagnostic::error(error.span, error.message)
            .help("reduce the nesting: rbuilder reads up to fifty levels");
    }
    Diagnostic::error(error.span, format!("syntax error: {}", error.message))
}
