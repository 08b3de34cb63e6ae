//! `allow(…)` suppresses warnings about an item, by code.
//!
//! The generator applies it, because most warnings need more than one item. The generator also has
//! the table of codes: the derive is compiled in every build of an operator and does not need the
//! texts. This module only has the numbers, so that both reject an unknown code.

use rbuilder_diagnostic::suggest;
use rbuilder_reader::{Attribute, Span, TypeRef};

use crate::Session;
use crate::args::{Arg, ArgValue, ReadArg as _};
use crate::table::report_duplicate;

/// The highest number for each subject, e.g. 112 for `RB0112`. A test in the generator compares the
/// numbers with its table.
const LAST_NUMBERS: [u16; 10] = [112, 208, 312, 411, 510, 607, 707, 805, 908, 1010];

/// The argument of `allow(…)` that gives the reason.
const REASON: &str = "reason";

/// A code whose warnings and notes are suppressed within an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    /// The code, e.g. `RB0306`.
    pub code: String,
    /// The location of the code in the marker.
    pub span: Span,
    /// The item, field or variant with the marker, including its attributes.
    pub scope: Span,
}

/// Returns all codes, in ascending order.
pub fn codes() -> impl Iterator<Item = String> {
    LAST_NUMBERS
        .iter()
        .flat_map(|last| last / 100 * 100 + 1..=*last)
        .map(|number| format!("RB{number:04}"))
}

/// Checks that `word` is a code.
///
/// # Errors
///
/// Returns a help text that suggests what to write instead.
pub fn check_code(word: &str) -> Result<(), String> {
    let upper = word.to_uppercase();
    let mut similar = None;
    for code in codes() {
        if code == word {
            return Ok(());
        }
        if code == upper || similar.is_none() && suggest::is_one_slip(&upper, &code) {
            similar = Some(code);
        }
    }
    Err(match similar {
        Some(code) => format!("did you mean `{code}`?"),
        None => "run `rbuilder explain` to list the codes".to_owned(),
    })
}

pub(crate) fn read_allow(arg: &Arg<'_>, scope: Span, session: &mut Session) {
    let Some(args) = arg.list(session) else { return };
    let mut codes: Vec<&str> = Vec::new();
    let mut has_reason = false;
    for code in args {
        if code.name == REASON && !matches!(code.value, ArgValue::Flag) {
            code.text(session);
            if std::mem::replace(&mut has_reason, true) {
                report_duplicate(code, session);
            }
        } else if codes.contains(&code.name) {
            report_duplicate(code, session);
        } else if let Err(help) = check_code(code.name) {
            session.error_help(code.span, format!("unknown code `{}`", code.name), help);
            codes.push(code.name);
        } else if code.flag(session) {
            session.allows.push(Allow {
                code: code.name.to_owned(),
                span: code.span,
                scope,
            });
            codes.push(code.name);
        }
    }
    if args.iter().all(|code| code.name == REASON) {
        let help = "write the codes of the warnings: `allow(RB0306)`";
        session.error_help(arg.span, format!("`{}` must not be empty", arg.name), help);
    }
}

/// Returns a span from the attributes and the name of a field or variant up to its last type.
pub(crate) fn scope_of<'t>(
    attrs: &[Attribute<'_>],
    name: Span,
    types: impl IntoIterator<Item = &'t TypeRef>,
) -> Span {
    let ends = types.into_iter().map(|ty| ty.span.end);
    Span {
        start: attrs.first().map_or(name, Attribute::span).start,
        end: ends.fold(name.end, u32::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_codes_are_suggested() {
        for (word, expected) in [
            ("RB0306", Ok(())),
            ("rb0306", Err("did you mean `RB0306`?")),
            ("RB306", Err("did you mean `RB0306`?")),
            ("RB0360", Err("did you mean `RB0306`?")),
            ("phone", Err("run `rbuilder explain` to list the codes")),
            ("", Err("run `rbuilder explain` to list the codes")),
        ] {
            assert_eq!(check_code(word), expected.map_err(str::to_owned), "{word}");
        }
    }
}
