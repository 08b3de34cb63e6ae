//! Limits the work done by searches.

use std::cell::Cell;

use rbuilder_schema::Schema;
use serde_json::Value;

/// Limit on the total work of all searches in a comparison, counted in steps. A step is a value in
/// a validated object, or a schema node prepared for a rule. Steps rather than time, so that
/// results are the same on every machine.
///
/// Once the budget is exhausted, searches don't validate any more objects. The changes keep their
/// rules' levels, with [`Change::is_cut_short`](crate::Change::is_cut_short) set.
#[derive(Debug)]
pub struct Budget {
    left: Cell<u64>,
}

/// Takes a few seconds in a release build.
const STEPS: u64 = 2_000_000;

impl Default for Budget {
    fn default() -> Self {
        Budget::of(STEPS)
    }
}

impl Budget {
    /// Creates a budget with the given number of steps. 0 disables searching.
    pub fn of(steps: u64) -> Budget {
        Budget {
            left: Cell::new(steps),
        }
    }

    /// Returns the number of remaining steps.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Consumes steps. If there aren't enough left, consumes the rest and returns false.
    pub(super) fn take(&self, steps: u64) -> bool {
        let rest = self.left.get().checked_sub(steps);
        self.left.set(rest.unwrap_or(0));
        rest.is_some()
    }
}

/// Counts the nodes of a value, including itself.
pub(super) fn count_values(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(fields) => fields.values().map(count_values).sum(),
        _ => 0,
    }
}

pub(super) fn count_nodes(schema: &Schema) -> u64 {
    let inner = schema.properties.values().map(|inner| &**inner);
    let inner = inner.chain(schema.items.as_deref());
    let inner = inner.chain(schema.additional_properties.as_deref());
    1 + inner.map(count_nodes).sum::<u64>()
}
