//! Determines a change's level from the result of a search.

use crate::change::{Change, Effect};
use crate::level::{Level, Party};
use crate::witness::Outcome;

pub(crate) fn settle(change: &mut Change, outcome: Outcome) {
    change.level = match &outcome.witness {
        Some(witness) if matches!(witness.effect, Effect::Refused(_)) => Level::Breaking,
        Some(_) => change.rule.level,
        // Believe the search only if it has tried something, and wasn't interrupted.
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
