//! The CEL rules of a version, judged as the API server will judge them; complaints stand where the rules are written.

use std::collections::BTreeSet;

use super::Version;
use crate::origin;
use crate::schemas::Schemas;

pub(super) fn check_rules(version: &Version<'_>, schemas: &mut Schemas<'_>) {
    let mut said = BTreeSet::new();
    for diagnostic in rbuilder_cel::check_rules(&version.schema) {
        let at = origin::place_of(diagnostic.place.origin).unwrap_or(version.place);
        // A type that is used in several places is complained about for the first.
        if !said.insert((at, diagnostic.message.clone())) {
            continue;
        }
        let place = diagnostic.place.describe();
        let diagnostic = diagnostic.map_message(|message| format!("{message} ({place})"));
        schemas.report().add(diagnostic.at(at));
    }
}
