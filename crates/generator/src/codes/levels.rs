//! Levels, which turn warnings into errors or suppress them.

use rbuilder_diagnostic::Diagnostic;

use super::Code;
use crate::Severity;

/// Stands for all warnings.
const WARNINGS: &str = "warnings";

/// Determines which warnings and notes become errors, and which are suppressed. By default, they
/// are reported as is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    denies_warnings: bool,
    denied: Vec<&'static str>,
    allowed: Vec<&'static str>,
}

impl Levels {
    /// Turns warnings and notes with the given code into errors. `warnings` stands for all
    /// warnings.
    ///
    /// # Errors
    ///
    /// Returns a message if there is no such code.
    pub fn deny(&mut self, word: &str) -> Result<(), String> {
        if word == WARNINGS {
            self.denies_warnings = true;
            return Ok(());
        }
        let id = find(word)?;
        self.allowed.retain(|allowed| *allowed != id);
        self.denied.push(id);
        Ok(())
    }

    /// Suppresses warnings and notes with the given code. This does not affect errors, since the
    /// manifests would be wrong.
    ///
    /// # Errors
    ///
    /// Returns a message if there is no such code.
    pub fn allow(&mut self, word: &str) -> Result<(), String> {
        let id = find(word)?;
        self.denied.retain(|denied| *denied != id);
        self.allowed.push(id);
        Ok(())
    }

    /// Adds the levels in `other`, which take precedence.
    pub fn extend(&mut self, other: &Levels) {
        self.denies_warnings |= other.denies_warnings;
        self.allowed.retain(|id| !other.denied.contains(id));
        self.denied.retain(|id| !other.allowed.contains(id));
        self.denied.extend(&other.denied);
        self.allowed.extend(&other.allowed);
    }

    /// Applies the levels to a diagnostic. Returns `None` if it's suppressed.
    pub fn apply<P>(&self, mut diagnostic: Diagnostic<P>) -> Option<Diagnostic<P>> {
        if diagnostic.is_error() || *self == Levels::default() {
            return Some(diagnostic);
        }
        let id = Code::of_message(&diagnostic.message).map(|code| code.id);
        let is_in = |list: &[&str]| id.is_some_and(|id| list.contains(&id));
        if is_in(&self.allowed) {
            return None;
        }
        if is_in(&self.denied) || self.denies_warnings && diagnostic.severity == Severity::Warning {
            diagnostic.severity = Severity::Error;
        }
        Some(diagnostic)
    }
}

fn find(word: &str) -> Result<&'static str, String> {
    match Code::of_id(word) {
        Some(code) => Ok(code.id),
        None => {
            let help = rbuilder_syntax::check_code(word).err().unwrap_or_default();
            Err(format!("unknown code `{word}`: {help}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(denied: &[&str], allowed: &[&str]) -> Levels {
        let mut levels = Levels::default();
        denied.iter().for_each(|word| levels.deny(word).expect("a code"));
        allowed
            .iter()
            .for_each(|word| levels.allow(word).expect("a code"));
        levels
    }

    fn severity(levels: &Levels, diagnostic: Diagnostic<()>) -> Option<Severity> {
        levels.apply(diagnostic).map(|diagnostic| diagnostic.severity)
    }

    #[test]
    fn levels_change_warnings_and_notes_only() {
        let warning = || Diagnostic::warning((), "unknown format `x`");
        for (denied, allowed, expected) in [
            (&[][..], &[][..], Some(Severity::Warning)),
            (&["warnings"], &[], Some(Severity::Error)),
            (&["rb0306"], &[], Some(Severity::Error)),
            (&["RB0305"], &[], Some(Severity::Warning)),
            (&["warnings"], &["RB0306"], None),
        ] {
            assert_eq!(
                severity(&levels(denied, allowed), warning()),
                expected,
                "{denied:?} {allowed:?}"
            );
        }
        let error = Diagnostic::error((), "unknown format `x`");
        assert_eq!(severity(&levels(&[], &["RB0306"]), error), Some(Severity::Error));
        let note = || Diagnostic::note((), "unknown format `x`");
        assert_eq!(
            severity(&levels(&["warnings"], &[]), note()),
            Some(Severity::Note)
        );
        assert_eq!(severity(&levels(&["RB0306"], &[]), note()), Some(Severity::Error));
    }

    #[test]
    fn later_levels_take_precedence() {
        let warning = || Diagnostic::warning((), "unknown format `x`");
        let mut project = levels(&[], &["RB0306"]);
        project.extend(&levels(&["RB0306"], &[]));
        assert_eq!(severity(&project, warning()), Some(Severity::Error));
        let mut project = levels(&["RB0306"], &[]);
        project.extend(&levels(&[], &["RB0306"]));
        assert_eq!(severity(&project, warning()), None);
        assert!(project.deny("RB9999").is_err());
    }
}
