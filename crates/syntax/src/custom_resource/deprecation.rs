//! `deprecated`, with or without a warning.

use crate::Session;
use crate::args::{Arg, ArgValue, ReadArg as _};

/// Returns the warning, or `None` for the API server's default warning.
pub(super) fn read_deprecation(arg: &Arg, session: &mut Session) -> Option<String> {
    if matches!(arg.value, ArgValue::Flag) {
        return None;
    }
    let warning = arg.text(session)?;
    let problem = if warning.is_empty() {
        Some("is empty")
    } else if warning.len() > 256 {
        Some("is longer than 256 bytes")
    } else if !warning.chars().all(is_printable) {
        Some("contains a character that cannot be printed")
    } else {
        None
    };
    if let Some(problem) = problem {
        let help = "write a single line of at most 256 bytes, or `deprecated` alone for the API server's own warning";
        session.error_help(
            arg.value_span(),
            format!("the deprecation warning {problem}"),
            help,
        );
    }
    Some(warning)
}

/// Like the API server's check with Go's `unicode.IsPrint`, but also accepts unassigned characters.
fn is_printable(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    let is_private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_format || is_private)
}
