//! `include!`: another file's items in the middle of a module.

use rbuilder_reader::grammar::Macro;
use rbuilder_reader::token::{LiteralKind, text_value};

/// The argument of an `include!`.
pub(super) enum Included {
    /// A path from the folder of the file that includes.
    Path(String),
    /// A file in `OUT_DIR`, which does not exist before a build.
    Built,
    /// An expression that only the compiler can follow.
    Unknown,
}

/// Returns whether a macro is std's `include!`.
pub(super) fn is_include(mac: &Macro<'_>) -> bool {
    matches!(mac.path.as_slice(), ["include"] | ["std" | "core", "include"])
}

/// Reads the argument.
pub(super) fn read_argument(mac: &Macro<'_>) -> Included {
    let mut body = mac.body;
    if let Some((LiteralKind::Text, literal)) = body.literal()
        && (body.eat(b',') || body.is_end())
        && body.is_end()
        && let Some(path) = text_value(literal)
    {
        return Included::Path(path.into_owned());
    }
    if mac.body.text_of(mac.span).contains("\"OUT_DIR\"") {
        Included::Built
    } else {
        Included::Unknown
    }
}
