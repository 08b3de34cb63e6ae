//! Determines the level of a change from the search results.

use crate::change::{Change, Effect};
use crate::level::{Level, Party};
use crate::witness::Outcome;

pub(crate) fn settle(change: &mut Change, outcome: Outcome) {
    change.level = match &outcome.witness {
        Some(witness) if matches!(witness.effect, Effect::Refused(_)) => Level::Breaking,
        Some(_) => change.rule.level,
        // Only trust a search that tried something and wasn't cut short.
        None if outcome.accepted > 0 && !outcome.is_cut_short => change.rule.unproven,
        None => change.rule.level,
    };
    if outcome.witness.is_none() && change.rule.affects.is_empty() {
        change.affects.insert(Party::Writers);
    }
    change.affects.extend(outcome.parties);
    change.is_cut_short = outcome.is_cut_short;
    change.witness = outcome.witness;
    change.tried = Some(outcome.accepted);
}
