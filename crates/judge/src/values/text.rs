//! Strings: lengths, patterns and formats.

use rbuilder_re2::Pattern;
use rbuilder_schema::Schema;

use super::{Checker, Outcome, Violation, accepts};
use crate::error::FieldError;

/// Returns true if Go's `encoding/base64` decodes a string. Unlike the format `byte`, this accepts
/// empty strings and ignores line breaks.
fn is_decoded_by_go(text: &str) -> bool {
    let text = text.replace(['\r', '\n'], "");
    text.is_empty() || accepts("byte", &text) == Some(true)
}

impl Checker<'_> {
    /// Checks length and pattern. Stops at the first violation, like the server.
    pub(super) fn check_text(&mut self, text: &str, schema: &Schema, path: &str) -> Outcome {
        let length = text.chars().count() as u64;
        if let Some(most) = schema.max_length.filter(|most| length > *most) {
            let message = format!("{path} in body should be at most {most} chars long");
            let error = FieldError::too_long(&self.field(path), most);
            return Violation::new(message, error).into();
        }
        if let Some(least) = schema.min_length.filter(|least| length < *least) {
            let rule = format!("should be at least {least} chars long");
            return self.invalid(path, &text.into(), &rule).into();
        }
        let pattern = schema.pattern.as_deref().filter(|pattern| !pattern.is_empty());
        pattern
            .and_then(|pattern| self.check_pattern(text, pattern, path))
            .into()
    }

    fn check_pattern(&mut self, text: &str, pattern: &str, path: &str) -> Option<Violation> {
        let is_match = match Pattern::parse(pattern) {
            Ok(parsed) => parsed.is_match(text),
            // Unreachable in practice, as the server rejects such CRDs.
            Err(_) => Some(false),
        };
        if is_match.is_none() {
            self.leave_undecided(path, format!("whether it matches the pattern `{pattern}`"));
        }
        let rule = format!("should match '{pattern}'");
        (is_match == Some(false)).then(|| self.invalid(path, &text.into(), &rule))
    }

    pub(super) fn check_format(&mut self, text: &str, format: &str, path: &str) -> Outcome {
        let is_accepted = match format {
            "byte" if self.decodes_bytes => Some(is_decoded_by_go(text)),
            _ => accepts(format, text),
        };
        if is_accepted.is_none() {
            self.leave_undecided(path, format!("whether it has the format `{format}`"));
        }
        let violation = (is_accepted == Some(false)).then(|| self.wrong_type(path, format, text));
        violation.into()
    }
}
