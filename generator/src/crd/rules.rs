//! The CEL rules of a version, judged as the API server will judge them; complaints stand where the rules are written.

use std::collections::BTreeSet;

use super::Version;
use crate::cel::{self, RuleFinding};
use crate::origin;
use crate::schemas::Schemas;

pub(super) fn check(version: &Version<'_>, schemas: &mut Schemas<'_>) {
    let mut said = BTreeSet::new();
    for RuleFinding { place, finding } in cel::check_rules(&version.schema) {
        let at = origin::place(place.origin).unwrap_or(version.place);
        // A type that is used in several places is complained about for the first.
        if !said.insert((at, finding.message.clone())) {
            continue;
        }
        let package = schemas.package();
        let severity = finding.severity();
        let message = format!("{} ({})", finding.message, place.whereabouts());
        schemas.report().say(package, at, severity, message, finding.help);
    }
}
