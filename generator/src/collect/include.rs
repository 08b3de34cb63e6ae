//! `include!`: another file's items in the middle of a module.

use syn::{LitStr, Macro};

/// What the argument of an `include!` says.
pub(super) enum Included {
    /// A path from the folder of the file that includes.
    Path(String),
    /// What the build script wrote, which is not there before a build.
    Built,
    /// An expression that only the compiler can follow.
    Unknown,
}

/// Whether a macro is std's `include!`.
pub(super) fn is_include(mac: &Macro) -> bool {
    let names: Vec<_> = mac.path.segments.iter().map(|segment| &segment.ident).collect();
    match names.as_slice() {
        [name] => *name == "include",
        [home, name] => (*home == "std" || *home == "core") && *name == "include",
        _ => false,
    }
}

/// Reads the argument.
pub(super) fn argument(mac: &Macro) -> Included {
    if let Ok(path) = mac.parse_body::<LitStr>() {
        return Included::Path(path.value());
    }
    let text = mac.tokens.to_string();
    if text.contains("\"OUT_DIR\"") {
        Included::Built
    } else {
        Included::Unknown
    }
}
