//! Suppresses warnings with `#[crd(allow(RB0306))]`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Code;
use crate::{Diagnostic, FileRange};

/// Code for `allow(…)` markers that have no effect.
const NO_EFFECT: &str = "RB0208";

/// All `allow(…)` markers found during a run.
#[derive(Clone, Debug, Default)]
pub struct Allows {
    by_file: BTreeMap<String, Vec<Allowed>>,
}

/// A code in an `allow(…)` marker.
#[derive(Clone, Debug)]
struct Allowed {
    code: &'static Code,
    /// Location of the code within the marker.
    at: Range<usize>,
    /// The item, field or variant that the marker is on.
    scope: Range<usize>,
    /// Whether this run finds all warnings of the generator about the scope.
    is_checked: bool,
    is_used: bool,
    /// Whether there's an error with this code in the scope.
    has_error: bool,
}

impl Allows {
    /// Adds a code. Note that an item may be read multiple times, with different results.
    pub(crate) fn add(&mut self, path: &str, allow: &rbuilder_syntax::Allow, is_checked: bool) {
        let Some(code) = Code::of_id(&allow.code) else {
            return;
        };
        let list = self.by_file.entry(path.to_owned()).or_default();
        let (at, scope) = (allow.span.range(), allow.scope.range());
        match list
            .iter_mut()
            .find(|known| known.at == at && known.scope == scope)
        {
            Some(known) => known.is_checked |= is_checked,
            None => list.push(Allowed {
                code,
                at,
                scope,
                is_checked,
                is_used: false,
                has_error: false,
            }),
        }
    }

    /// Returns whether a diagnostic is suppressed by a marker. This is never true for errors, since
    /// the manifests would be wrong.
    pub fn covers(&mut self, diagnostic: &Diagnostic) -> bool {
        let FileRange { path, range } = &diagnostic.place;
        let Some(list) = self.by_file.get_mut(path).filter(|_| !range.is_empty()) else {
            return false;
        };
        let Some(code) = Code::of_message(&diagnostic.message) else {
            return false;
        };
        let around = list.iter_mut().filter(|allowed| {
            let scope = &allowed.scope;
            allowed.code.id == code.id && scope.start <= range.start && range.end <= scope.end
        });
        let Some(innermost) = around.min_by_key(|allowed| allowed.scope.len()) else {
            return false;
        };
        match diagnostic.is_error() {
            true => innermost.has_error = true,
            false => innermost.is_used = true,
        }
        !diagnostic.is_error()
    }

    /// Returns notes about codes that are only used for errors.
    pub(crate) fn find_errors(&self) -> Vec<Diagnostic> {
        self.describe(
            |allowed| allowed.has_error && !allowed.is_used,
            |allowed, place| {
                let message = format!(
                    "`{}` is an error here, and errors cannot be allowed",
                    allowed.code.id
                );
                Diagnostic::note(place, message)
            },
        )
    }

    /// Returns warnings about codes which have not suppressed anything. Codes about changes are not
    /// included, because they are reported by the command and not by the generator.
    pub(crate) fn find_unused(&self) -> Vec<Diagnostic> {
        let is_unused = |allowed: &Allowed| {
            let is_expected = allowed.code.is_about_source() && allowed.code.id != NO_EFFECT;
            is_expected && allowed.is_checked && !allowed.is_used && !allowed.has_error
        };
        self.describe(is_unused, |allowed, place| {
            let message = format!("there is no warning `{}` to allow here", allowed.code.id);
            Diagnostic::warning(place, message).help("remove it")
        })
    }

    fn describe(
        &self,
        matches: impl Fn(&Allowed) -> bool,
        describe: impl Fn(&Allowed, FileRange) -> Diagnostic,
    ) -> Vec<Diagnostic> {
        let all = self
            .by_file
            .iter()
            .flat_map(|(path, list)| list.iter().map(move |allowed| (path, allowed)));
        all.filter(|(_, allowed)| matches(allowed))
            .map(|(path, allowed)| describe(allowed, FileRange::new(path, allowed.at.clone())))
            .collect()
    }
}
